"""Deliberate bugs in the fast model: in a case of test_model_and_circuit_agree_in_every_cycle, each is seen.

There the model without the bug is held against the RTL, so here it stands for it.
"""

from __future__ import annotations

import pytest

from tests.engines.hardware.observed import differences, random_case
from tests.engines.hardware.plain_model import in_python, observed
from tests.engines.hardware.test_circuit_model import ON_AMARANTH, SMALL

# file, text, bug, and the case in which it is seen
MUTANTS: list[tuple[str, str, str, int]] = [
    ("chain", "R_SCANS_AT = 4", "R_SCANS_AT = 3", 52),
    ("chain", "EAGER_SCANS_AT = 1", "EAGER_SCANS_AT = 2", 85),
    ("chain", "NESTED_SCANS_AT = 2", "NESTED_SCANS_AT = 3", 56),
    ("chain", "max(ahead[core, following] - passed - 1, 0)", "max(ahead[core, following] - passed, 0)", 19),
    ("chain", "tick + chain.length[core] - passed - 1", "tick + chain.length[core] - passed", 85),
    (
        "chain",
        "following = int(ahead[core, 1] < ahead[core, 0])",
        "following = int(ahead[core, 1] <= ahead[core, 0])",
        4,
    ),
    ("chain", "    count = waiting\n", "    count = waiting if goes else 0\n", 2),
    ("chain", "wraps = low + (-low) % size", "wraps = low", 71),
    ("chain", "while order == NOBODY:", "while False:", 85),
    ("fifos", "if fifos.latency < 2:", "if fifos.latency < 3:", 39),
    (
        "fifos",
        "int(after >= fifos.limit[i]) - int(before >= fifos.limit[i])",
        "int(after > fifos.limit[i]) - int(before > fifos.limit[i])",
        19,
    ),
    ("tree", "free_at[0] = cycle + tree.cycles_per_result", "free_at[0] = cycle + 1", 53),
    ("tree", "group - 1 if group else cycles - 1", "group", 44),
    ("tree", "token[i] = port + 1 if port + 1 < tree.fan_in else 0", "token[i] = port", 93),
    ("adaptive", "east_word != NONE and west_word != NONE and new != NONE", "new != NONE", 2),
    ("adaptive", "turn[i] = 1 - port", "turn[i] = port", 5),
    (
        "adaptive",
        "min(hops + 1, ring.most_hops)\n                put_in(visited, then, after)",
        "1\n                put_in(visited, then, after)",
        5,
    ),
    ("pipelined", "    if fifos.level[core] == 0:", "    if False:", 85),
    ("pipelined", "token[i] = place + 1 if place + 1 < stages.fan_in else 0", "token[i] = place", 32),
    ("advance", "suspended = flags[flag] != 0", "suspended = fifos.full[0] != 0", 19),
    ("advance", "ready_at += 1 + (-cycle) % ratio", "ready_at += (-cycle) % ratio", 56),
    ("advance", "discarded[step] = not ready", "discarded[step] = False", 52),
    ("advance", "fifos.front[core] != NONE and not fifos.popped[core]", "fifos.front[core] != NONE", 55),
    ("advance", "tick, waiting) if beats else 0", "tick, waiting)", 78),
    (
        "advance",
        "tree.phase[0] = (tree.phase[0] + cycle - before) % tree.cycles",
        "tree.phase[0] = tree.phase[0] % tree.cycles",
        55,
    ),
]


@pytest.mark.parametrize(("file", "right", "wrong", "seed"), MUTANTS)
def test_a_bug_in_the_model_is_seen(
    file: str, right: str, wrong: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seed < ON_AMARANTH
    case = random_case(seed, **SMALL)
    expected = observed(in_python(monkeypatch), case)
    assert expected is not None
    broken = observed(in_python(monkeypatch, file, right, wrong), case)
    assert broken is None or differences(expected, broken)
