"""Matches on their way out of the operator: packed in Arrow's format, and rows again.

Imports next to nothing: a worker that only unpacks starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

MATCHES = "matches binary"

_ROWS = 1 << 17  # rows packed at a time


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches as rows again."""
    for batch in batches:
        for packed in batch.column("matches"):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader


def pack_matches(matches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Matches in pieces of a size that Spark moves well."""
    for batch in gathered(matches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield sink.getvalue().to_pybytes()


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches together in larger ones."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _ROWS:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)
