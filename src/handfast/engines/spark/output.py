"""What leaves the operator, matches, refused rows and counters: packed in Arrow's format, and rows again.

Imports next to nothing: a worker that only unpacks starts fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from handfast.errors import InternalError
from handfast.flow.metrics import Metrics

OUTPUT = "kind string, stream int, rows binary, metrics string"
COLUMNS = ("kind", "stream", "rows", "metrics")
MATCHES, LATE, REJECTED, METRICS = "matches", "late", "rejected", "metrics"  # the kinds

Output = tuple[str, int | None, bytes | None, str | None]  # kind, stream of refused rows, rows, a core's counters


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed rows as rows again."""
    for batch in batches:
        for packed in batch.column("rows"):
            with pa.ipc.open_stream(packed.as_buffer()) as reader:
                yield from reader


def pack_rows(batch: pa.RecordBatch) -> bytes:
    """Rows in Arrow's format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def count_rows(packed: bytes) -> int:
    """How many rows are packed here."""
    with pa.ipc.open_stream(packed) as reader:
        return sum(batch.num_rows for batch in reader)


def as_share(core: int, cores: int, share: Metrics) -> str:
    """What one of so many cores has counted so far."""
    return json.dumps({"core": core, "cores": cores, "metrics": share.encode()})


def total(shares: Iterable[str]) -> Metrics:
    """What all cores have counted together."""
    by_core = {share["core"]: share for share in map(json.loads, shares)}
    cores = next(iter(by_core.values()))["cores"]
    if len(by_core) < cores:
        raise InternalError(f"Of {cores} cores only {sorted(by_core)} have handed out their counters")
    return Metrics.total([Metrics.decode(by_core[core]["metrics"]) for core in range(cores)])
