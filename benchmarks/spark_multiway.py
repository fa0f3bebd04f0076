"""How fast is a join of three streams on Spark, against Spark's own joins one behind the other?

Streaming: three streams with a common key, every pair less than a window apart. Spark can do that with two of its
stream-stream joins, if the times of one stream are hidden from it; it runs on its default state store, and on RocksDB
with the settings that `hf.configure` makes. A join by a band, without any key, which Spark refuses, runs beside them.
Batch: the same joins of files, in Spark SQL. All read the same files and write nothing. What they find is compared with
DuckDB first. Then they take turns; a first turn does not count, while the JVM compiles and the windows fill, nor does
the first trigger of a turn, while the query starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import handfast as hf
from benchmarks.spark_runs import Frames, Streaming, compare, over, session, sessions, shown
from benchmarks.trigger import setting
from handfast.connectors.generate import CellJoin, Workload

GOAL = 2.0
CORES = 2
SEED = 5
STREAMS = ("r", "s", "t")
RATE = 10_000  # rows of each stream in a second
SECONDS = 10  # the window of each stream
TRIGGERS = {"100,000 rows": 100_000, "10,000 rows": 10_000}  # of each stream in a trigger
KEYS = 2 * SECONDS * RATE  # so that a row has one partner in each of the other windows
CHECKED, TIMED = 3, 2  # triggers
BATCH_ROWS, BAND_ROWS = 1_000_000, 20_000  # of each stream
RESULT = Path(__file__).parent / "results" / "spark_multiway.json"

Join = tuple[str, str]  # the conditions of r and s, and of t with them
KEY: Join = ("r.k = s.k", "s.k = t.k")
BAND: Join = ("s.x BETWEEN r.x - 0.5 AND r.x + 0.5", "t.x BETWEEN s.x - 0.5 AND s.x + 0.5")  # again about one partner
QUERIES = {"handfast": KEY, "native": KEY, "native, RocksDB": KEY, "handfast, by a band": BAND}
COMPARED = {  # RocksDB takes Spark's own joins so long that it waits for small triggers
    "100,000 rows": ("handfast", "native", "handfast, by a band"),
    "10,000 rows": tuple(QUERIES),
}
SHORT = {"100,000 rows": ("handfast", "native")}
BATCHES = (("by key", KEY, BATCH_ROWS), ("by a band", BAND, BAND_ROWS))
CHOSEN = "r.id, s.id, t.id, match_time"


def spec(join: Join) -> hf.JoinSpec:
    on, window = " AND ".join(join), f"{SECONDS} seconds"
    return hf.JoinSpec(STREAMS, on, window=window, time="ts", lateness="0 seconds", select=CHOSEN)


def table(stream: str, start: int, stop: int) -> pa.Table:
    """Rows of one stream: a number, a time, a key, a value."""
    workload = Workload(CellJoin(domain=KEYS), seed=SEED + STREAMS.index(stream), rate=RATE)
    rows = workload.table("r", start, stop)
    return pa.table({"id": rows["id"], "ts": rows["ts"], "k": rows["x"], "x": rows["y"].cast(pa.float64())})


def found_by(name: str, frames: Frames) -> DataFrame:
    """What a query finds, by its name."""
    return hf.join(frames, spec(QUERIES[name])) if name.startswith("handfast") else chained(frames)


# -- Spark's own joins -----------------------------------------------------------------------------------------------


def chained(frames: Frames) -> DataFrame:
    """The join by key as two stream-stream joins: r with s, then their pairs with t.

    The rows of the first join may have one event time only, so that of s goes on as a number.
    """
    r, s, t = (frames[name].withWatermark("ts", "0 seconds").alias(name) for name in STREAMS)
    pairs = r.join(s, F.expr(f"r.k = s.k AND {_near('s.ts', 'r.ts')}")).selectExpr(
        "r.id AS r_id", "s.id AS s_id", "r.k", "r.ts", "unix_micros(s.ts) AS s_ts"
    )
    close = f"ABS(unix_micros(t.ts) - pair.s_ts) < {SECONDS * 1_000_000}"
    whole = pairs.alias("pair").join(t, F.expr(f"pair.k = t.k AND {_near('t.ts', 'pair.ts')} AND {close}"))
    last = "greatest(pair.ts, timestamp_micros(s_ts), t.ts) AS match_time"
    return whole.selectExpr("r_id", "s_id", "t.id AS t_id", last)


def in_sql(frames: Frames, join: Join) -> DataFrame:
    """The join of tables as Spark SQL has it."""
    r, s, t = (frames[name].alias(name) for name in STREAMS)
    pairs = r.join(s, F.expr(f"{join[0]} AND {_near('s.ts', 'r.ts')}"))
    whole = pairs.join(t, F.expr(f"{join[1]} AND {_near('t.ts', 'r.ts')} AND {_near('t.ts', 's.ts')}"))
    last = "greatest(r.ts, s.ts, t.ts) AS match_time"
    return whole.selectExpr("r.id AS r_id", "s.id AS s_id", "t.id AS t_id", last)


def _near(a: str, b: str) -> str:
    return f"{a} > {b} - INTERVAL {SECONDS} SECONDS AND {a} < {b} + INTERVAL {SECONDS} SECONDS"


def right(tables: dict[str, pa.Table], join: Join) -> pa.Table:
    """What DuckDB finds."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, own in tables.items():
            connection.register(name, own)
        apart = [f"abs(epoch_us({a}.ts) - epoch_us({b}.ts)) < {SECONDS * 1_000_000}" for a, b in ("rs", "rt", "st")]
        last = "greatest(r.ts, s.ts, t.ts) AS match_time"
        query = f"SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id, {last} FROM r, s, t WHERE "
        return connection.sql(query + " AND ".join([*join, *apart])).to_arrow_table()


