"""Rows as bytes in Arrow's format, as matches and refused rows travel; both the way in and the way out use it.

Imports next to nothing: a worker that only unpacks starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

LATE, REJECTED = "late", "rejected"  # why rows are refused: below the watermark; without a valid time


class RefusedRows(NamedTuple):
    """Rows of one stream that do not join, and why: `LATE` or `REJECTED`."""

    kind: str
    stream: int
    rows: bytes


def pack_rows(batch: pa.RecordBatch) -> bytes:
    """Rows in Arrow's format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack_rows(packed: pa.Buffer | bytes) -> Iterator[pa.RecordBatch]:
    """What `pack_rows` has packed."""
    with pa.ipc.open_stream(packed) as reader:
        yield from reader


def count_rows(packed: bytes) -> int:
    """How many rows are packed here."""
    return sum(batch.num_rows for batch in unpack_rows(packed))
