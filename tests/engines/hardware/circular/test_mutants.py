"""Deliberate bugs in the parts of a ring: each is caught by a test that is named beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hardware.circular import test_conditions
from tests.engines.hardware.circular.test_parts import check_in_flight, check_queues, check_window
from tests.engines.hardware.circular.test_ring_agreement import SMALL, check_seeds, check_small_stash
from tests.engines.hardware.circular.test_stage import check_stage
from tests.engines.hardware.stashed.test_stash import check_stash
from tests.engines.hardware.test_join_mutants import with_bug

Check = Callable[[Any], None]


def window(broken: Any) -> None:
    """test_a_window_reads_the_slots_before_any_place."""
    check_window(broken.StageWindow, 3, 2)


def queues(broken: Any) -> None:
    """test_each_queue_of_a_stage_keeps_its_order."""
    check_queues(broken.StageBuffer, 4, 2, 3)


def in_flight(broken: Any) -> None:
    """test_no_tuple_enters_that_is_too_far_behind_one_that_has_not_ended."""
    check_in_flight(broken.InFlight, 5, 3)


def stage(comparisons: int = 1, turn: str = "round_robin") -> Check:
    """test_a_stage_finds_each_match_once_and_in_order."""
    return lambda broken: check_stage(broken.RingStage, comparisons, 1, turn)


def alone(broken: Any) -> None:
    """test_what_one_stream_says_is_checked_at_its_stage_or_at_the_first."""
    test_conditions.test_what_one_stream_says_is_checked_at_its_stage_or_at_the_first()


def chained(broken: Any) -> None:
    """test_of_equalities_that_chain_each_stage_checks_one."""
    test_conditions.test_of_equalities_that_chain_each_stage_checks_one()


def agreement(*seeds: int, **options: Any) -> Check:
    """test_the_ring_equals_the_oracle."""
    return lambda broken: check_seeds(seeds, **options)


def stash(broken: Any) -> None:
    """test_a_whole_stash_has_every_live_pair."""
    check_stash(broken.Stash, 3, 1)


def small(broken: Any) -> None:
    """test_a_stash_that_is_too_small_now_and_then_loses_nothing."""
    for seed in SMALL:
        check_small_stash(seed)


MUTANTS: list[tuple[str, str, str, Check]] = [
    # what is scanned: a tuple that expires too early, one that is stored too early
    ("window", "number < self.bank", "0", window),
    ("window", "(place.bank == number)", "1", window),
    ("window", "Mux(self.group == self.groups - 1, 0, self.group + 1)", "self.group + 1", window),
    ("layout", "self.held[stream] + self.in_flight", "self.held[stream]", agreement(*range(12), in_flight=8)),
    ("distribution", "Mux(count == most, most, count + 1)", "count + 1", agreement(*range(12))),
    ("distribution", "self.valid & (self.step.origin == stream)", "self.valid", agreement(*range(12))),
    ("distribution", "own.held.eq(self.step.held[str(stream)])", "own.held.eq(-1)", agreement(*range(12))),
    ("stage", "counts[number] & found", "found", stage(3)),
    ("stage", "Mux(group == 0, groups - 1, group - 1)", "group - 1", stage()),
    # queues
    ("stage_buffer", "Mux(tail == depth - 1, 0, tail + 1)", "tail + 1", queues),
    ("stage_buffer", "self.more[hop].eq(level > 1)", "self.more[hop].eq(level > 0)", queues),
    ("stage_buffer", "popped.eq(self.pop & (shown == hop))", "popped.eq(self.pop & (self.look == hop))", queues),
    # a tuple's end
    ("in_flight", "self.room.eq(count != self.limit)", "self.room.eq(1)", in_flight),
    ("in_flight", "with m.Elif(leaves & (oldest == number))", "with m.Elif(leaves & (oldest > number))", in_flight),
    ("stage", "passed.eq(passed | own)", "passed.eq(passed)", stage()),
    ("stage", "passed.eq(passed & ~own)", "passed.eq(passed)", stage()),
    # resumed scans
    ("stage", "Mux(goes_on, Array(kept_sent)[hop], 0)", "0", stage(3)),
    ("stage", "Mux(goes_on, Array(kept_group)[hop], range_.group)", "range_.group", stage()),
    ("stage", "begun.eq(begun & ~own)", "begun.eq(begun)", stage()),
    ("stage", "sent.eq(sent | first)", "sent.eq(first)", stage(3)),
    ("stage", "goes.eq(~last_hop & matches.any() & room)", "goes.eq(~last_hop & matches.any())", stage()),
    # the stash: what is missing, and what is computed again then
    ("stash", "gone |= low > last", "gone |= low >= last", stash),
    ("stash", "live &= oldest[stream] >= low", "live &= oldest[stream] > low", stash),
    ("stash", "missing.eq(still | self.overwritten)", "missing.eq(self.overwritten)", stash),
    ("stash", "Mux(self.keep, following, at)", "at", stash),
    ("stash", "self.whole.eq(~still)", "self.whole.eq(1)", stash),
    ("stash_stage", "kept_sent.eq(lanes.sent | lanes.first)", "kept_sent.eq(-1)", small),
    ("stash_stage", "(~probes | live[number])", "1", small),
    (
        "stash_stage",
        "stash.keep.eq(taken & of_pair)",
        "stash.keep.eq(lanes.matches.any() & of_pair)",
        small,
    ),
    ("stash_stage", "Mux(further, place, reach)", "Mux(live[number], 1, reach)", small),
    # what is checked where
    ("conditions", "(stage in read or hop == 0)", "stage in read", alone),
    ("conditions", "range(before - 1, streams - 1)", "range(before, streams - 1)", chained),
    ("design", "if h not in check.hops", "if h in check.hops", agreement(*range(12))),
    ("layout", "with m.If(hop >= hops)", "with m.If(hop > hops)", agreement(*range(30))),
]


@pytest.mark.parametrize(("module", "right", "wrong", "check"), MUTANTS)
def test_a_bug_in_the_ring_is_caught(
    module: str, right: str, wrong: str, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "stashed" if module in ("stash", "stash_stage") else "circular"
    broken = with_bug(f"{package}.{module}", right, wrong, tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check(broken)
