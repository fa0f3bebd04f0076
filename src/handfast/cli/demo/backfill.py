"""The backfill: the same join over history in files, by `hf.join` and by Spark's own join by buckets, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from handfast import api
from handfast.cli.demo import buckets
from handfast.cli.demo.scenario import Scenario

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, BUCKETS = "hf.join", "Spark's own join by buckets"
_TURNS = 2  # the first one of each also compiles and warms up
_FILE = 250_000  # rows


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a join found, and how long it took.

    Attributes:
        matches: How many rows it gave.
        checksum: The sum of the hashes of these rows, whatever their order.
        seconds: From the files to both of these.
    """

    join: str
    matches: int
    checksum: int
    seconds: float

    @property
    def result(self) -> tuple[int, int]:
        """What is compared."""
        return self.matches, self.checksum


@dataclass(frozen=True, slots=True)
class Backfill:
    """All runs of both joins over the same rows."""

    rows: int  # of both streams
    runs: tuple[Run, ...]

    @property
    def equal(self) -> bool:
        """Whether every run gave the same rows."""
        return len({run.result for run in self.runs}) == 1

    def best(self, join: str) -> Run:
        """The fastest run of a join."""
        return min((run for run in self.runs if run.join == join), key=lambda run: run.seconds)

    @property
    def ratio(self) -> float:
        """How many times as fast as Spark's own join `hf.join` is, by their fastest runs."""
        return self.best(BUCKETS).seconds / self.best(OURS).seconds


def write_history(scenario: Scenario, folder: Path) -> None:
    """Write the rows of both streams to Parquet files."""
    bounds = [*range(0, scenario.backfill, _FILE), scenario.backfill]
    for name in scenario.spec.names:
        (folder / name).mkdir(parents=True)
        for number, (start, stop) in enumerate(pairwise(bounds)):
            pq.write_table(scenario.history.table(name, start, stop), folder / name / f"{number:03}.parquet")


def joins(spark: SparkSession, scenario: Scenario, folder: Path) -> Iterator[tuple[str, Callable[[], Run]]]:
    """Every run, in turns: which join it is, and what runs it."""
    inputs = {name: spark.read.parquet(str(folder / name)) for name in scenario.spec.names}
    for name, rows in inputs.items():
        rows.createOrReplaceTempView(name)
    asked: dict[str, Callable[[], DataFrame]] = {
        OURS: lambda: api.join(inputs, scenario.spec),
        BUCKETS: lambda: spark.sql(buckets.query(scenario)),
    }
    for _ in range(_TURNS):
        for join, ask in asked.items():
            yield join, lambda join=join, ask=ask: _timed(join, ask)  # type: ignore[misc]


def _timed(join: str, ask: Callable[[], DataFrame]) -> Run:
    start = perf_counter()
    matches, checksum = reduced(ask())
    return Run(join, matches, checksum, perf_counter() - start)


def reduced(rows: DataFrame) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes over all columns; Spark computes both."""
    columns = ", ".join(f"`{column}`" for column in rows.columns)
    found = rows.selectExpr(f"xxhash64({columns}) AS hash").selectExpr(
        "count(*)",
        "coalesce(sum(CAST(hash AS DECIMAL(20))), 0)",  # decimals: a sum of such numbers leaves 64 bits
    )
    count, checksum = found.collect()[0]
    return int(count), int(checksum)
