"""Rows gathered from many batches, and how large they are."""

from __future__ import annotations

import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from handfast.flow.block import Block
from handfast.flow.gather import gather
from handfast.flow.size import content_bytes, widest_row

ROWS = 40
COLUMNS = {
    "number": pa.array(range(ROWS)),
    "flag": pa.array([k % 3 == 0 for k in range(ROWS)]),
    "text": pa.array([None if k % 5 == 0 else "x" * k for k in range(ROWS)]),
    "large": pa.array(["y" * (k % 7) for k in range(ROWS)], pa.large_string()),
    "bytes": pa.array([b"z" * (k % 4) for k in range(ROWS)]),
    "coded": pa.array([["a", "bb", None][k % 3] for k in range(ROWS)]).dictionary_encode(),
    "decimal": pa.array([Decimal(k) for k in range(ROWS)]),
    "list": pa.array([None if k % 6 == 0 else ["w" * k] * (k % 3) for k in range(ROWS)]),
    "struct": pa.array([None if k % 7 == 0 else {"a": k, "b": "v" * k} for k in range(ROWS)]),
    "map": pa.array([[("k", k)] * (k % 3) for k in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "nothing": pa.nulls(ROWS),
}


def batch_of(names: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([COLUMNS[name] for name in names], names=names)


@pytest.mark.parametrize("seed", range(20))
def test_rows_come_in_the_order_that_is_asked_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = batch_of([name for name in COLUMNS if name != "coded"])
    cuts = [0, *np.sort(rng.integers(0, ROWS, 4)).tolist(), ROWS]
    batches = [whole.slice(a, b - a) for a, b in itertools.pairwise(cuts) if b > a]
    ends = np.cumsum([len(batch) for batch in batches])
    wanted = rng.integers(0, ROWS, int(rng.integers(1, 100)))
    if seed % 2:
        wanted.sort()
    owners = np.searchsorted(ends, wanted, side="right")
    found = gather(batches, owners, wanted - (ends - [len(b) for b in batches])[owners])
    assert whole.take(pa.array(wanted)).to_pylist() == found.to_pylist()


def test_dictionaries_of_batches_may_differ() -> None:
    batches = [
        pa.RecordBatch.from_arrays([pa.array(values).dictionary_encode()], names=["c"])
        for values in (["a", "b"], ["b", None, "c"])
    ]
    found = gather(batches, np.array([1, 0, 1, 1]), np.array([2, 1, 0, 1]))
    assert ["c", "b", "b", None] == found.column(0).to_pylist()


def test_a_dictionary_of_nothing_is_gathered_as_well() -> None:
    nothing = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.nulls(0))
    batches = [pa.RecordBatch.from_arrays([nothing], names=["c"])] * 2
    found = gather(batches, np.array([1, 0, 1]), np.array([0, 1, 1]))
    assert [None] * 3 == found.column(0).to_pylist()


def test_a_part_of_a_column_is_small_though_its_dictionary_is_large() -> None:
    large = pa.DictionaryArray.from_arrays(pa.array(range(1_000)), pa.array([f"{k:01000}" for k in range(1_000)]))
    whole = pa.RecordBatch.from_arrays([large], names=["c"])
    assert 1_000_000 <= content_bytes(whole) <= 1_010_000
    assert content_bytes(whole.slice(10, 1)) <= 1_100


@pytest.mark.parametrize("name", COLUMNS)
def test_a_size_is_that_of_the_values_wherever_they_lie(name: str) -> None:
    # what a merge of blocks goes by: all attempts of a task must come to the same state
    whole = batch_of([name])
    rows = pa.array(range(7, 31))
    taken, cut = whole.take(rows), whole.slice(7, 24)
    times, flags = np.zeros(24, np.int64), np.zeros(24, np.uint8)
    stored = Block.decode(Block(cut, times, flags).encoded).batch
    assert content_bytes(taken) == content_bytes(cut) == content_bytes(stored)
    assert widest_row(taken) == widest_row(cut) == widest_row(stored)
    if name != "nothing":
        assert 0 < widest_row(cut) <= max(content_bytes(cut) * 16, 1)
