"""Steps keep the order of rank, and two comparisons of stamps say what the windows hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.engines.hardware.steps import in_steps, lowest_held
from handfast.flow.block import Block
from handfast.judge import oracle
from handfast.spec.window import CountWindow, TimeWindow, Window


def stamped(rng: random.Random, rows: tuple[int, int]) -> list[Block]:
    """Two streams of tuples with times that often tie, stamped as the oracle's rule says: time, then stream."""
    times = [sorted(rng.randrange(12) for _ in range(count)) for count in rows]
    order = sorted((time, stream, place) for stream, own in enumerate(times) for place, time in enumerate(own))
    seen: list[list[list[int]]] = [[[], []], [[], []]]
    counts = [0, 0]
    for _, stream, _ in order:
        for other in (0, 1):
            seen[stream][other].append(counts[other])
        counts[stream] += 1
    nothing = [pa.RecordBatch.from_pydict({"x": [0] * len(own)}) for own in times]
    flags = [np.zeros(len(own), np.uint8) for own in times]
    return [
        Block(nothing[k], np.array(times[k], np.int64), flags[k], tuple(np.array(s, np.int64) for s in seen[k]))
        for k in (0, 1)
    ]


WINDOWS: list[Window] = [CountWindow(1), CountWindow(3), CountWindow(99), TimeWindow(1), TimeWindow(4), TimeWindow(99)]


@pytest.mark.parametrize("seed", range(6))
def test_a_pair_is_held_iff_neither_is_below_the_others_low(seed: int) -> None:
    check_stamps(lowest_held, seed)


def check_stamps(low_of: Callable[[Window, Block, Block, int], Any], seed: int) -> None:
    rng = random.Random(seed)
    r, s = blocks = stamped(rng, (rng.randint(1, 15), rng.randint(1, 15)))
    stamps = [
        [
            oracle.Stamp(int(a + b), int(time), place, (int(a), int(b)))
            for place, (time, a, b) in enumerate(zip(block.times, *block.seen, strict=True))
        ]
        for block in blocks
    ]
    for of_r in WINDOWS:
        for of_s in WINDOWS:
            low_of_r, low_of_s = low_of(of_s, s, r, 1), low_of(of_r, r, s, 0)
            for i, one in enumerate(stamps[0]):
                for j, other in enumerate(stamps[1]):
                    held = (
                        oracle.holds(of_r, one, other, stream=0)
                        if one.rank < other.rank
                        else oracle.holds(of_s, other, one, stream=1)
                    )
                    assert held == (i >= low_of_s[j] and j >= low_of_r[i]), (of_r, of_s, one, other)


@pytest.mark.parametrize("seed", range(4))
def test_steps_bring_every_tuple_in_the_order_of_rank(seed: int) -> None:
    check_order(in_steps, seed)


def check_order(cut: Callable[[list[Block]], Iterable[Any]], seed: int) -> None:
    rng = random.Random(seed)
    blocks = stamped(rng, (rng.randint(1, 20), rng.randint(1, 20)))
    ranks = [np.sum(block.seen, axis=0) for block in blocks]
    steps = list(cut(blocks))
    fed = [ranks[each[0]][each[1]] for step in steps for each in step if each is not None]
    assert list(range(sum(map(len, blocks)))) == fed
    # a tuple of S takes the one of R right before it along
    assert all(not (before[1] is None and after[0] is None) for before, after in pairwise(steps))
