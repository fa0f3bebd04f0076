"""Deliberate bugs in the chain of join cores: each is caught by a test that is named beside it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.agreement.test_hardware import check_seeds
from tests.engines.hardware.test_clocks import check_slow_chain
from tests.engines.hardware.test_comparisons import check_comparisons
from tests.engines.hardware.test_handshake import check_chain, check_count_window
from tests.engines.hardware.test_join_core import check_core
from tests.engines.hardware.test_losses import (
    DROP,
    THROTTLE,
    check_busy,
    check_dropping,
    check_room,
    check_throttled,
)
from tests.engines.hardware.test_segment import check_segment
from tests.engines.hardware.test_steps import check_order, check_stamps
from tests.engines.hardware.test_top import check_idle

ROOM = "handfast.engines.hardware"
Check = Callable[[Any], None]  # runs a test's check on the broken module


def core(sizes: tuple[int, int], kind: str = "JoinCore") -> Check:
    """test_a_core_finds_each_match_once_though_it_is_suspended_and_not_always_heard."""
    return lambda broken: check_core(getattr(broken, kind), sizes)


def chain(broken: Any) -> None:
    """test_cores_that_stand_still_now_and_then_stay_in_step."""
    check_chain(broken.Handshake, 3, (2, 2))


def comparing(broken: Any) -> None:
    """test_matches_leave_one_after_the_other_each_once."""
    check_comparisons(broken.Comparisons, 3)


def slow(broken: Any) -> None:
    """test_a_slow_chain_does_what_a_chain_does_in_every_so_many_cycles."""
    check_slow_chain(broken.SlowChain, "immediate", 2)


def throttled(broken: Any) -> None:
    """test_a_throttled_circuit_finds_all_matches_of_what_it_admits."""
    check_throttled(THROTTLE)


def dropping(broken: Any) -> None:
    """test_what_is_dropped_is_counted_and_all_else_comes_out."""
    check_dropping(DROP)


def segment(form: str, at_once: int = 1, size: int = 3) -> Check:
    """test_a_segment_holds_the_last_slots_that_entered."""
    return lambda broken: check_segment(getattr(broken, form), size, at_once)


def agreement(*seeds: int) -> Check:
    """test_the_circuit_equals_the_oracle."""
    return lambda broken: check_seeds(seeds)


S_AFTER_THE_SCAN = """s.entering.eq(new_s),
            s.shift.eq(ends & brings_s),"""
S_BEFORE_THE_SCAN = """s.entering.eq(self.s_in),
            s.shift.eq(self.start & self.s_shift),"""

MUTANTS: list[tuple[str, str, str, Check]] = [
    ("comparisons", "(s.seq >= r.low) if", "1 if", agreement(*range(8))),
    ("comparisons", "(r.seq >= s.low)", "(r.seq > s.low)", agreement(*range(8))),
    ("comparisons", "(~self.suspend | waiting)", "~self.suspend", comparing),
    ("comparisons", "taken & (left == first)", "1", comparing),
    ("comparisons", "taken & (left == first)", "taken", comparing),  # the other matches of the group are lost
    ("comparisons", "sent | first", "first", comparing),  # a match leaves twice
    ("comparisons", "sent.eq(0)", "sent.eq(sent)", comparing),  # the next group's matches are taken for sent
    ("comparisons", "r.valid & s.valid &", "r.valid &", comparing),
    ("join_core", "Mux(scans_r, r.groups - 1, s.groups - 1)", "s.groups - 1", core((2, 5))),
    ("join_core", "r.shift.eq(self.r_shift)", "r.shift.eq(1)", core((4, 4))),
    # R shifts after the scan: the two tuples of a step cross and never meet, and one that has left is met
    ("eager_core", "self.start & self.r_shift),", "ends & brings_r),", core((4, 4), "EagerCore")),
    # S shifts before the scan: the two tuples of a step meet twice, and one that leaves is not met
    ("eager_core", S_AFTER_THE_SCAN, S_BEFORE_THE_SCAN, core((4, 4), "EagerCore")),
    ("eager_core", "brings_r & (after <= s.groups)", "brings_r", core((5, 2), "EagerCore")),  # the last group twice
    ("eager_core", "~brings_s | (after >= r.groups)", "1", core((5, 2), "EagerCore")),  # the rest of R is left out
    ("eager_core", "scans & brings_s &", "scans &", core((4, 4), "EagerCore")),  # a step without S scans R
    ("handshake", "Cat(core.ready for core in self.cores).all()", "self.cores[0].ready", chain),
    ("handshake", "self.cores[from_right].s_out", "self.cores[from_right].s_in", chain),
    ("segment", "slots[k - 1]", "slots[0]", segment("Segment")),
    ("segment", "padded[k :: self.at_once]", "padded[: self.groups]", segment("Segment", at_once=2)),
    ("segment", "Mux(in_last_slot, 0, group + in_last_bank)", "group", segment("RamSegment")),
    (
        "segment",
        "(bank == self.at_once - 1) | in_last_slot",
        "bank == self.at_once - 1",
        segment("RamSegment", at_once=2),
    ),
    ("segment", "self.shift & (bank == number)", "self.shift", segment("RamSegment", at_once=2)),
    ("segment", "Mux(self.shift, group, following)", "group", segment("RamSegment")),
    ("segment", "Array(ahead)[following_bank]", "Array(ahead)[bank]", segment("RamSegment", at_once=2)),
    ("segment", "self.entering if self.size == 1 else ", "", segment("RamSegment", size=1)),
    ("top", "chain.ready & (new == 0)", "chain.ready", lambda broken: check_idle(broken.JoinCircuit, "tree", 1, 1)),
    ("top", "chain.ready & (new == 0)", "(new == 0)", lambda broken: check_idle(broken.JoinCircuit, "tree", 3, 2)),
    ("clocks", "found.valid & works", "found.valid", slow),  # a result leaves more than once
    ("clocks", "chain.steps.ready & works", "chain.steps.ready", slow),  # a step is taken that the chain does not see
    ("clocks", "EnableInserter(works)(chain)", "chain", slow),
    # the flush is discarded, and the last tuples never meet
    ("top", "Mux(brings, Cat(~chain.ready, *crowded), 0)", "Cat(~chain.ready, *crowded)", throttled),
    ("top", "Cat(~chain.ready, *crowded)", "Cat(0, *crowded)", lambda broken: check_busy(1, [1, 3, 5])),
    ("top", "buffer.almost_full & self.chain", "self.chain", lambda broken: check_room()),
    ("top", ".ready) - drops)", ".ready))", dropping),  # dropped results are waited for
    ("admission", "& self.crowded[k] & ~output.ready)", "& self.crowded[k])", dropping),  # counted, and yet taken
    ("admission", "output.ready | self.crowded[k]", "output.ready", dropping),  # counted, and yet there
    ("steps", "< cores - 1", "< cores - 2", lambda broken: check_count_window(broken.flush_steps, 4, (2, 2))),
    ("steps", 'side="right"', 'side="left"', lambda broken: check_stamps(broken.lowest_held, 0)),
    ("steps", "            waiting = None", "            pass", lambda broken: check_order(broken.in_steps, 0)),
    ("design", "window.rows == slots", "window.rows <= slots", agreement(*range(8))),
    ("rows", "ranks.argmax(axis=0)", "ranks.argmin(axis=0)", agreement(*range(8))),
]


@pytest.mark.parametrize(("module", "right", "wrong", "check"), MUTANTS)
def test_a_bug_in_the_join_is_caught(
    module: str, right: str, wrong: str, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = with_bug(module, right, wrong, tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check(broken)


def with_bug(module: str, right: str, wrong: str, folder: Path, patch: pytest.MonkeyPatch) -> ModuleType:
    """A module whose text is changed; what else uses it uses the changed one until the test is over."""
    original = importlib.import_module(f"{ROOM}.{module}")
    assert original.__file__ is not None
    text = Path(original.__file__).read_text()
    assert 1 == text.count(right), right
    path = folder / f"{module}.py"
    path.write_text(text.replace(right, wrong))
    spec = importlib.util.spec_from_file_location(f"{ROOM}.{module}", path)
    assert spec is not None and spec.loader is not None
    broken = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, f"{ROOM}.{module}", broken)
    above, _, last = f"{ROOM}.{module}".rpartition(".")
    patch.setattr(sys.modules[above], last, broken)
    spec.loader.exec_module(broken)
    for user in [sys.modules[name] for name in list(sys.modules) if name.startswith(ROOM)]:
        for name, value in list(vars(user).items()):
            if getattr(value, "__module__", None) == broken.__name__ and hasattr(broken, name):
                patch.setattr(user, name, getattr(broken, name))
    return broken
