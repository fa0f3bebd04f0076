"""A workload as a Spark source: `format("handfast")`, batch and streaming, replayable row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from handfast.connectors.generate import KINDS, MAX_ROWS, STREAMS, Workload, check_stream, did_you_mean
from handfast.errors import SpecError

FORMAT = "handfast"
_LIMITS = ("rows", "rowsPerTrigger", "partitions")
_PARTITIONS = 2  # tasks per stream and trigger, where none are asked for
_BATCH_ROWS = 1 << 16  # rows of one Arrow batch
_SPARK_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


def streams(
    spark: SparkSession,
    workload: Workload,
    *,
    rows: int | None = None,
    rows_per_trigger: int | None = None,
    partitions: int = _PARTITIONS,
) -> dict[str, DataFrame]:
    """Load both streams of `workload` as streaming DataFrames: the first `rows` to arrive of each, or without end.

    A trigger takes `rows_per_trigger` rows of each stream, by default those of one second of event time.
    """
    _register(spark)
    per_trigger = workload.rate if rows_per_trigger is None else rows_per_trigger
    feeds = {name: Feed(workload, name, rows, per_trigger, partitions) for name in STREAMS}
    return {name: spark.readStream.format(FORMAT).options(**feed.options()).load() for name, feed in feeds.items()}


def tables(
    spark: SparkSession, workload: Workload, *, rows: int, partitions: int = _PARTITIONS
) -> dict[str, DataFrame]:
    """Load the first `rows` to arrive of both streams of `workload` as batch DataFrames."""
    _register(spark)
    feeds = {name: Feed(workload, name, rows, workload.rate, partitions) for name in STREAMS}
    return {name: spark.read.format(FORMAT).options(**feed.options()).load() for name, feed in feeds.items()}


def _register(spark: SparkSession) -> None:
    """Make the source known to a session."""
    try:
        spark.dataSource.register(WorkloadSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        # Spark looks whether the name is taken in the active session, which is another one and has the source: now it
        # is this one.
        spark.createDataFrame([], "nothing int")
        spark.dataSource.register(WorkloadSource)


class WorkloadSource(DataSource):
    """One stream of a workload, by the options that `Feed.read` takes."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        feed = Feed.read(self.options)
        return ", ".join(f"{f.name} {_SPARK_TYPES[f.type]}" for f in feed.workload.schema(feed.stream))

    def reader(self, schema: StructType) -> WorkloadReader:
        return WorkloadReader(Feed.read(self.options))

    def streamReader(self, schema: StructType) -> WorkloadStreamReader:
        return WorkloadStreamReader(Feed.read(self.options))


