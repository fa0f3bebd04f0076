"""What does it bring to split a hot key over the cores, when most rows have one key?

Two streams, four of five rows with the same key, and a condition beside the equality that no index serves: the pairs
of the hot key are tried in one core, or in all of them. In batch, and in a stream whose windows are full. What both
find is compared with DuckDB first, on a part of the rows. Then they take turns; a first turn does not count, nor does
the first trigger of a turn, while the query starts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import handfast as hf
from benchmarks.spark_batch import CORES, session
from benchmarks.spark_runs import compare, shown
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio

HOT, SHARE = 7, 0.8  # the hot key, and what part of the rows has it
SEED = 11
RATE = 10_000  # rows of each stream in a second
SECONDS = 1  # the window of each stream
ON = "r.k = s.k AND r.x + s.x > 1.995"
BATCH_ROWS, TRIGGER_ROWS, CHECKED_ROWS = 300_000, 30_000, 20_000  # of each stream
TRIGGERS = 5  # of a turn, of which the first does not count
WAYS = {"one core for the hot key": (), "the hot key split": (HOT,)}
RESULT = Path(__file__).parent / "results" / "spark_hot_keys.json"


def spec() -> hf.JoinSpec:
    window, chosen = f"{SECONDS} second", "r.id, s.id, match_time"
    return hf.JoinSpec(("r", "s"), ON, window=window, time="ts", lateness="0 seconds", select=chosen)


def table(stream: str, start: int, stop: int) -> pa.Table:
    """Rows of a stream: a number, a time, a key, a value."""
    chance = np.random.default_rng([SEED, ord(stream), start])
    rows = stop - start
    key = np.where(chance.random(rows) < SHARE, HOT, chance.integers(8, 10_000, rows))
    ids = np.arange(start, stop)
    times = pa.array(ids * (1_000_000 // RATE)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"id": ids, "ts": times, "k": key, "x": chance.random(rows)})


def right(tables: dict[str, pa.Table]) -> pa.Table:
    """What DuckDB finds."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, own in tables.items():
            connection.register(name, own)
        return connection.sql(
            "SELECT r.id AS r_id, s.id AS s_id, greatest(r.ts, s.ts) AS match_time FROM r, s "
            f"WHERE {ON} AND abs(epoch_us(r.ts) - epoch_us(s.ts)) < {SECONDS * 1_000_000}"
        ).to_arrow_table()


def options(way: str) -> hf.SparkOptions:
    return hf.SparkOptions(hot_keys=WAYS[way])


def check(spark: SparkSession) -> int:
    """Compare what both ways find with what is right."""
    tables = {name: table(name, 0, CHECKED_ROWS) for name in ("r", "s")}
    frames = {name: spark.createDataFrame(own) for name, own in tables.items()}
    expected = right(tables)
    for way in WAYS:
        compare(way, expected, hf.join(frames, spec(), options=options(way)).toArrow())
    return len(expected)


def batch(spark: SparkSession, folder: Path, turns: int) -> dict[str, list[float]]:
    """Seconds by turn."""
    frames = {}
    for name in ("r", "s"):
        path = folder / f"{name}.parquet"
        pq.write_table(table(name, 0, BATCH_ROWS), path)
        frames[name] = spark.read.parquet(str(path))

    def run(way: str) -> float:
        start = time.perf_counter()
        hf.join(frames, spec(), options=options(way)).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - start

    return in_turns(run, turns)


def streaming(spark: SparkSession, folder: Path, turns: int) -> dict[str, list[float]]:
    """Seconds of a trigger, the median of each turn."""
    written = 0

    def run(way: str) -> float:
        frames = {}
        for name in ("r", "s"):
            path = str(folder / name)
            schema = spark.read.parquet(path).schema
            frames[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        matches = hf.join(frames, spec(), options=options(way))
        writer = matches.writeStream.format("noop").option("checkpointLocation", str(folder / way))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        took = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
        assert len(took) == TRIGGERS, f"{way} had {len(took)} triggers"
        return statistics.median(took[1:]) / 1000

    def more() -> None:
        nonlocal written
        for _ in range(TRIGGERS):
            for name in ("r", "s"):
                path = folder / name / f"{written:05d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(table(name, written * TRIGGER_ROWS, (written + 1) * TRIGGER_ROWS), path)
                os.utime(path, (1_700_000_000 + written,) * 2)  # Spark reads files in the order of their times
            written += 1

    return in_turns(run, turns, more)


def in_turns(run: Callable[[str], float], turns: int, before: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Let both ways have so many turns after the first, which does not count."""
    spent: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(turns + 1):
        before()
        for way, own in spent.items():
            seconds = run(way)
            if turn:
                own.append(seconds)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of each way")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        spark = session(Path(home))
        matches = check(spark)
        print(f"both ways find the {matches:,} matches that DuckDB finds in {CHECKED_ROWS:,} rows of each stream")
        for kind, measure in (("batch", batch), ("streaming", streaming)):
            folder = Path(home) / kind
            folder.mkdir()
            spent = measure(spark, folder, asked.turns)
            one, split = (spent[way] for way in WAYS)
            ratio = Ratio.of(one, split)
            found[kind] = {"seconds": spent, "times as fast when split": asdict(ratio)}
            said = ", ".join(f"{way} {statistics.median(own):.2f} s" for way, own in spent.items())
            print(f"{kind}: {said}: {ratio} times as fast", flush=True)
        spark.stop()
    said = ", ".join(f"{kind} {shown(own['times as fast when split'])}" for kind, own in found.items())
    answer = f"With {SHARE:.0%} of the rows in one key, split over {CORES} cores it is so many times as fast: {said}"
    print(f"\n{answer}")
    if asked.save:
        about = {"question": (__doc__ or "").splitlines()[0], "answer": answer, "seed": SEED, "cores": CORES, "on": ON}
        about |= {"share of the hot key": SHARE, "window": f"{SECONDS} s", "rate": RATE, "turns": asked.turns}
        about |= {"rows of each stream": {"batch": BATCH_ROWS, "a trigger": TRIGGER_ROWS}, "checked matches": matches}
        asked.save.write_text(json.dumps(about | setting() | found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
