"""The row that leaves the operator, with matches, refused rows or counters: its columns, how it is made and read.

Imports next to nothing: a worker that only unpacks starts fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from handfast.engines.spark.residents import settle
from handfast.engines.spark.rows import RefusedRows, pack_rows, unpack_rows
from handfast.errors import InternalError
from handfast.flow.metrics import Metrics

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

OUTPUT = "kind string, stream int, rows binary, metrics string"  # the schema, as Spark takes it
MATCHES, METRICS = "matches", "metrics"  # the kinds, besides those of refused rows
SHARE = "metrics"  # the column of a core's counters


class OutputRow(NamedTuple):
    """One row that a core gives. Its columns in Spark have these names, in this order.

    Attributes:
        kind: `MATCHES`, `METRICS`, or why its rows were refused.
        stream: The stream of refused rows.
        rows: Matches, or refused rows.
        metrics: What the core has counted so far.
    """

    kind: str
    stream: int | None = None
    rows: bytes | None = None
    metrics: str | None = None

    @staticmethod
    def of_matches(matches: pa.RecordBatch) -> OutputRow:
        return OutputRow(MATCHES, rows=pack_rows(matches))

    @staticmethod
    def of_refused(refused: RefusedRows) -> OutputRow:
        return OutputRow(refused.kind, refused.stream, refused.rows)

    @staticmethod
    def of_metrics(core: int, cores: int, share: Metrics) -> OutputRow:
        return OutputRow(METRICS, metrics=as_share(core, cores, share))


def measure(row: OutputRow) -> tuple[int, int]:
    """How large an output row is: one row, and its bytes."""
    return 1, len(row.rows or b"")


def as_frame(rows: Sequence[OutputRow]) -> pd.DataFrame:
    """Output rows as Spark takes them from a stateful operator."""
    import numpy as np  # here, as pandas: see above
    import pandas as pd

    columns = (np.array(column, object) for column in zip(*rows, strict=True))
    return pd.DataFrame(dict(zip(OutputRow._fields, columns, strict=True)))


def is_of(kind: str, stream: int | None = None) -> str:
    """The condition, in SQL, that picks the output rows of a kind, and of a stream where one is given."""
    return f"kind = '{kind}'" + (f" AND stream = {stream}" if stream is not None else "")


def kinds_in(output: DataFrame) -> set[tuple[str, int | None]]:
    """The kinds of output rows that are there, each with the stream of its rows."""
    return {(row["kind"], row["stream"]) for row in output.select("kind", "stream").collect()}


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that are packed in output rows."""
    for batch in batches:
        for packed in batch.column("rows"):
            yield from unpack_rows(packed.as_buffer())
    settle()


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
