"""Values taken from many blocks in one call are those that lie there."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.engines.local.fitting import copied
from handfast.flow.block import Block
from handfast.kernels.taking import Blocks

VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127, 3],
    pa.uint16(): [0, 65_535],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1, 0],
    pa.float32(): [0.5, float("inf")],
    pa.float64(): [0.25, 1e300],
    pa.timestamp("ns", "UTC"): [0, 1],
    pa.date32(): [1, 20_000],
    pa.decimal128(38, 2): [Decimal("0.25"), Decimal("-99999999999999999999999999.75")],
    pa.binary(4): [b"abcd", b"\0\1\2\3"],
}


@pytest.mark.parametrize("seed", range(8))
def test_what_is_taken_is_what_lies_there(seed: int) -> None:
    rng = random.Random(seed)
    counts = [rng.randrange(1, rng.choice([3, 300])) for _ in range(rng.choice([1, 2, 40]))]
    gap = rng.choice([0, 5])  # positions that belong to no block any more
    starts = np.cumsum([gap, *(count + gap for count in counts[:-1])]).astype(np.int64)
    blocks = []
    for count in counts:
        before = rng.randrange(9)  # the columns are slices of longer ones
        columns = [pa.array([rng.choice(own) for _ in range(before + count)], t) for t, own in VALUES.items()]
        batch = pa.RecordBatch.from_arrays(columns, [f"c{k}" for k in range(len(columns))]).slice(before)
        blocks.append(Block(batch, np.zeros(count, np.int64), np.zeros(count, np.uint8)))
    owners = np.array([rng.randrange(len(counts)) for _ in range(200)])
    rows = np.array([rng.randrange(counts[owner]) for owner in owners.tolist()])
    together, positions = Blocks(blocks, starts), starts[owners] + rows
    numbers = together.owners(positions)
    assert numbers is None or owners.tolist() == numbers.tolist()
    for place in range(len(VALUES)):
        expected = [
            blocks[owner].batch.column(place)[row] for owner, row in zip(owners.tolist(), rows.tolist(), strict=True)
        ]
        assert together.takes(place)
        assert expected == list(together.take(place, numbers, positions))


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array(["a", "b"]), pa.array([[1], []]), pa.nulls(2)])
def test_what_differs_in_length_or_is_null_is_not_taken(column: pa.Array) -> None:
    good = Block(pa.RecordBatch.from_arrays([pa.array([1, 2])], ["c"]), np.zeros(2, np.int64), np.zeros(2, np.uint8))
    other = Block(pa.RecordBatch.from_arrays([column], ["c"]), good.times, good.flags)
    assert Blocks((good,), np.zeros(1, np.int64)).takes(0)
    assert not Blocks((good, other), np.array([0, 2])).takes(0)


def test_what_is_pushed_is_copied() -> None:
    values = np.arange(10)
    batch = pa.RecordBatch.from_arrays([pa.array(values), pa.array([None, True] * 5)], ["n", "b"]).slice(3)
    own = copied(batch)
    before = batch.to_pylist()
    values[:] = -1
    assert before == own.to_pylist()
