"""Rows that are pushed: those that have their stream's schema already become what those become that are cast to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.local.fitting import Fitting
from handfast.flow.wide import wide_schema

NUMBERS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int32()), ("x", pa.float64()), ("b", pa.bool_())])
TEXTS = pa.schema([*NUMBERS, ("t", pa.string()), ("l", pa.list_(pa.binary()))])


def _rows(schema: pa.Schema, count: int) -> pa.Table:
    every = {
        "ts": pa.array(range(count)).cast(pa.timestamp("us", "UTC")),
        "n": pa.array([None if k % 7 == 3 else k for k in range(count)], pa.int32()),
        "x": pa.array([k / 3 for k in range(count)]),
        "b": pa.array([k % 3 == 0 for k in range(count)]),
        "t": pa.array([None if k % 5 == 1 else "é" * k for k in range(count)]),
        "l": pa.array([[b"l"] * (k % 4) for k in range(count)]),
    }
    return pa.table([every[name] for name in schema.names], schema=schema)


@pytest.mark.parametrize("schema", [NUMBERS, TEXTS])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_rows_that_fit_become_what_rows_become_that_are_cast(schema: pa.Schema, count: int) -> None:
    fitting, rows = Fitting("r", schema), _rows(schema, count + 3)
    wanted = rows.slice(3).to_pylist()
    (whole,) = rows.to_batches()
    in_chunks = pa.concat_tables([rows.slice(3, count // 2), rows.slice(3 + count // 2)])
    turned = rows.slice(3).select(list(reversed(schema.names)))
    for given in (rows.slice(3), whole.slice(3), in_chunks, turned):
        own = fitting(given)
        assert (wide_schema(schema), wanted) == (own.schema, own.to_pylist())


def test_who_pushed_rows_may_write_over_them() -> None:
    numbers, times = np.arange(8), np.arange(8)
    rows = pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "n": pa.array(numbers)})
    spec = hf.JoinSpec(("r", "s"), "r.n = s.n", window="1 s", time="ts", lateness="0 s", select="r.n")
    with hf.session(spec, {"r": rows.schema, "s": rows.schema}) as session:
        session.push("r", rows.to_batches()[0])
        other = pa.table({"ts": rows["ts"], "n": np.arange(8)})
        numbers[:] = -1
        assert sum(batch.num_rows for batch in session.push("s", other)) == 8