@dataclass(frozen=True, slots=True)
class Feed:
    """What one source reads: a stream of a workload, how much of it in all and at a time, in how many tasks."""

    workload: Workload
    stream: str
    rows: int | None
    rows_per_trigger: int
    partitions: int = _PARTITIONS

    def __post_init__(self) -> None:
        check_stream(self.stream)
        for name, value in zip(_LIMITS, (self.rows, self.rows_per_trigger, self.partitions), strict=True):
            if value is not None and not 1 <= value <= MAX_ROWS:
                raise SpecError(f"Option {name!r} must be a whole number from 1 to {MAX_ROWS:,}, not {value!r}")

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Feed:
        """Read the options of a Spark source; like all of Spark's, their names in any case."""
        given = {name.lower(): value for name, value in options.items()}
        for needed in ("workload", "stream"):
            if needed not in given:
                raise SpecError(f"Source {FORMAT!r} needs option {needed!r}; add .option({needed!r}, …)")
        kind = given["workload"]
        parameters = {_option(name).lower(): name for name in Workload.parameters(kind)}
        names = ("workload", "stream", *_LIMITS, *(_option(name) for name in parameters.values()))
        for name in given:
            if name not in {known.lower() for known in names}:
                raise SpecError(f"Workload {kind!r} takes no option {name!r}{did_you_mean(name, names)}")
        workload = Workload.named(kind, **{parameters[n]: value for n, value in given.items() if n in parameters})
        limits = {name: _whole(name, given[name.lower()]) for name in _LIMITS if name.lower() in given}
        return cls(
            workload,
            given["stream"],
            limits.get("rows"),
            limits.get("rowsPerTrigger", workload.rate),
            limits.get("partitions", _PARTITIONS),
        )

    def options(self) -> dict[str, str]:
        """The options that `read` turns into this value."""
        limits = zip(_LIMITS, (self.rows, self.rows_per_trigger, self.partitions), strict=True)
        return self.identity() | {name: str(value) for name, value in limits if value is not None}

    def identity(self) -> dict[str, str]:
        """The options that say which rows they are, not how many."""
        workload, kind = self.workload, self.workload.kind
        return {
            "workload": workload.name,
            "stream": self.stream,
            "seed": str(workload.seed),
            "rate": str(workload.rate),
            "start": workload.start.astimezone(UTC).isoformat(),
            "disorder": f"{workload.disorder // timedelta(microseconds=1)} us",
        } | {_option(f.name): str(getattr(kind, f.name)) for f in fields(KINDS[workload.name])}

    def split(self, start: int, stop: int) -> list[Rows]:
        """Cut rows [`start`, `stop`) into consecutive parts of about the same length, one per task."""
        parts = min(self.partitions, stop - start)
        cuts = [start + (stop - start) * part // parts for part in range(parts + 1)] if parts else []
        return [Rows(low, high) for low, high in pairwise(cuts)]

    def batches(self, rows: InputPartition) -> Iterator[pa.RecordBatch]:
        """Generate the rows of one task."""
        assert isinstance(rows, Rows)
        for start in range(rows.start, rows.stop, _BATCH_ROWS):
            table = self.workload.table(self.stream, start, min(start + _BATCH_ROWS, rows.stop))
            yield from table.combine_chunks().to_batches()


@dataclass(frozen=True)
class Rows(InputPartition):
    """Rows [`start`, `stop`) of a stream: the work of one task."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class WorkloadReader(DataSourceReader):
    """The first rows of a stream, as a bounded input."""

    feed: Feed

    def partitions(self) -> list[Rows]:
        if self.feed.rows is None:
            raise SpecError("A batch read of an endless workload needs an end; add .option('rows', …)")
        return self.feed.split(0, self.feed.rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.feed.batches(partition)


@dataclass(frozen=True, slots=True)
class WorkloadStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream, some rows per trigger; an offset is the number of rows read, beside what rows they are."""

    feed: Feed

    def initialOffset(self) -> dict[str, Any]:
        return self._offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.feed.rows_per_trigger)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        row, end = self._row(start), self.feed.rows
        if isinstance(limit, ReadMaxRows):
            reach = row + limit.max_rows
            return self._offset(reach if end is None else max(row, min(reach, end)))
        return self._offset(max(row, self._end()))

    def prepareForTriggerAvailableNow(self) -> None:
        self._end()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self.feed.rows is None else self._offset(self.feed.rows)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Rows]:
        return self.feed.split(self._row(start), self._row(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.feed.batches(partition)

    def _end(self) -> int:
        """The last row of all, for triggers that read whatever there is."""
        if self.feed.rows is None:
            raise SpecError("A trigger that reads all there is needs an end; add .option('rows', …)")
        return self.feed.rows

    def _offset(self, row: int) -> dict[str, Any]:
        return {"row": row, "of": self._of()}

    def _row(self, offset: dict[str, Any]) -> int:
        if offset.get("of") != self._of():  # the rows before would be of one stream, the rows after of another
            raise SpecError(
                f"The checkpoint is of the rows of ({offset.get('of')}), the query asks for ({self._of()}); "
                "take the same options, or a new checkpoint"
            )
        return int(offset["row"])

    def _of(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.feed.identity().items())


def _option(parameter: str) -> str:
    """A parameter's name as Spark spells options: match_rate, matchRate."""
    first, *others = parameter.split("_")
    return first + "".join(word.capitalize() for word in others)


def _whole(option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SpecError(f"Option {option!r} must be a whole number, not {value!r}") from None
