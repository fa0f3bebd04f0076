"""How fast are bounded joins on Spark, against what Spark SQL does by itself and with buckets made by hand?

A band in two dimensions (CellJoin's): plain Spark SQL tries every pair. Buckets made by hand are the usual way round
that: a row of one side is copied into all cells that can hold its partners, and cells are joined by equality. Cells are
as wide as the band, so that nine hold all partners, or twice as wide, so that four do. An equality with windows: Spark
sorts, merges, and tests the windows of every pair of a key; it is measured with few rows of a key and with many. All
read the same files and write nothing. What they find is compared with DuckDB first, while the JVM compiles. Then they
take turns.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import handfast as hf
from benchmarks.spark_runs import compare, over, shown
from benchmarks.trigger import setting
from handfast.connectors.generate import CellJoin, Workload

CORES = 2
SEED = 5
RATE = 10_000  # rows of each stream in a second
SECONDS = 10  # the window of each stream
KEYS = 2 * SECONDS * RATE  # so that a row has one partner in the other window
FEW_KEYS = 1_000
BAND = CellJoin.BAND
EQUALITY = "r.k = s.k"
NARROW = "r.k = s.k AND r.x < s.x - 990.0"
CHOSEN = "r.id, s.id, match_time"
RESULT = Path(__file__).parent / "results" / "spark_batch.json"

Frames = dict[str, DataFrame]
Runs = dict[str, Callable[[Frames], DataFrame]]


def spec(on: str) -> hf.JoinSpec:
    return hf.JoinSpec(("r", "s"), on, window=f"{SECONDS} seconds", time="ts", select=CHOSEN)


def of_band(rows: int) -> dict[str, pa.Table]:
    """CellJoin's streams."""
    return {name: Workload(CellJoin(), seed=SEED, rate=RATE).table(name, 0, rows) for name in ("r", "s")}


def of_keys(keys: int, rows: int) -> dict[str, pa.Table]:
    """Streams of a number, a time, one of so many keys, a value."""
    made = {}
    for turn, name in enumerate(("r", "s")):
        own = Workload(CellJoin(domain=keys), seed=SEED + turn, rate=RATE).table("r", 0, rows)
        made[name] = pa.table({"id": own["id"], "ts": own["ts"], "k": own["x"], "x": own["y"]})
    return made


# -- Spark's own joins -----------------------------------------------------------------------------------------------


def near(a: str = "s.ts", b: str = "r.ts") -> str:
    return f"{a} > {b} - INTERVAL {SECONDS} SECONDS AND {a} < {b} + INTERVAL {SECONDS} SECONDS"


def in_sql(on: str) -> Callable[[Frames], DataFrame]:
    """The join of tables as Spark SQL has it."""

    def run(frames: Frames) -> DataFrame:
        r, s = (frames[name].alias(name) for name in ("r", "s"))
        joined = r.join(s, F.expr(f"{on} AND {near()}"))
        return joined.selectExpr("r.id AS r_id", "s.id AS s_id", "greatest(r.ts, s.ts) AS match_time")

    return run


def in_cells(width: int) -> Callable[[Frames], DataFrame]:
    """The band as an equality of cells: rows of s are copied into every cell that holds partners."""
    around = range(-1, 2)

    def cells(column: str) -> str:
        if width >= 2 * BAND:  # the partners of a row lie in two cells at the most
            low, high = (f"CAST(floor(({column} {sign} {BAND}) / {width}) AS INT)" for sign in "-+")
            return f"sequence({low}, {high})"
        return f"array({', '.join(f'CAST(floor({column} / {width}) AS INT) + ({k})' for k in around)})"

    def run(frames: Frames) -> DataFrame:
        cell = [f"CAST(floor({column} / {width}) AS INT) AS c{column}" for column in ("x", "y")]
        r = frames["r"].selectExpr("id", "ts", "x", "y", *cell).alias("r")
        s = frames["s"].selectExpr("id", "ts", "a", "b", f"explode({cells('a')}) AS cx")
        s = s.selectExpr("*", f"explode({cells('b')}) AS cy").alias("s")
        joined = r.join(s, F.expr(f"r.cx = s.cx AND r.cy = s.cy AND {CellJoin().on} AND {near()}"))
        return joined.selectExpr("r.id AS r_id", "s.id AS s_id", "greatest(r.ts, s.ts) AS match_time")

    return run


NATIVE, SQL = "native, sort-merge", "native, plain SQL"
NINE, FOUR = "native, nine cells", "native, four cells"


@dataclass(frozen=True)
class Compared:
    """A join, its rows, Spark's own ways to run it, and which of them is to take how many times as long."""

    on: str
    make: Callable[[int], dict[str, pa.Table]]
    rows: int
    native: Runs
    rival: str
    goal: float

    @property
    def runs(self) -> Runs:
        return {"handfast": lambda frames: hf.join(frames, spec(self.on)), **self.native}


