"""Deliberate bugs in what is reported of circuits: each is caught by a test that is named beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hardware.test_activity import check_counters
from tests.engines.hardware.test_join_mutants import with_bug
from tests.engines.hardware.test_observe import check_observed
from tests.engines.hardware.test_sharing import check_assertions, check_shared

Check = Callable[[Any], None]


def shared(broken: Any) -> None:
    """test_cores_and_buffers_that_are_alike_are_one_module."""
    check_shared(broken, "adaptive")


def counters(broken: Any) -> None:
    """test_the_flip_flops_of_counters_toggle_as_the_formula_says."""
    check_counters(broken, mapped=False)


MUTANTS: list[tuple[str, str, str, Check]] = [
    ("sharing", "ports[part].get(connect[1], connect[1])", "connect[1]", shared),
    ("sharing", "kept.setdefault(text, name)", "name", shared),
    ("sharing", "stands_for[part]} {cell[2]}", "part} {cell[2]}", shared),
    ("sharing", "(?:signed )?", "(?:never )", check_assertions),
    ("sharing", "_in_order(text)).splitlines()", "text).splitlines()", check_assertions),
    ("observe", "np.bitwise_count(flag.words)", "np.bitwise_count(1 - flag.words)", check_observed),
    ("observe", 'run.probes["idle"].cycles[-1]', "run.cycles", check_observed),
    ("activity", "words[1:] ^ words[:-1]", "words[1:] & ~words[:-1]", counters),
    ("activity", "seen.cycles[1:] > first", "seen.cycles[1:] >= first", counters),
]


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize(("module", "right", "wrong", "check"), MUTANTS)
def test_a_bug_in_a_report_is_caught(
    module: str, right: str, wrong: str, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_bug(module, right, wrong, tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check(broken)
