"""Where partners can lie: all that are in a window with a tuple, and no others where tuples come in order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.course import Courses, Ranges, reach
from handfast.kernels.growing import GrowingStamps

Run = list[tuple[int, int, int]]  # time, and how many tuples of stream 0 and 1 came before


def timeline(rng: random.Random, count: int) -> tuple[Run, Run]:
    """Two streams with their stamps, in the order of their ranks."""
    streams: tuple[Run, Run] = ([], [])
    time = 0
    for _ in range(count):
        time += rng.choice([0, 0, 1, 2, 7])
        stream = rng.randrange(2)
        streams[stream].append((time, len(streams[0]), len(streams[1])))
    return streams


def columns(run: Run) -> Columns:
    times, *seen = (np.array(column, np.int64) for column in zip(*run, strict=True)) if run else (np.empty(0, int),) * 3
    return Columns([], [], times, tuple(seen))


def holds(rule: WindowRule, r: tuple[int, int, int], s: tuple[int, int, int]) -> bool:
    """The definition: the one that came first is in its window when the other arrives."""
    side, (old, at) = (0, (r, s)) if r[1] < s[1] else (1, (s, r))
    length = rule.lengths[side]
    return at[1 + side] - old[1 + side] <= length if rule.counted[side] else at[0] - old[0] < length


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("counted", [(False, False), (True, True), (True, False), (False, True)])
def test_a_range_holds_all_partners_and_in_order_nobody_else(seed: int, counted: tuple[bool, bool]) -> None:
    rng = random.Random(seed)
    streams = timeline(rng, rng.choice([0, 3, 20, 80]))
    rule = WindowRule((rng.randrange(1, 15), rng.randrange(1, 15)), counted)
    disorder = rng.choice([0, 0, 4])
    stored_as = [sorted(own, key=lambda stamp: sum(stamp[1:]) + rng.uniform(0, disorder)) for own in streams]
    for side in (0, 1):
        probing, stored = streams[side], stored_as[1 - side]
        oldest = rng.randrange(len(stored) + 1)
        known = columns(stored)
        ranges = reach(rule, side, columns(probing), Courses.of(known), oldest)
        assert disorder or ranges.exact
        for k, own in enumerate(probing):
            pairs = [(own, other) if side == 0 else (other, own) for other in stored]
            partners = {p for p, (r, s) in enumerate(pairs) if p >= oldest and holds(rule, r, s)}
            inside = set(range(int(ranges.starts[k]), int(ranges.stops[k])))
            assert partners <= inside
            if ranges.exact:
                assert partners == inside


@pytest.mark.parametrize("seed", range(30))
def test_stamps_that_come_where_older_ones_stood_are_known_to_be_out_of_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stamps, known = GrowingStamps(), np.empty(0, np.int64)
    for _ in range(60):
        new = np.full(rng.integers(1, 40), rng.integers(0, 1_000))  # a whole push of one time, often an earlier one
        stamps.append(new)
        gone = int(rng.integers(0, len(stamps) + 1))
        stamps.drop(gone)
        known = np.append(known, new)[gone:]
        assert known.tolist() == stamps.values.tolist()
        course, bounds = stamps.course, np.arange(0, 1_000, 37)
        assert not course.goes_up or (np.diff(known) >= 0).all()
        starts = course.starts(bounds, 0, 0, right=True)
        stops = course.stops(bounds, 0, right=False)
        for bound, start, stop in zip(bounds, starts, stops, strict=True):
            assert (known[:start] <= bound).all()
            assert (known[stop:] >= bound).all()


@pytest.mark.parametrize("most", [1, 4, 100])
def test_ranges_written_out_are_every_place_with_every_position_however_many_come_at_a_time(most: int) -> None:
    starts, stops = np.array([3, 0, 7, 5, 2]), np.array([6, 0, 4, 6, 9])
    pieces = list(Ranges(starts, stops, True).every_pair(most))
    places, positions = (np.concatenate(own).tolist() for own in zip(*pieces, strict=True))
    assert [(k, at) for k in range(5) for at in range(starts[k], stops[k])] == list(zip(places, positions, strict=True))
    assert {1: 3, 4: 2, 100: 1}[most] == len(pieces)
