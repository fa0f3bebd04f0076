"""How many rows a second go through the sequencer, against the same query without it?

Where windows count tuples, one task gives every tuple its place before the cores join them. Both queries join the same
rows by the same predicate, over windows that hold about as many tuples: one by time, one by count. A trigger takes so
many rows that its fixed costs matter little. The queries take turns; the first turn of each does not count, nor does a
turn's first trigger.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import handfast as hf
from benchmarks.trigger import setting
from handfast.connectors.generate import CellJoin, Workload
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

CORES = 2
ROWS = 200_000  # of each stream in a trigger
CHECKED = 1_000  # of each stream, compared with the oracle
TIMED = 3  # triggers of a turn that count
HELD = 50_000  # tuples in a window
WORKLOAD = Workload(CellJoin(domain=1_000_000), seed=7, rate=HELD)  # HELD rows of each stream in a second
ON = "r.x = s.a"
WINDOWS = {"without: time windows": "1 second", "with: count windows": f"{HELD} rows"}
RESULT = Path(__file__).parent / "results" / "sequencer.json"


@dataclass
class Bench:
    """One session, its inputs, and the rows a second of every trigger that counts."""

    spark: SparkSession
    folder: Path
    files: int = 0
    turns: dict[str, list[list[float]]] = field(default_factory=lambda: {name: [] for name in WINDOWS})

    def check(self) -> None:
        """Compare both joins with the oracle on rows that it can manage."""
        few = Workload(CellJoin(domain=100), seed=7, rate=100)
        tables = {stream: few.table(stream, 0, CHECKED) for stream in ("r", "s")}
        for name, window in {"time": "1 second", "count": "100 rows"}.items():
            spec = hf.JoinSpec(("r", "s"), ON, window=window, time="ts", lateness="0 seconds")
            join = spec.bind(schemas_of(tables))
            right = multiset(oracle.result(join, oracle.final(join, oracle.admit(join, [tables_of(tables)]))))
            home = self.folder / f"checked by {name}"
            for stream, table in tables.items():
                (home / stream).mkdir(parents=True)
                pq.write_table(table, home / stream / "0.parquet")
            found = self.run(home, spec, "parquet")
            assert right and right == multiset(result_of(found.toArrow())), (
                f"The join by {name} finds what is not right"
            )
            print(f"by {name}: {sum(right.values())} matches, as the oracle has them")

    def run(self, home: Path, spec: hf.JoinSpec, sink: str, inputs: Path | None = None) -> Any:
        """Run a query over the files it has not read; what it found, or the rows a second of its triggers."""
        frames = {}
        for stream in spec.names:
            path = str((inputs or home) / stream)
            schema = self.spark.read.parquet(path).schema
            frames[stream] = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        writer = hf.join(frames, spec).writeStream.format(sink).option("checkpointLocation", str(home / "checkpoint"))
        if sink != "noop":
            writer = writer.option("path", str(home / "output"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        if sink != "noop":
            return self.spark.read.parquet(str(home / "output"))
        progress = [p for p in query.recentProgress if p["numInputRows"]]
        return [p["numInputRows"] / (p["durationMs"]["triggerExecution"] / 1_000) for p in progress]

    def turn(self, *, counts: bool) -> None:
        """Let both queries have a turn over new files."""
        for number in range(self.files, self.files + 1 + TIMED):
            for stream in ("r", "s"):
                path = self.folder / stream / f"{number:05d}.parquet"
                path.parent.mkdir(exist_ok=True)
                pq.write_table(WORKLOAD.table(stream, number * ROWS, (number + 1) * ROWS), path)
                os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
        self.files += 1 + TIMED
        for name, window in WINDOWS.items():
            spec = hf.JoinSpec(("r", "s"), ON, window=window, time="ts", lateness="0 seconds")
            rates = self.run(self.folder / name, spec, "noop", self.folder)
            assert len(rates) == 1 + TIMED, f"{name} had {len(rates)} triggers"
            if counts:
                self.turns[name].append(rates[1:])


def report(turns: dict[str, list[list[float]]]) -> None:
    """Print a table and the answer, and write both down."""
    figures = {}
    print(f"\n{'query':<24}{'median':>16}{'least':>16}{'most':>16}")
    for name, own in turns.items():
        rates = [rate for turn in own for rate in turn]
        low, most, median = min(rates), max(rates), statistics.median(rates)
        figures[name] = {"triggers": len(rates), "median": round(median), "least": round(low), "most": round(most)}
        figures[name]["turns"] = [round(statistics.median(turn)) for turn in own]
        print(f"{name:<24}{median:>10,.0f} rows/s{low:>9,.0f} rows/s{most:>9,.0f} rows/s")
    without, with_it = (figures[name]["median"] for name in WINDOWS)
    answer = (
        f"{with_it:,} rows a second go through the sequencer and the join behind it on {CORES} cores; "
        f"{without:,} through the same query without it: {without / with_it:.2f} times as many"
    )
    print(f"\n{answer}")
    about = {"question": (__doc__ or "").splitlines()[0], "answer": answer, "ratio": round(without / with_it, 2)}
    about |= {
        "seed": WORKLOAD.seed,
        "rows_per_stream_and_trigger": ROWS,
        "cores": CORES,
        "join": ON,
        "windows": WINDOWS,
    }
    RESULT.write_text(json.dumps(about | setting() | {"queries": figures}, indent=2, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of every query")
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
        bench.check()
        bench.turn(counts=False)
        for turn in range(turns):
            bench.turn(counts=True)
            print(f"turn {turn + 1} of {turns}", flush=True)
        report(bench.turns)
        spark.stop()


if __name__ == "__main__":
    main()