# -- the runs --------------------------------------------------------------------------------------------------------


def batch(spark: SparkSession, folder: Path, join: Join, rows: int, turns: int) -> dict[str, Any]:
    """The same join of tables: seconds by turn, after what both find was compared."""
    tables = {name: table(name, 0, rows) for name in STREAMS}
    frames = {}
    for name, own in tables.items():
        path = folder / f"{rows}" / name
        path.mkdir(parents=True)
        for part in range(4):
            pq.write_table(own.slice(part * rows // 4, rows // 4), path / f"{part}.parquet")
        frames[name] = spark.read.parquet(str(path))
    runs: dict[str, Callable[[], DataFrame]] = {
        "handfast": lambda: hf.join(frames, spec(join)),
        "native": lambda: in_sql(frames, join),
    }
    expected = right(tables, join)
    for name, run in runs.items():
        compare(name, expected, run().toArrow())
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run().write.format("noop").mode("overwrite").save()
            if turn:
                spent[name].append(time.perf_counter() - start)
    return {"rows": rows, "on": join, "matches": len(expected), "seconds": spent}


# -- the answer ------------------------------------------------------------------------------------------------------


def times_as_fast(times: dict[str, list[float]]) -> dict[str, Any]:
    """How many times as long as handfast Spark's own joins take."""
    return {name: over(own, times["handfast"]) for name, own in times.items() if "native" in name}


def streaming_figures(bench: Streaming, matches: dict[str, int]) -> dict[str, Any]:
    by_turn = {name: [statistics.median(turn) for turn in own] for name, own in bench.turns.items()}
    figures = {}
    for name, own in bench.turns.items():
        triggers = [ms for turn in own for ms in turn]
        low, median, high = statistics.quantiles(triggers, n=4, method="inclusive")
        figures[name] = {"ms": median, "quartiles": [low, high], "turns": by_turn[name], "state": bench.state[name]}
    about = {"rows_per_stream_and_trigger": bench.rows, "checked matches": matches, "queries": figures}
    return about | {"times as fast as": times_as_fast(by_turn)}


def batch_figures(found: dict[str, Any]) -> dict[str, Any]:
    spent = found.pop("seconds")
    figures = {name: {"seconds": statistics.median(own), "turns": own} for name, own in spent.items()}
    return found | {"queries": figures, "times as fast as": times_as_fast(spent)}


def report(streaming: dict[str, Any], batches: dict[str, Any], seconds: float) -> str:
    """Print a table and the answer, which is given back."""
    for title, own in streaming.items():
        print(f"\nstreaming, {title} of each stream in a trigger")
        for name, figures in own["queries"].items():
            ratio = own["times as fast as"].get(name)
            low, high = figures["quartiles"]
            state = f"state {figures['state']['rows']:>9,} rows {figures['state']['bytes'] / 1e6:>7.1f} MB"
            times = f"{figures['ms']:>7.0f} ms{f'{low:.0f}–{high:.0f} ms':>16}"
            print(f"  {name:<21}{times}   {state}   {shown(ratio) if ratio else ''}")
    for title, own in batches.items():
        print(f"\nbatch, {title}, {own['rows']:,} rows of each stream, {own['matches']:,} matches")
        for name, figures in own["queries"].items():
            ratio = own["times as fast as"].get(name)
            print(f"  {name:<21}{figures['seconds']:>7.2f} s   {shown(ratio) if ratio else ''}")
    largest = next(iter(streaming.values()))
    ratio = largest["times as fast as"]["native"]
    answer = (
        f"A trigger of {largest['rows_per_stream_and_trigger']:,} rows of each of three streams takes Spark's two own "
        f"joins, on its default state store, {shown(ratio)} times as long as handfast: goal {GOAL}, "
        f"{'pass' if ratio['median'] >= GOAL else 'fail'}"
    )
    print(f"\n{answer}\ntook {seconds:.0f} s")
    return answer


def streaming_part(own: dict[str, SparkSession], folder: Path, rows: int, turns: int) -> dict[str, Any]:
    """Check the queries, let them take turns, and give the figures."""
    bench = Streaming(own, folder, rows, table, STREAMS, found_by)
    matches = bench.check(CHECKED, lambda name, tables: right(tables, QUERIES[name]))
    print(f"{rows:,} rows: every query finds what DuckDB finds: {matches}", flush=True)
    bench.warm_up(2 + SECONDS * RATE // rows)  # until the windows are full
    for turn in range(turns):
        bench.turn(TIMED)
        last = (f"{name} {statistics.median(times[-1]):.0f} ms" for name, times in bench.turns.items())
        print(f"turn {turn + 1} of {turns}: {', '.join(last)}", flush=True)
    return streaming_figures(bench, matches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of every query")
    parser.add_argument("--short", action="store_true", help="large triggers only, and Spark's default state store")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    begun = time.monotonic()
    streaming: dict[str, Any] = {}
    batches: dict[str, Any] = {}

    def save() -> None:
        """Print what is known by now, and write it."""
        answer = report(streaming, batches, time.monotonic() - begun)
        if asked.save:
            about = {"question": (__doc__ or "").splitlines()[0], "answer": answer, "goal": GOAL, "seed": SEED}
            about |= {"cores": CORES, "turns": asked.turns, "triggers of a turn": TIMED, "rate": RATE}
            about |= {"window": f"{SECONDS} s", "by key": KEY, "by a band": BAND}
            figures = {"streaming": streaming, "batch": batches}
            asked.save.write_text(json.dumps(about | setting() | figures, indent=1, ensure_ascii=False) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder), CORES)
        own = sessions(spark, QUERIES, ("native",), CORES)
        for title, names in (SHORT if asked.short else COMPARED).items():
            compared = {name: own[name] for name in names}
            streaming[title] = streaming_part(compared, Path(folder) / title, TRIGGERS[title], asked.turns)
            save()
        for title, join, rows in () if asked.short else BATCHES:
            batches[title] = batch_figures(batch(own["handfast"], Path(folder), join, rows, asked.turns))
            save()
        spark.stop()


if __name__ == "__main__":
    main()
