"""What a push takes for its matches is in proportion to them: no column of a window is ever copied for its output."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf

BLOCKS, ROWS, LENGTH = 24, 500, 2_000  # 24 MB of text in blocks of a megabyte
MATCHES = 3
POOLS: list[pa.MemoryPool] = []  # kept: what was allocated in one may be freed as late as it likes


@pytest.mark.parametrize("local_join", ["index", "merge", "scan"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.list_(pa.string())])
def test_the_text_of_a_window_is_not_copied_for_a_few_matches(kind: pa.DataType, local_join: str) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("text", kind)])
    on = "r.k BETWEEN s.k AND s.k" if local_join == "merge" else "r.k = s.k"
    spec = hf.JoinSpec(("r", "s"), on, window="1 hour", time="ts", lateness="0 s")
    options = hf.LocalOptions(local_join=local_join)
    with hf.session(spec, {"r": schema, "s": schema}, options=options) as session:
        for block in range(BLOCKS):
            session.push("r", _rows(schema, block * ROWS, ROWS))
        wanted = _rows(schema, 0, BLOCKS * ROWS).take(np.linspace(0, BLOCKS * ROWS - 1, MATCHES).astype(np.int64))
        wanted = wanted.set_column(0, "ts", pa.array([BLOCKS * ROWS] * MATCHES).cast(schema.field("ts").type))
        before = pa.default_memory_pool()
        pool = pa.proxy_memory_pool(before)  # which tells the most that it has ever given
        POOLS.append(pool)
        pa.set_memory_pool(pool)
        try:
            found = pa.Table.from_batches(session.push("s", wanted))
        finally:
            pa.set_memory_pool(before)
    assert found["r_text"].to_pylist() == found["s_text"].to_pylist() == wanted["text"].to_pylist()
    assert MATCHES * LENGTH < pool.max_memory() < ROWS * LENGTH / 4


def _rows(schema: pa.Schema, start: int, count: int) -> pa.Table:
    texts = [f"{k:>{LENGTH}}" for k in range(start, start + count)]
    columns = [
        pa.array(range(start, start + count)).cast(schema.field("ts").type),
        pa.array(range(start, start + count)),
        pa.array([[text] for text in texts] if pa.types.is_list(schema.field("text").type) else texts).cast(
            schema.field("text").type
        ),
    ]
    return pa.table(columns, schema=schema)
