"""Does the cost of a join follow the pairs in its windows, however few its keys and however short its windows?

Three answers, each of one run. A join of few keys and short windows against Polars, which is helped by hand: both sides
are cut into buckets as long as the window. Joins that no key and no index helps, at 20,000 and at 200,000 rows of each
stream: what a match costs must not grow with the rows. A streaming batch with one hot key against one with many keys
and as many matches. Matches are compared first; what is timed is CPU, of all threads and on Spark of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio, quantile

RESULT = Path(__file__).parent / "results" / "windows.json"
SEED = 11
RATE = 1_000  # rows of each stream in a second
FEW, MANY = 20_000, 200_000
CORES = 2
GOAL_PEER, GOAL_GROWTH, GOAL_HOT = 1.5, 1.5, 2.0

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Shape:
    """A join that pays for every pair it tries, if it tries more than its windows hold."""

    on: str
    window: str = "3 ms"
    streams: str = "rs"

    def tables(self, rows: int) -> Tables:
        return {name: stream(rows, SEED + k) for k, name in enumerate(self.streams)}

    @property
    def kwargs(self) -> dict[str, Any]:
        chosen = ", ".join(f"{name}.n AS {name}" for name in self.streams)
        return {"on": self.on, "window": self.window, "time": "ts", "sequence": "n", "select": chosen}


SHAPES = {
    "one key": Shape("r.one = s.one"),
    "one key, 10 us": Shape("r.one = s.one", "10 us"),
    "TRUE": Shape("TRUE"),
    "r.x < s.x": Shape("r.x < s.x"),
    "NaN in a band": Shape("r.nan BETWEEN s.nan - 1 AND s.nan + 1"),
    "rounding above the band": Shape("r.large BETWEEN s.large - 0.001 AND s.large + 0.001"),
    "5 rows": Shape("r.one = s.one", "5 rows"),
    "5 rows, TRUE": Shape("TRUE", "5 rows"),
    "three streams": Shape("r.one = s.one AND s.one = t.one", "2 ms", "rst"),
}


def stream(rows: int, seed: int, keys: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, rows * 1_000_000 // RATE, rows))
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "n": np.arange(rows),
            "one": np.zeros(rows, np.int64),
            "k": rng.integers(0, keys, rows),
            "x": rng.integers(0, 1_000, rows),
            "nan": np.full(rows, np.nan),
            "large": np.full(rows, 1e18),
        }
    )


def cpu_of(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """The CPU seconds of a run by this clock, and its result; by default the clock of this process and its threads."""
    start = clock()
    result = run()
    return clock() - start, result


def _cpu_of_tree() -> float:
    """The CPU seconds of this process and of all that it has started, in hundredths: for what runs in Spark."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))  # its own, and of children that have ended
    known = {os.getpid()}
    while added := {child for child, parent in parents.items() if parent in known} - known:
        known |= added
    return sum(ticks.get(process, 0) for process in known) / os.sysconf("SC_CLK_TCK")


# -- against Polars ---------------------------------------------------------------------------------------------------


