"""A workload as a Spark source: `format("handfast")`, batch and streaming, replayable row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from handfast.connectors.feed import FORMAT, PARTITIONS, Feed
from handfast.connectors.generate import STREAMS, Workload
from handfast.errors import SpecError

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
    partitions: int = PARTITIONS,
) -> dict[str, DataFrame]:
    """Load both streams of `workload` as streaming DataFrames: the first `rows` to arrive of each, or without end.

    A trigger takes `rows_per_trigger` rows of each stream, by default those of one second of event time.
    """
    register(spark)
    per_trigger = workload.rate if rows_per_trigger is None else rows_per_trigger
    feeds = {name: Feed(workload, name, rows, per_trigger, partitions) for name in STREAMS}
    return {name: spark.readStream.format(FORMAT).options(**feed.options()).load() for name, feed in feeds.items()}


def tables(spark: SparkSession, workload: Workload, *, rows: int, partitions: int = PARTITIONS) -> dict[str, DataFrame]:
    """Load the first `rows` to arrive of both streams of `workload` as batch DataFrames."""
    register(spark)
    feeds = {name: Feed(workload, name, rows, workload.rate, partitions) for name in STREAMS}
    return {name: spark.read.format(FORMAT).options(**feed.options()).load() for name, feed in feeds.items()}


def register(spark: SparkSession) -> None:
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
        return [Rows(*part) for part in self.feed.split(0, self.feed.rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return self.feed.batches(partition.start, partition.stop)


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
        return [Rows(*part) for part in self.feed.split(self._row(start), self._row(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        return self.feed.batches(partition.start, partition.stop)

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
