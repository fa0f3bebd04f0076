"""Columns side by side: they hold what the blocks hold, at the same positions, or say that they cannot."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from handfast.core.flat import FlatColumns

TYPES = {
    "int64": pa.array([1, -2, 3, 4], pa.int64()),
    "int8": pa.array([1, -2, 3, 4], pa.int8()),
    "float": pa.array([0.5, float("nan"), -0.0, 2.0], pa.float32()),
    "time": pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("name", TYPES)
def test_what_is_taken_is_what_stands_there(name: str) -> None:
    column = TYPES[name]
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    flat = FlatColumns()
    assert not flat.has([0])
    assert flat.make(0, [batch.slice(0, 1), batch.slice(2, 2)], [0, 2], 4)  # what stood at 1 is gone
    flat.append(batch.slice(1, 3))
    taken = flat.take(0, np.array([6, 0, 3, 4, 6]))
    right = pa.concat_arrays([column.slice(3, 1), column.slice(0, 1), column.slice(3, 1), column.slice(1, 1)])
    assert pa.concat_arrays([right, column.slice(3, 1)]).type == taken.type
    assert str(pa.concat_arrays([right, column.slice(3, 1)])) == str(taken)


@pytest.mark.parametrize("column", [pa.array(["a", "b"]), pa.array([True, False]), pa.array([1, None])])
def test_a_column_that_cannot_be_had_is_left_in_its_blocks(column: pa.Array) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["x"])
    flat = FlatColumns()
    assert not flat.make(0, [batch], [0], 2)
    assert not flat.has([0])


def test_a_null_that_comes_later_ends_it() -> None:
    flat = FlatColumns()
    whole = pa.RecordBatch.from_arrays([pa.array([1, 2])], ["x"])
    assert flat.make(0, [whole], [0], 2)
    flat.append(pa.RecordBatch.from_arrays([pa.array([3, None])], ["x"]))
    assert not flat.has([0])
    assert not flat.make(0, [whole], [0], 2)