def few_keys(turns: int) -> tuple[Ratio, int]:
    """CPU over that of Polars, and the matches of both."""
    r, s = stream(MANY, SEED, keys=20), stream(MANY, SEED + 1, keys=20)
    window = 100_000

    def ours() -> pa.Table:
        chosen = "r.n AS r, s.n AS s"
        options = hf.LocalOptions(cores=1)
        return hf.join({"r": r, "s": s}, on="r.k = s.k", window="100 ms", time="ts", select=chosen, options=options)

    def theirs() -> pl.DataFrame:
        bucket = (pl.col("ts").dt.epoch("us") // window).alias("bucket")
        left, right = (pl.from_arrow(t.select(["ts", "n", "k"])).with_columns(bucket) for t in (r, s))
        spread = pl.concat([right.with_columns(pl.col("bucket") + by) for by in (-1, 0, 1)])
        apart = (pl.col("ts_right") - pl.col("ts")).dt.total_microseconds().abs()
        return left.join(spread, on=["k", "bucket"]).filter(apart < window).select(r="n", s="n_right")

    mine, peers = ours(), theirs().to_arrow()
    for table in (mine, peers):
        assert len(table) == len(mine) and _checksum(table) == _checksum(mine), "They do not find the same"
    spent: list[tuple[float, float]] = []
    for _ in range(turns):
        spent.append((cpu_of(ours)[0], cpu_of(theirs)[0]))
    return Ratio.of(*zip(*spent, strict=True)), len(mine)


def _checksum(table: pa.Table) -> int:
    mixed = pc.bit_wise_xor(pc.multiply(table["r"], 1_000_003), table["s"])
    return int(pc.sum(pc.cast(mixed, pa.float64())).as_py())


# -- growth -----------------------------------------------------------------------------------------------------------


def growth(turns: int, spark: SparkSession | None, folder: Path) -> dict[str, dict[str, Any]]:
    """For every shape, what a match costs among many rows over what it costs among few."""
    found = {}
    for name, shape in SHAPES.items():
        counts, spent = {}, {FEW: [], MANY: []}
        runs = {rows: _counted(shape, rows, spark, folder) for rows in (FEW, MANY)}
        for rows, run in runs.items():
            counts[rows] = run()
        for _ in range(turns):
            for rows, run in runs.items():
                seconds, matches = cpu_of(run, time.process_time if spark is None else _cpu_of_tree)
                assert counts[rows] == matches
                spent[rows].append(seconds / max(1, matches))
        ratio = Ratio.of(spent[MANY], spent[FEW])
        found[name] = {"matches": counts[MANY], "us per match": 1e6 * statistics.median(spent[MANY])} | asdict(ratio)
        where = "local" if spark is None else "Spark batch"
        print(f"{where}, {name}: {counts[MANY]:,} matches, {ratio} times the CPU of a match among few", flush=True)
    return found


def _counted(shape: Shape, rows: int, spark: SparkSession | None, folder: Path) -> Callable[[], int]:
    tables = shape.tables(rows)
    if spark is None:
        return lambda: len(hf.join(tables, **shape.kwargs, options=hf.LocalOptions(cores=1)))
    home = folder / f"{rows} {shape.streams}"
    for name, table in tables.items():
        (home / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, home / name / "0.parquet")
    frames = {name: spark.read.parquet(str(home / name)) for name in tables}
    return lambda: int(hf.join(frames, **shape.kwargs).agg(F.count("r")).collect()[0][0])


# -- a hot key --------------------------------------------------------------------------------------------------------


def hot_key(turns: int, spark: SparkSession, folder: Path) -> tuple[Ratio, dict[str, int]]:
    """How long a streaming batch of 100,000 rows of one key takes over one of many keys, with as many matches."""
    rows, files = 50_000, 5
    runs = {"one": (1, "5 ms"), "many": (1_000, "5 seconds")}
    for name, (keys, _) in runs.items():
        for k, own in enumerate("rs"):
            table = stream(rows * files, SEED + k, keys=keys)
            (folder / name / own).mkdir(parents=True)
            for number in range(files):
                path = folder / name / own / f"{number}.parquet"
                pq.write_table(table.slice(number * rows, rows), path)
                os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
    times: dict[str, list[float]] = {name: [] for name in runs}
    matches: dict[str, int] = {}
    for turn in range(turns + 1):
        for name, (_, window) in runs.items():
            frames = {}
            for own in "rs":
                path = str(folder / name / own)
                schema = spark.read.parquet(path).schema
                frames[own] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
            result = hf.join(
                frames, on="r.k = s.k", window=window, time="ts", lateness="0 seconds", select="r.n AS r, s.n AS s"
            )
            checkpoint = str(folder / name / f"checkpoint{turn}")
            writer = result.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            matches[name] = hf.metrics(query).matches
            batches = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
            if turn:  # in the first, everything is new
                times[name].append(quantile(batches[1:], 0.5))
    return Ratio.of(times["one"], times["many"]), matches


def session(folder: Path) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    hf.configure(spark, cores=CORES)
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    start = time.monotonic()
    peer, found = few_keys(asked.turns)
    print(f"20 keys, windows of 100 ms, {found:,} matches: {peer} of the CPU of Polars with buckets", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        local = growth(asked.turns, None, home)
        spark = session(home)
        batch = growth(max(1, asked.turns // 2), spark, home)
        hot, matches = hot_key(max(1, asked.turns // 2), spark, home)
        spark.stop()
    print(f"a streaming batch of one key over one of many: {hot}; matches {matches}")
    growths = {
        where: {"median": max(own["median"] for own in shapes.values()), "goal": GOAL_GROWTH, "shapes": shapes}
        for where, shapes in (("local", local), ("Spark batch", batch))
    }
    result = {
        "question": (__doc__ or "").splitlines()[0],
        "seed": SEED,
        "turns": asked.turns,
        **setting(),
        "CPU over Polars": asdict(peer) | {"matches": found, "goal": GOAL_PEER},
        "growth": growths,
        "one hot key over many": asdict(hot) | {"matches": matches, "goal": GOAL_HOT},
    }
    print(f"took {time.monotonic() - start:.0f} s")
    if asked.save:
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    grown = max(own["median"] for own in growths.values())
    met = peer.median <= GOAL_PEER and grown <= GOAL_GROWTH and hot.median <= GOAL_HOT
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
