"""Deliberate bugs in the fast model of rings and lines: each is seen in a case of test_ring_model.

There the model without the bug is held against the RTL, so here it stands for it.
"""

from __future__ import annotations

import sys

import pytest

from handfast.engines.hardware.circular import job as jobs
from handfast.engines.hardware.options import CIRCULAR, STASHED
from tests.engines.hardware.plain_model import ROOM, in_python
from tests.engines.hardware.ring_cases import RingSeen, random_ring, ring_by_model, ring_differences
from tests.engines.hardware.test_ring_model import ON_AMARANTH

# file, text, bug, and the case in which it is seen
OF_RING: list[tuple[str, str, str, int]] = [
    ("ring_stage", "hop = own + 1 + turn", "hop = own + turn", 3),
    ("ring_stage", "waiting -= int(popped)", "waiting -= 0", 0),
    ("ring_stage", "ring.blocked[stage, hop] == 0 or hop == hops - 1", "hop == hops - 1", 2),
    ("ring_stage", "ring.kept_group[stage, own] = ring.group[stage]", "ring.kept_group[stage, own] = 0", 2),
    ("ring_stage", "ring.blocked[stage, hop] = 0\n", "pass\n", 2),
    ("ring_stage", "bank_0 = top - top % banks", "bank_0 = top - banks", 1),
    ("ring_stage", "ring.done[number] = cycle + 1", "ring.done[number] = cycle + 2", 0),
    ("ring_stage", "ring.passed[stage, hop] = 0\n", "pass\n", 0),
    ("ring_stage", "ring.dropped[stage] += 1", "ring.dropped[stage] += 2", 20),
    ("ring_loop", "cycle + 2 + stages + stage", "cycle + 1 + stages + stage", 0),
    ("ring_loop", "if ring.wake[before] == NEVER:", "if False:", 2),
    ("ring_loop", "counts[COUNT] < in_flight and cycle", "counts[COUNT] <= in_flight and cycle", 0),
]
OF_LINE: list[tuple[str, str, str, int]] = [
    ("line_stage", "if a < low_a or b < low_b:", "if False:", 0),
    ("line_stage", "reach = max(reach, away)", "reach = line.stash[LIVE]", 3),
    ("line_stage", "first_bank = (stash[KEPT] - (group + 1) * banks) % banks", "first_bank = 0", 38),
    ("line_stage", "max(stash[LAST_MISSING + A], old_a) if still else old_a", "old_a", 118),
    ("line_stage", "stash[MISSING] = 1\n", "pass\n", 2),
    ("line_stage", "if line.origins[tuple_] != stream:\n", "if True:\n", 8),
    ("line_stage", "if line.held[tuple_, B]:\n", "if True:\n", 51),
    ("line_stage", "stage == stages - 2 and line.origins[tuple_] == stages", "False", 0),
    ("line_stage", "            line.passed[stage] = 1\n            if", "            if", 0),
    ("line_loop", "cycle + 2 + line.members.shape[2]", "cycle + 1 + line.members.shape[2]", 0),
    ("line_loop", "if stage and line.wake[stage - 1] == NEVER:", "if False:", 2),
]


def seen(monkeypatch: pytest.MonkeyPatch, algorithm: str, seed: int, *bug: str) -> RingSeen | None:
    """What the model sees that Python itself runs, with a bug; None where it stands still or fails."""
    in_python(monkeypatch, *bug)
    monkeypatch.setattr(jobs, "run_ring", sys.modules[f"{ROOM}.circular"].run)
    monkeypatch.setattr(jobs, "run_line", sys.modules[f"{ROOM}.stashed"].run)
    job = random_ring(seed, most_streams=4, most_rows=10, algorithm=algorithm).job()
    try:
        return ring_by_model(job)
    except Exception:  # noqa: BLE001 (a bug may do anything)
        assert bug
        return None


@pytest.mark.parametrize(
    ("algorithm", "file", "right", "wrong", "seed"),
    [(CIRCULAR, *own) for own in OF_RING] + [(STASHED, *own) for own in OF_LINE],
)
def test_a_bug_in_the_model_is_seen(
    algorithm: str, file: str, right: str, wrong: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seed < ON_AMARANTH
    expected = seen(monkeypatch, algorithm, seed)
    assert expected is not None
    broken = seen(monkeypatch, algorithm, seed, file, right, wrong)
    assert broken is None or ring_differences(expected, broken)
