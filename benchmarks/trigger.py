"""What does a warm trigger of a small streaming batch cost, against the bare stateful operator?

All queries read the same small files, one of each stream per trigger, and write nothing. They take turns, each for a few
triggers at a time after warm-up triggers that do not count: so whatever else the machine does disturbs all of them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

import handfast as hf
from benchmarks.record import record
from handfast import oracle
from handfast.connectors.generate import CellJoin, Workload
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

GOAL = 2.0
CORES = 2
ROWS = 100  # of each stream in a trigger
WARM_UP = 2  # triggers at the start of every turn that do not count
TIMED = 4  # triggers of a turn that count
WORKLOAD = Workload(CellJoin(domain=300), seed=42, rate=1_000)
JOINS = {"hash": "r.x = s.a AND ABS(r.y - s.b) < 20", "range": WORKLOAD.on}

Frames = dict[str, DataFrame]


def spec(join: str) -> hf.JoinSpec:
    """A join of two windows of one second: ten triggers' rows."""
    return hf.JoinSpec(("r", "s"), JOINS[join], window="1 second", time="ts", lateness="0 seconds")


# -- the bare operator ---------------------------------------------------------------------------------------------------


class CountInPandas(StatefulProcessor):
    """Counts the rows of a key in one value of state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"count": [self._add(sum(map(len, rows)))]})

    def _add(self, rows: int) -> int:
        before = self._count.get()
        count = rows + (before[0] if before is not None else 0)
        self._count.update((count,))
        return count

    def close(self) -> None:
        """Nothing is open."""


class CountRows(CountInPandas):
    """The same, on rows instead of pandas."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # type: ignore[override]
        yield Row(count=self._add(sum(1 for _ in rows)))


def both(frames: Frames) -> Any:
    """The rows of both streams with as many keys as there are cores: the least that a stateful operator can have to do."""
    r, s = (frames[stream].select("id", "ts", (F.col("id") % CORES).alias("key")) for stream in ("r", "s"))
    return r.union(s).groupBy("key")


QUERIES: dict[str, Callable[[Frames], DataFrame]] = {
    "bare, in pandas": lambda frames: both(frames).transformWithStateInPandas(
        CountInPandas(), outputStructType="count bigint", outputMode="Append", timeMode="None"
    ),
    "bare, by rows": lambda frames: both(frames).transformWithState(
        CountRows(), outputStructType="count bigint", outputMode="Append", timeMode="None"
    ),
    "handfast, hash": lambda frames: hf.join(frames, spec("hash")),
    "handfast, range": lambda frames: hf.join(frames, spec("range")),
}


# -- the runs ------------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """One session, its inputs, and what was measured."""

    spark: SparkSession
    folder: Path
    triggers: int = 0  # files written of each stream
    progress: dict[str, list[dict[str, int]]] = field(default_factory=lambda: {name: [] for name in QUERIES})

    def write_files(self, triggers: int) -> None:
        """Write the rows of so many more triggers."""
        for number in range(self.triggers, self.triggers + triggers):
            for stream in ("r", "s"):
                path = self.folder / stream / f"{number:05d}.parquet"
                path.parent.mkdir(exist_ok=True)
                pq.write_table(WORKLOAD.table(stream, number * ROWS, (number + 1) * ROWS), path)
                os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
        self.triggers += triggers

    def frames(self) -> Frames:
        """Both streams, a file of each per trigger."""
        found = {}
        for stream in ("r", "s"):
            path = str(self.folder / stream)
            schema = self.spark.read.parquet(path).schema
            found[stream] = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        return found

    def run(self, name: str, sink: str = "noop") -> list[dict[str, int]]:
        """Run a query over the files it has not read yet; the durations of its triggers in ms."""
        home = self.folder / f"{name} to {sink}"
        writer = QUERIES[name](self.frames()).writeStream.format(sink).option("checkpointLocation", str(home / "checkpoint"))
        if sink != "noop":
            writer = writer.option("path", str(home / "output"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [p["durationMs"] for p in query.recentProgress if p["numInputRows"] == 2 * ROWS]

    def check(self) -> None:
        """Compare every query's output with what is right."""
        tables = {stream: WORKLOAD.table(stream, 0, self.triggers * ROWS) for stream in ("r", "s")}
        for join in JOINS:
            self.run(f"handfast, {join}", "parquet")
            output = self.spark.read.parquet(str(self.folder / f"handfast, {join} to parquet" / "output"))
            right = multiset(oracle.result(spec(join).bind(schemas_of(tables)), tables_of(tables)))
            assert right and right == multiset(result_of(output.toArrow())), f"The {join} join finds what is not right"
            print(f"{join}: {sum(right.values())} matches, as the oracle has them")
        for name in ("bare, in pandas", "bare, by rows"):
            self.run(name, "parquet")
            output = self.spark.read.parquet(str(self.folder / f"{name} to parquet" / "output"))
            counts = sorted(row["count"] for row in output.collect())[-CORES:]
            assert [self.triggers * ROWS] * CORES == counts, f"{name} counts {counts}"

    def turn(self) -> None:
        """Let every query have its turn."""
        self.write_files(WARM_UP + TIMED)
        for name in QUERIES:
            durations = self.run(name)
            assert len(durations) >= WARM_UP + TIMED, f"{name} had {len(durations)} triggers"
            self.progress[name].append(durations[-TIMED:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=6, help="of every query")
    turns = parser.parse_args().turns
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.local.dir", f"{folder}/local")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        hf.configure(spark, cores=CORES)
        bench = Bench(spark, Path(folder))
        bench.write_files(6)
        bench.check()
        for turn in range(turns):
            bench.turn()
            print(f"turn {turn + 1} of {turns}", flush=True)
        report(bench.progress, spark.version)
        spark.stop()
