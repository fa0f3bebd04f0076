"""Arrays that grow at their end and are dropped from their start: what they hold, and what memory they take."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from handfast.kernels.course import STEP
from handfast.kernels.growing import Growing, GrowingStamps
from handfast.kernels.pages import PAGE

INT64 = np.dtype(np.int64)
MANY = 1 << 17  # values: 1 MB


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.dtype(np.uint8), INT64, np.dtype((np.void, 32))])
def test_a_column_that_is_dropped_from_has_the_values_that_are_left(seed: int, dtype: np.dtype[np.generic]) -> None:
    rng = random.Random(seed)
    most = rng.choice([9, 3_000])
    column, known = Growing(dtype), np.empty(0, dtype)
    for turn in range(100):
        new = np.frombuffer(rng.randbytes(rng.randrange(most) * dtype.itemsize), dtype)
        known = np.concatenate([known, new])
        column.append(new)
        if rng.random() < 0.4:
            count = rng.randrange(len(known) + 1)
            known = known[count:]
            column.drop(count)
        if rng.random() < 0.1:
            known = known[: len(known) // 2]
            column.cut(len(column) - len(known))
        assert len(known) == len(column), turn
        assert known.tobytes() == column.values.tobytes(), turn


def test_values_that_somebody_refers_to_stay_where_they_are() -> None:
    column = Growing(INT64)
    column.append(np.arange(MANY))
    held = column.values[10:]
    part = held.view(np.uint64)[5:7]
    column.append(np.arange(MANY))
    column.drop(MANY + 7)
    column.append(np.arange(4 * MANY))
    assert np.arange(10, MANY).tolist() == held.tolist()
    assert [15, 16] == part.tolist()
    assert 7 == column.values[0]


def test_a_column_that_nobody_refers_to_is_not_copied_as_it_grows() -> None:
    column = Growing(INT64)
    column.append(np.ones(64 * MANY, np.int64))
    before = resident()
    column.append(np.ones(1, np.int64))
    room = column._array.nbytes
    while column._array.nbytes == room:  # until it had to make room
        column.append(np.ones(MANY, np.int64))
    grown = resident() - before
    assert grown < 8 * (len(column) - 64 * MANY) + 4 * MANY


def test_a_column_takes_no_memory_for_what_was_dropped_or_is_still_to_come() -> None:
    before = resident()
    column = Growing(INT64)
    for _ in range(100):
        column.append(np.ones(MANY, np.int64))
        if len(column) > 8 * MANY:
            column.drop(MANY)
    assert resident() - before < 8 * 10 * MANY
    del column
    assert resident() - before < 8 * 2 * MANY


@pytest.mark.parametrize("seed", range(30))
def test_stamps_that_grow_know_where_a_bound_lies_to_within_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jitter = int(rng.choice([1, 1, 50]))
    every = np.sort(rng.integers(0, 1_000, 300)) + rng.integers(0, jitter, 300)
    stamps = GrowingStamps()
    for part in np.split(every, np.sort(rng.integers(0, 300, 7))):
        stamps.append(part)
        check(stamps, every[: len(stamps)], rng, exact=jitter == 1)


@pytest.mark.parametrize("seed", range(30))
def test_stamps_that_are_dropped_from_leave_nothing_out_of_a_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jitter = int(rng.choice([1, 1, 90]))
    stamps, known = GrowingStamps(), np.empty(0, np.int64)
    for turn in range(100):
        new = 100 * turn + np.arange(0, 100, 10)[: rng.integers(1, 10)] + rng.integers(0, jitter, 1)
        new = rng.permutation(new) if jitter > 1 else new
        known = np.concatenate([known, new])
        stamps.append(new)
        if rng.random() < 0.4:
            count = int(rng.integers(0, len(known) + 1))
            known = known[count:]
            stamps.drop(count)
        assert known.tolist() == stamps.values.tolist()
        check(stamps, known, rng, exact=jitter == 1, dropped=True)


def check(
    stamps: GrowingStamps, known: np.ndarray, rng: np.random.Generator, *, exact: bool, dropped: bool = False
) -> None:
    """Ranges begin and end where they should: exactly if stamps are in order, else a step further out at the most."""
    course, count = stamps.course, len(known)
    assert course.goes_up or not exact
    highest, lowest = np.maximum.accumulate(known), np.minimum.accumulate(known[::-1])[::-1]
    bounds = rng.integers(-5, 12_000 if dropped else 1_100, 40)
    for side in ("left", "right"):
        right = side == "right"
        starts, stops = course.starts(bounds, 0, 0, right=right), course.stops(bounds, 0, right=right)
        first, last = np.searchsorted(highest, bounds, side), np.searchsorted(lowest, bounds, side)
        if exact:
            assert first.tolist() == starts.tolist()
            assert last.tolist() == stops.tolist()
            continue
        assert (starts <= first).all()
        assert (last <= stops).all()
        assert (starts >= 0).all()
        assert (stops <= count).all()
        assert (stops < last + STEP).all()
        assert dropped or (first < starts + STEP).all()  # a stamp that was dropped may have been higher than all others
