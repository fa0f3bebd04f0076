"""The live part: the join of two streams on Spark, batch by batch, for the oracle to judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from handfast import api
from handfast.cli.demo.judge import Judged, Verdict
from handfast.cli.demo.scenario import Scenario
from handfast.cli.interrupts import Interrupts
from handfast.judge.rows import Values, result_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT = "matches"  # the table in this process' memory that Spark writes the matches to
_LOOK = 0.2  # seconds between two looks at Spark's progress


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch of Spark's did."""

    number: int
    rows: int
    matches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Live:
    """What the live part found, and what the oracle says of it."""

    batches: Sequence[Batch]
    matches: Sequence[Values]
    judged: Judged
    verdict: Verdict


def configure(spark: SparkSession, scenario: Scenario) -> str:
    """Prepare the session; what `configure` says it has set."""
    with redirect_stdout(StringIO()) as said:
        api.configure(spark, cores=scenario.cores)
    return said.getvalue().strip()


def streams(spark: SparkSession, scenario: Scenario) -> dict[str, DataFrame]:
    """The two streams."""
    from handfast.connectors import spark_source

    return spark_source.streams(
        spark, scenario.workload, rows=scenario.rows, rows_per_trigger=scenario.rows_per_trigger
    )


def batches(matches: DataFrame, checkpoint: Path, interrupts: Interrupts) -> Iterator[Batch]:
    """Start the query, and tell of every batch when Spark has finished it."""
    query = (
        matches.writeStream.format("memory")
        .queryName(_RESULT)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    told, ended = -1, False
    while not ended:
        interrupts.check()
        ended = bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type]  # takes fractions too
        for progress in query.recentProgress:
            if progress.batchId > told and progress.numInputRows:
                told = progress.batchId
                found = progress.sink.numOutputRows
                yield Batch(told, progress.numInputRows, found, progress.batchDuration / 1_000)


def found(spark: SparkSession) -> list[Values]:
    """All matches, after the last batch."""
    return result_of(spark.table(_RESULT).toArrow())
