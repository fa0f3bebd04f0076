"""What does a warm trigger of a small streaming batch cost, against the bare stateful operator?

All queries read the same small files, one of each stream per trigger, and write nothing. They take turns, each for a
few triggers at a time: so whatever else the machine does disturbs all of them alike. Every query's first turn, while
the JVM still compiles, does not count, nor do the first triggers of a turn, while the query starts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

import handfast as hf
from handfast.connectors.generate import CellJoin, Workload
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

GOAL = 2.0
CORES = 2
ROWS = 100  # of each stream in a trigger
WARM_UP = 2  # triggers at the start of every turn that do not count
TIMED = 5  # triggers of a turn that count
FIRST_TURN = 12  # triggers of the turn that does not count
WORKLOAD = Workload(CellJoin(domain=2_000), seed=42, rate=1_000)
JOINS = {"hash": "r.x = s.a", "range": "r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y < s.b"}

Frames = dict[str, DataFrame]
Durations = list[dict[str, int]]  # of a run's triggers, in ms and by what they were spent on


def spec(join: str) -> hf.JoinSpec:
    """A join of two windows of one second: ten triggers' rows."""
    return hf.JoinSpec(("r", "s"), JOINS[join], window="1 second", time="ts", lateness="0 seconds")


# -- the bare operator -----------------------------------------------------------------------------------------------


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
    """The rows of both streams with as many keys as there are cores: the least that the operator can have to do."""
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


# -- the runs --------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """One session, its inputs, and what was measured."""

    spark: SparkSession
    folder: Path
    triggers: int = 0  # files written of each stream
    turns: dict[str, list[Durations]] = field(default_factory=lambda: {name: [] for name in QUERIES})

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

    def run(self, name: str, sink: str = "noop") -> Durations:
        """Run a query over the files it has not read yet; what its triggers took."""
        home = self.folder / f"{name} to {sink}"
        writer = (
            QUERIES[name](self.frames()).writeStream.format(sink).option("checkpointLocation", str(home / "checkpoint"))
        )
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

    def warm_up(self) -> None:
        """Let every query have a turn that does not count."""
        self.write_files(FIRST_TURN)
        for name in QUERIES:
            self.run(name)

    def turn(self) -> None:
        """Let every query have its turn."""
        self.write_files(WARM_UP + TIMED)
        for name in QUERIES:
            durations = self.run(name)
            assert len(durations) == WARM_UP + TIMED, f"{name} had {len(durations)} triggers"
            self.turns[name].append(durations[WARM_UP:])


# -- the answer ------------------------------------------------------------------------------------------------------

RESULT = Path(__file__).parent / "results" / "trigger.json"
ROOT = Path(__file__).parents[1]


def report(turns: dict[str, list[Durations]]) -> None:
    """Print a table and the answer, and write both down."""
    figures = {name: figures_of(own) for name, own in turns.items()}
    bare = min((name for name in figures if name.startswith("bare")), key=lambda name: figures[name]["median"])
    print(f"\n{'query':<18}{'median':>9}{'quartiles':>15}{'least':>8}{'ratio':>8}   by turn")
    for name, own in figures.items():
        own["ratio"] = round(own["median"] / figures[bare]["median"], 2)
        by_turn = [a / b for a, b in zip(own["turns"], figures[bare]["turns"], strict=True)]
        own["ratio_by_turn"] = [round(min(by_turn), 2), round(max(by_turn), 2)]
        low, high = own["quartiles"]
        spread = "{:.2f}–{:.2f}".format(*own["ratio_by_turn"])
        times = f"{own['median']:>6.0f} ms{f'{low:.0f}–{high:.0f} ms':>15}{own['least']:>5} ms"
        print(f"{name:<18}{times}{own['ratio']:>8.2f}   {spread}")
    ratio = max(figures[f"handfast, {join}"]["ratio"] for join in JOINS)
    answer = (
        f"A warm trigger of {ROWS} rows of each stream takes {ratio:.2f} times as long as with the bare stateful "
        f"operator ({bare}): goal {GOAL}, {'pass' if ratio <= GOAL else 'fail'}"
    )
    print(f"\n{answer}")
    RESULT.parent.mkdir(exist_ok=True)
    about = {"question": (__doc__ or "").splitlines()[0], "answer": answer, "goal": GOAL, "ratio": ratio, "bare": bare}
    about |= {"seed": WORKLOAD.seed, "rows_per_stream_and_trigger": ROWS, "cores": CORES, "joins": JOINS}
    RESULT.write_text(json.dumps(about | setting() | {"queries": figures}, indent=2, ensure_ascii=False) + "\n")


def figures_of(turns: list[Durations]) -> dict[str, Any]:
    """Median and spread of the whole trigger, and the median of each of its parts, in ms."""
    triggers = [trigger for turn in turns for trigger in turn]
    whole = [trigger["triggerExecution"] for trigger in triggers]
    low, median, high = statistics.quantiles(whole, n=4, method="inclusive")
    parts = {
        part: statistics.median(t.get(part, 0) for t in triggers) for part in triggers[0] if part != "triggerExecution"
    }
    by_turn = [statistics.median(trigger["triggerExecution"] for trigger in turn) for turn in turns]
    spread = {
        "triggers": len(whole),
        "median": median,
        "quartiles": [low, high],
        "least": min(whole),
        "most": max(whole),
    }
    return spread | {"turns": by_turn, "parts": parts}


def setting() -> dict[str, Any]:
    """The machine, the versions and the commit."""
    about = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in about if line.startswith("model name")), "?")
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True).stdout
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    packages = ("handfast", "pyspark", "pyarrow", "pandas", "numpy", "numba")
    return {
        "machine": {"cpu": cpu, "cpus": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()},
        "versions": {"python": platform.python_version(), "java": java} | {name: version(name) for name in packages},
        "commit": commit + (" and changes" if changed else ""),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=4, help="of every query")
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
        bench.warm_up()
        for turn in range(turns):
            bench.turn()
            print(f"turn {turn + 1} of {turns}", flush=True)
        report(bench.turns)
        spark.stop()


if __name__ == "__main__":
    main()