ON = CellJoin().on
JOINS = {
    "band, 1 M x 1 M": Compared(ON, of_band, 1_000_000, {NINE: in_cells(BAND), FOUR: in_cells(2 * BAND)}, NINE, 6.0),
    "band, 100 k x 100 k": Compared(ON, of_band, 100_000, {SQL: in_sql(ON)}, SQL, 50.0),
    "equality, 1 M x 1 M": Compared(
        EQUALITY, partial(of_keys, KEYS), 1_000_000, {NATIVE: in_sql(EQUALITY)}, NATIVE, 1.0
    ),
    "equality, 300 k x 300 k, few keys": Compared(
        NARROW, partial(of_keys, FEW_KEYS), 300_000, {NATIVE: in_sql(NARROW)}, NATIVE, 1.0
    ),
}


def right(found: dict[str, pa.Table], on: str) -> pa.Table:
    """What DuckDB finds: by cells too, for it would try every pair of a band."""
    span = SECONDS * 1_000_000
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, own in found.items():
            connection.register(name, own)
        key, s = "", "s"
        if on == ON:
            key = f" AND r.x // {2 * BAND} = cx AND floor(r.y / {2 * BAND})::INT = cy"
            s = f"(SELECT *, unnest({_cells('a')}) AS cx FROM s)"
            s = f"(SELECT *, unnest({_cells('b')}) AS cy FROM {s})"
        return connection.sql(
            f"SELECT r.id AS r_id, s.id AS s_id, greatest(r.ts, s.ts) AS match_time FROM r, {s} AS s "
            f"WHERE {on}{key} AND abs(epoch_us(r.ts) - epoch_us(s.ts)) < {span}"
        ).to_arrow_table()


def _cells(column: str) -> str:
    """The cells that the partners of a row lie in, as wide as the band is from end to end."""
    low, high = (f"floor(({column} {sign} {BAND}) / {2 * BAND})::INT" for sign in "-+")
    return f"range({low}, {high} + 1)"


# -- the runs --------------------------------------------------------------------------------------------------------


def measured(spark: SparkSession, folder: Path, title: str, turns: int) -> dict[str, Any]:
    """Seconds by turn, after what all find was compared."""
    compared = JOINS[title]
    on, rows, runs = compared.on, compared.rows, compared.runs
    made = compared.make(rows)
    frames = {}
    for name, own in made.items():
        path = folder / title / name
        path.mkdir(parents=True)
        for part in range(4):
            pq.write_table(own.slice(part * rows // 4, rows // 4), path / f"{part}.parquet")
        frames[name] = spark.read.parquet(str(path))
    expected = right(made, on)
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        compare(name, expected, run(frames).toArrow())
    for turn in range(turns):
        for name, run in runs.items():
            start = time.perf_counter()
            run(frames).write.format("noop").mode("overwrite").save()
            spent[name].append(time.perf_counter() - start)
        last = ", ".join(f"{name} {own[-1]:.2f} s" for name, own in spent.items())
        print(f"{title}, turn {turn + 1} of {turns}: {last}", flush=True)
    figures = {name: {"seconds": statistics.median(own), "turns": own} for name, own in spent.items()}
    times = {name: over(own, spent["handfast"]) for name, own in spent.items() if "native" in name}
    about = {"rows": rows, "on": on, "matches": len(expected), "goal": compared.goal, "against": compared.rival}
    return about | {"queries": figures, "times as fast as": times}


def answer_of(found: dict[str, Any]) -> str:
    """The answer in a sentence for each join."""
    said = []
    for title, own in found.items():
        ratio = own["times as fast as"][own["against"]]
        passed = "pass" if ratio["median"] >= own["goal"] else "fail"
        said.append(f"{title}: {shown(ratio)} times as fast as {own['against']} (goal {own['goal']:g}, {passed})")
    return "; ".join(said)


def report(found: dict[str, Any]) -> None:
    for title, own in found.items():
        print(f"\n{title}, {own['matches']:,} matches")
        for name, figures in own["queries"].items():
            ratio = own["times as fast as"].get(name)
            print(f"  {name:<21}{figures['seconds']:>8.2f} s   {shown(ratio) if ratio else ''}")
    print(f"\n{answer_of(found)}")


def session(folder: Path) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.daemon.module", "handfast.engines.spark.daemon")
        .config("spark.local.dir", f"{folder}/local")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    hf.configure(spark, cores=CORES, quiet=True)
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of every query")
    parser.add_argument("--short", action="store_true", help="one turn of each")
    parser.add_argument("--only", choices=JOINS, action="append", help="these joins alone")
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    turns = 1 if asked.short else asked.turns
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        for title in asked.only or JOINS:
            found[title] = measured(spark, Path(folder), title, turns)
        spark.stop()
    report(found)
    if asked.save:
        about = {"question": (__doc__ or "").splitlines()[0], "answer": answer_of(found), "seed": SEED}
        about |= {"cores": CORES, "turns": turns, "rate": RATE, "window": f"{SECONDS} s", "keys": KEYS}
        asked.save.write_text(json.dumps(about | setting() | {"joins": found}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
