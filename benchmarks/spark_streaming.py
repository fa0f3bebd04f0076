"""What does a trigger of a streaming join on Spark cost, beside Spark's own join: large, small, the first, the last?

Full windows over both streams, which arrive and expire. Spark's own join of equal keys is its stream-stream join. For
a band, which it refuses, space is cut into cells, and a row of one stream is copied into every cell near its own. They
run on Spark's default state store, and on RocksDB. All queries read the same files and write nothing; what they find is
compared with DuckDB first. Then they take turns: a first turn, while the JVM compiles and the windows fill, does not
count, nor do the first triggers of a turn, while the query starts. First triggers are those of fresh processes, in
turns. A run over fifty windows shows whether state, heap and trigger time stay what they were after three.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import handfast as hf
from benchmarks.spark_runs import Frames, Streaming, cpu, heap, over, session, sessions, shown, state_of, workers
from benchmarks.trigger import QUERIES, setting
from handfast.connectors.generate import CellJoin, Workload

CORES = 2
SEED = 11
STREAMS = ("r", "s")
RATE = 10_000  # rows of each stream in a second
SECONDS = 10  # the window of each stream
KEYS = RATE * SECONDS  # an equality finds about one match for a row
DOMAIN, NEAR = 3_300, 10  # and a band in two dimensions about four
EQUALITY = "r.k = s.k"
BAND = f"r.x BETWEEN s.x - {NEAR} AND s.x + {NEAR} AND r.y BETWEEN s.y - {NEAR} AND s.y + {NEAR}"
FORKED, BARE = "equality, workers forked ready", "the bare stateful operator"
EQUAL, NATIVE, NATIVE_ROCKSDB = "equality", "equality, native", "equality, native on RocksDB"
NEAR_BY, CELLS, CELLS_ROCKSDB = "band", "band, native by cells", "band, native by cells on RocksDB"
WIDE_CELLS = "band, native by wide cells"
DEFAULT_STORE = (NATIVE, CELLS, WIDE_CELLS)
WIDTHS = {CELLS: NEAR, CELLS_ROCKSDB: NEAR, WIDE_CELLS: 4 * NEAR}  # of the cells
# rows of both streams in a trigger, who is compared, and the triggers of a turn that count
LARGE, SMALL = "100,000 rows", "4,000 rows"
ROWS = {LARGE: 100_000, SMALL: 4_000}
COMPARED = {SMALL: (EQUAL, NATIVE, NEAR_BY), LARGE: (EQUAL, NATIVE, NEAR_BY, CELLS)}
AND_SLOW = {LARGE: (WIDE_CELLS, NATIVE_ROCKSDB, CELLS_ROCKSDB), SMALL: (NATIVE_ROCKSDB,)}
TIMED = {LARGE: 2, SMALL: 8}
GOALS = {"equality": 2.5, "band": 10.0, "small": 1.15, "first": 1.5, "later": 1.1}
WINDOWS, EARLY = 50, 3
SHORT_RATE = 20_000  # rows of each stream in a second, over windows of one: fifty of them pass soon
RESULT = Path(__file__).parent / "results" / "spark_streaming.json"
ROOT = Path(__file__).parents[1]


# -- the joins -------------------------------------------------------------------------------------------------------


def table(stream: str, start: int, stop: int, rate: int = RATE) -> pa.Table:
    """Rows of one stream: a number, a time, a key, a place in the plane."""
    own = 2 * SEED + STREAMS.index(stream)
    keys = Workload(CellJoin(domain=rate * SECONDS), seed=own, rate=rate).table("r", start, stop)
    places = Workload(CellJoin(domain=DOMAIN), seed=own + 100, rate=rate).table("r", start, stop)
    columns = {"id": keys["id"], "ts": keys["ts"], "k": keys["x"], "x": places["x"], "y": places["y"]}
    return pa.table(columns | {"y": columns["y"].cast(pa.float64())})


def matches(name: str, frames: Frames, seconds: int = SECONDS) -> DataFrame:
    """What a query finds, by its name."""
    if name in (EQUAL, FORKED, NEAR_BY):
        on, window = BAND if name == NEAR_BY else EQUALITY, f"{seconds} seconds"
        return hf.join(frames, on=on, window=window, time="ts", lateness="0 seconds", select="r.id, s.id")
    if name == BARE:
        return QUERIES["bare, in pandas"](frames)
    r, s = (frames[stream].withWatermark("ts", "0 seconds") for stream in STREAMS)
    on = f"{EQUALITY if name in (NATIVE, NATIVE_ROCKSDB) else BAND} AND {_close(seconds)}"
    if name in WIDTHS:
        r, s, on = *cells(r, s, WIDTHS[name]), f"r.cx = s.cx AND r.cy = s.cy AND {on}"
    return r.alias("r").join(s.alias("s"), F.expr(on)).selectExpr("r.id AS r_id", "s.id AS s_id")


def cells(r: DataFrame, s: DataFrame, width: int) -> tuple[DataFrame, DataFrame]:
    """Rows with the cell that they lie in; those of `s` once for every cell that a partner can lie in."""

    def cell(place: str) -> str:
        return f"cast(floor(({place}) / {width}) AS int)"

    def near(column: str) -> Column:
        return F.expr(f"explode(sequence({cell(f'{column} - {NEAR}')}, {cell(f'{column} + {NEAR}')}))")

    placed = r.withColumns({"cx": F.expr(cell("x")), "cy": F.expr(cell("y"))})
    return placed, s.withColumn("cx", near("x")).withColumn("cy", near("y"))


def _close(seconds: int) -> str:
    return f"s.ts > r.ts - INTERVAL {seconds} SECONDS AND s.ts < r.ts + INTERVAL {seconds} SECONDS"


def right(name: str, tables: dict[str, pa.Table]) -> pa.Table:
    """What DuckDB finds."""
    on = EQUALITY if name.startswith("equality") else BAND
    with duckdb.connect(config={"threads": 1}) as connection:
        for stream, own in tables.items():
            connection.register(stream, own)
        close = f"abs(epoch_us(r.ts) - epoch_us(s.ts)) < {SECONDS * 1_000_000}"
        return connection.sql(f"SELECT r.id AS r_id, s.id AS s_id FROM r, s WHERE {on} AND {close}").to_arrow_table()


# -- warm triggers ---------------------------------------------------------------------------------------------------


def warm(spark: SparkSession, folder: Path, size: str, names: tuple[str, ...], turns: int) -> dict[str, Any]:
    """Warm triggers of a size over full windows: every query's ms, and what it keeps."""
    rows = ROWS[size] // 2
    own = sessions(spark, names, DEFAULT_STORE, CORES)
    bench = Streaming(own, folder / size, rows, table, STREAMS, matches)
    checked = 3 if size == LARGE else 5
    found = bench.check(checked, right)
    print(f"{size}: every query finds what DuckDB finds: {found}", flush=True)
    bench.warm_up(2 + SECONDS * RATE // rows)
    for turn in range(turns):
        bench.turn(TIMED[size], untimed=1 if size == LARGE else 2)
        last = (f"{name} {statistics.median(times[-1]):.0f} ms" for name, times in bench.turns.items())
        print(f"turn {turn + 1} of {turns}: {', '.join(last)}", flush=True)
    figures = {}
    for name, times in bench.turns.items():
        low, median, high = statistics.quantiles([ms for turn in times for ms in turn], n=4, method="inclusive")
        by_turn = [statistics.median(turn) for turn in times]
        parts = {part: statistics.median(p.get(part, 0) for p in bench.parts[name]) for part in bench.parts[name][0]}
        figures[name] = {"ms": median, "quartiles": [low, high], "turns": by_turn, "state": bench.state[name]}
        figures[name]["parts"] = parts
    return {"rows in a trigger": ROWS[size], "checked matches": found, "queries": figures}


# -- the first trigger -----------------------------------------------------------------------------------------------


def fresh(folder: Path, turns: int) -> dict[str, Any]:
    """First triggers, each in a process of its own: its own seconds, and all since the session was there."""
    times: dict[str, list[dict[str, float]]] = {EQUAL: [], FORKED: [], BARE: [], NATIVE: []}
    bench = Streaming({}, folder / "fresh", ROWS[SMALL] // 2, table, STREAMS, matches)
    bench.write_files(1)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(turns + 1):
        # the first one writes bytecode and kernels to the disk, and does not count
        for name, own in times.items() if turn else ((EQUAL, []),):
            command = [sys.executable, "-m", "benchmarks.spark_streaming", "--first", name, str(folder / "fresh")]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
            if turn:
                own.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"first trigger, turn {turn} of {turns}: {name} {done.stdout.splitlines()[-1]}", flush=True)
    return {"rows in a trigger": ROWS[SMALL], "queries": times}


def first(name: str, folder: Path) -> None:
    """A fresh session's first query over one file of each stream; prints what it took."""
    with tempfile.TemporaryDirectory() as home:
        spark = session(Path(home), CORES, daemon=name == FORKED)
        schema = spark.read.parquet(str(folder / "r")).schema
        ready, before = time.time(), cpu()
        if name != NATIVE:
            hf.configure(spark, cores=CORES, quiet=True)
        frames = {stream: spark.readStream.schema(schema).parquet(str(folder / stream)) for stream in STREAMS}
        writer = matches(name, frames).writeStream.format("noop").option("checkpointLocation", f"{home}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress, spent = query.recentProgress[0], cpu() - before
        spark.stop()
    took = progress["durationMs"]["triggerExecution"] / 1_000
    begun = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    print(json.dumps({"trigger s": took, "all s": begun + took - ready, "CPU s": spent}))


# -- fifty windows ---------------------------------------------------------------------------------------------------


def long(spark: SparkSession, folder: Path, name: str, windows: int = WINDOWS) -> dict[str, Any]:
    """State, heap and trigger time over so many windows of one second, ten at a time, after the first three."""
    rows = SHORT_RATE // 2  # of each stream in a trigger: two of them to a window
    bench = Streaming(
        sessions(spark, [name], DEFAULT_STORE, CORES),
        folder / f"fifty windows of {name}",
        rows,
        lambda stream, start, stop: table(stream, start, stop, SHORT_RATE),
        STREAMS,
        lambda name, frames: matches(name, frames, seconds=1),
    )
    by_ten: list[dict[str, float]] = []
    for more in (EARLY, *[10] * (windows // 10)):
        bench.write_files(2 * more)
        progress = bench.query(name, "noop")[2:]  # without those while the query starts
        if more != EARLY:
            states = [state_of(p) for p in progress]
            ms = statistics.median(p["durationMs"]["triggerExecution"] for p in progress)
            state = {what: statistics.median(own[what] for own in states) for what in ("rows", "bytes")}
            by_ten.append({"windows": bench.files // 2, "ms": ms, **state, "heap": heap(), "workers": workers()})
            print(f"{name}: {by_ten[-1]}", flush=True)
    growth = {what: by_ten[-1][what] / by_ten[0][what] for what in by_ten[0] if what != "windows"}
    return {"by ten windows": by_ten, "last over first": growth}


# -- the answer ------------------------------------------------------------------------------------------------------


def goals(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was measured beside what is wanted of it."""
    wanted = {(NATIVE, EQUAL): GOALS["equality"], (CELLS, NEAR_BY): GOALS["band"]}
    found: dict[str, dict[str, Any]] = {}
    for size, own in result["warm"].items():
        turns = {name: figures["turns"] for name, figures in own["queries"].items()}
        for peer in (name for name in turns if "native" in name):
            ours = EQUAL if peer.startswith("equality") else NEAR_BY
            if size == LARGE:
                found[f"{size} a trigger: {peer} ÷ {ours}"] = over(turns[peer], turns[ours]) | {
                    "least": wanted.get((peer, ours))
                }
            elif peer == NATIVE:
                found[f"{size} a trigger: {ours} ÷ {peer}"] = over(turns[ours], turns[peer]) | {"most": GOALS["small"]}
                found[f"{size} a trigger: {NEAR_BY} ÷ {peer}"] = over(turns[NEAR_BY], turns[peer])
    queries = result["fresh"]["queries"] if "fresh" in result else {}
    for ours, what in ((name, what) for name in queries if name != NATIVE for what in ("all s", "CPU s")):
        slow, fast = ([turn[what] for turn in queries[name]] for name in (ours, NATIVE))
        title = f"a fresh session's first trigger, {'time' if what == 'all s' else 'CPU'}: {ours} ÷ {NATIVE}"
        most = GOALS["first"] if ours != BARE and what == "all s" else None
        found[title] = over(slow, fast) | {"most": most}
    for name, own in result.get("long", {}).items():
        for what, growth in own["last over first"].items():
            title = f"{name}, after {WINDOWS} windows ÷ after {EARLY}: {what}"
            found[title] = {"median": growth, "most": GOALS["later"]}
    return found


def report(result: dict[str, Any]) -> str:
    """Print tables and the answer, which is given back."""
    for size, own in result["warm"].items():
        print(f"\n{size} in a trigger")
        for name, figures in own["queries"].items():
            low, high = figures["quartiles"]
            state = f"state {figures['state']['rows']:>9,} rows {figures['state']['bytes'] / 1e6:>7.1f} MB"
            print(f"  {name:<38}{figures['ms']:>7.0f} ms{f'{low:.0f}–{high:.0f} ms':>16}   {state}")
    print()
    for what, own in result["goals"].items():
        goal = f"≥ {own['least']}" if own.get("least") else f"≤ {own['most']}" if own.get("most") else ""
        seen = shown(own) if "low" in own else f"{own['median']:.2f}"
        print(f"  {what:<76}{seen:>20}  {goal}")
    said = {
        f"{LARGE} a trigger: {CELLS} ÷ {NEAR_BY}": "Spark's own join by cells {} times as long as the band",
        f"{LARGE} a trigger: {NATIVE} ÷ {EQUAL}": "Spark's own join of equal keys {} times as long as the equality",
        f"{SMALL} a trigger: {EQUAL} ÷ {NATIVE}": "the equality {} times as long as Spark's own join",
    }
    known = {goal: words for goal, words in said.items() if goal in result["goals"]}
    answer = "; ".join(
        f"a trigger of {goal.partition(' a trigger')[0]} takes " + words.format(shown(result["goals"][goal]))
        for goal, words in known.items()
    )
    print(f"\n{answer}")
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=3, help="of every query")
    parser.add_argument("--short", action="store_true", help="without wide cells, and without Spark's own on RocksDB")
    parser.add_argument("--first", nargs=2, metavar=("QUERY", "FOLDER"), help="one first trigger, in this process")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    if asked.first:
        first(asked.first[0], Path(asked.first[1]))
        return
    result: dict[str, Any] = {"warm": {}}

    def save() -> None:
        """Print what is known by now, and write it."""
        result["goals"] = goals(result)
        answer = report(result)
        if asked.save:
            about = {"question": (__doc__ or "").splitlines()[0], "answer": answer, "seed": SEED, "cores": CORES}
            about |= {"turns": asked.turns, "rate": RATE, "window": f"{SECONDS} s", "equality": EQUALITY, "band": BAND}
            asked.save.write_text(json.dumps(about | setting() | result, indent=1, ensure_ascii=False) + "\n")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder, CORES)
        long(spark, folder / "while the JVM compiles", EQUAL, windows=10)
        # first, as long as nothing of other queries is left on the heap
        result["long"] = {query: long(spark, folder, query) for query in (EQUAL, NEAR_BY)}
        for size, names in COMPARED.items():
            chosen = names if asked.short else names + AND_SLOW[size]
            result["warm"][size] = warm(spark, folder, size, chosen, asked.turns)
            save()
        spark.stop()
        result["fresh"] = fresh(folder, asked.turns)
    save()


if __name__ == "__main__":
    main()
