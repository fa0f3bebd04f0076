"""Blocks: what is made of one has its tuples, and their times no second time where a column holds them already."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from handfast.flow.block import HOME, Block
from handfast.flow.time import micros


def block_of(numbers: list[int], unit: str) -> Block:
    column = pa.array(numbers, pa.timestamp(unit))
    batch = pa.RecordBatch.from_arrays([pa.array(numbers), column], ["n", "ts"])
    return Block(batch, micros(column), np.full(len(numbers), HOME, np.uint8))


@pytest.mark.parametrize("unit", ["us", "ns", "s"])
def test_times_that_a_column_holds_are_not_held_twice(unit: str) -> None:
    rng = random.Random(unit)
    first, second = (block_of([rng.randrange(10_000) for _ in range(50)], unit) for _ in range(2))
    made = [first.sorted(), Block.concat([first, second]), first.take(np.array([3, 1])), second.slice(7, 30)]
    made.append(Block.concat(made).sorted())
    for block in made:
        assert micros(block.batch.column("ts")).tolist() == block.times.tolist()
        shared = np.shares_memory(micros(block.batch.column("ts")), block.times)
        assert shared == (unit == "us")


def test_times_that_only_look_like_a_column_stay_their_own() -> None:
    held = block_of([5, 6, 7], "us")
    other = Block(held.batch, np.array([1, 2, 3]), held.flags)
    assert [5, 6, 7, 1, 2, 3] == Block.concat([held, other]).times.tolist()
    assert [3, 1] == other.take(np.array([2, 0])).times.tolist()
    every_other = Block(held.batch.slice(0, 2), held.times[::2], held.flags[:2])
    assert [7, 5] == every_other.take(np.array([1, 0])).times.tolist()
