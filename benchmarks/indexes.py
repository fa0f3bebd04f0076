"""How fast are the indexes, with both streams sliding over full windows, and against peers on bounded tables?

A run fills both windows, then pushes both streams by turns; what is timed is the CPU of the pushes, of all threads.
Matches are verified first: small runs by DuckDB as whole tables, large ones by a count (equality) or by the partners of
single tuples (band) that numpy finds on its own. Peers join the same bounded tables by turns with this engine.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio
from handfast.core.join_core import JoinCore
from handfast.core.manifest import Manifest
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.session import Session
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.time import Progress

RESULT = Path(__file__).parent / "results" / "indexes.json"
SEED = 5
BAND_ON = "r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10. AND s.b + 10."
IDS = "r.id AS r, s.id AS s"
_PIECES = 32  # blocks of a window that is filled: a session merges its blocks up to about that size

Numbers = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Load:
    """Two streams at a rate, the join of them, and how their values are drawn.

    Attributes:
        rate: Tuples of each stream in a second of event time.
        seconds: The length of both windows.
        values: `uniform`, `zipf` (the keys of r) or `clustered` (both columns of the band).
        disorder: The part of the tuples that comes late, by up to a hundredth of the window.
    """

    on: str
    rate: int
    seconds: int
    values: str = "uniform"
    disorder: float = 0.0
    select: str | None = IDS

    @property
    def window(self) -> int:
        """Tuples of a full window."""
        return self.rate * self.seconds

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """Where each block of a window that is filled begins, and how many tuples it has."""
        step = -(-self.window // _PIECES)
        return [(start, min(step, self.window - start)) for start in range(0, self.window, step)]

    @property
    def lateness(self) -> int:
        """Microseconds that a tuple may come late."""
        return self.seconds * 10_000 if self.disorder else 0

    @property
    def spec(self) -> hf.JoinSpec:
        return hf.JoinSpec(
            ("r", "s"),
            self.on,
            window=f"{self.seconds} seconds",
            time="ts",
            lateness=f"{self.lateness} microseconds",
            select=self.select,
        )

    def arrays(self, stream: str, start: int, count: int) -> Arrays:
        """The columns of some tuples of a stream in the order in which they come, `start` one of a row of pieces."""
        rng = np.random.default_rng([SEED, ord(stream), start])
        times = np.arange(start, start + count) * 1_000_000 // self.rate
        if self.disorder:
            late = rng.random(count) < self.disorder
            times[late] = np.maximum(0, times[late] - rng.integers(0, self.lateness, np.count_nonzero(late)))
        columns: Arrays = {"ts": times, "id": np.arange(start, start + count)}
        if "k" in self.on:
            own = self.values == "zipf" and stream == "r"
            columns["k"] = _zipf(rng, self.window, count) if own else rng.integers(0, self.window, count)
            columns["v"] = rng.random(count)
            return columns
        names = ("x", "y") if stream == "r" else ("a", "b")
        columns[names[0]] = self._coordinate(rng, count).astype(np.int32)
        columns[names[1]] = self._coordinate(rng, count).astype(np.float32)
        columns["c"] = rng.random(count)
        columns["d"] = rng.random(count) < 0.5
        return columns

    def _coordinate(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        if self.values != "clustered":
            return rng.uniform(1, 10_001, count)
        # as many matches as uniform ones have, in a domain that is six times as wide
        centers = np.random.default_rng(SEED).uniform(1, 60_001, 32)
        return np.abs(centers[rng.integers(0, 32, count)] + rng.normal(0, 100, count))

    def table(self, stream: str, start: int, count: int) -> pa.Table:
        """Tuples as a table."""
        columns = {name: pa.array(own) for name, own in self.arrays(stream, start, count).items()}
        return pa.table(columns | {"ts": columns["ts"].cast(pa.timestamp("us", "UTC"))})


def _zipf(rng: np.random.Generator, domain: int, count: int) -> Numbers:
    """Keys below `domain`, key k with a chance that falls as (k + 1)^-1.2, spread over the numbers."""
    ranks = (1 - rng.random(count) * (1 - (domain + 1.0) ** -0.2)) ** -5.0
    keys: Numbers = (np.minimum(ranks.astype(np.int64), domain) * 0x9E3779B1) % domain
    return keys


# -- sliding ----------------------------------------------------------------------------------------------------------


@dataclass
class Slid:
    """What the pushes of a run took, and what they found."""

    load: Load
    push: int
    cpu: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    matches: int = 0
    resident: int = 0
    raw: int = 0
    pool: int = 0
    last: list[pa.RecordBatch] = field(default_factory=list)

    @property
    def per_stream(self) -> float:
        """Tuples of each stream that are joined in a second of CPU."""
        return self.push * len(self.cpu) / 2 / sum(self.cpu)

    @property
    def worst(self) -> float:
        """The slowest push over the median one."""
        return max(self.cpu) / statistics.median(self.cpu)

    @property
    def result(self) -> dict[str, Any]:
        return {
            "window": self.load.window,
            "push": self.push,
            "tuples/s/stream": round(self.per_stream),
            "ms per push, median": 1e3 * statistics.median(self.cpu),
            "slowest push over median": self.worst,
            "matches per tuple": self.matches / (self.push * len(self.cpu)),
            "resident over raw": self.resident / self.raw if self.raw else None,
            "Arrow pool, peak over start": self.pool,
        }

    def __str__(self) -> str:
        memory = f", {self.resident / self.raw:.2f} × raw" if self.raw else ""
        found = self.matches / (self.push * len(self.cpu))
        return (
            f"{self.per_stream:,.0f} tuples/s/stream, {1e3 * statistics.median(self.cpu):.2f} ms a push of "
            f"{self.push:,} (slowest {self.worst:.1f} ×), {found:.2f} matches a tuple{memory}"
        )


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def session_of(load: Load) -> Session:
    schemas = {name: load.table(name, 0, 1).schema for name in "rs"}
    return hf.session(load.spec, schemas, options=hf.LocalOptions(cores=1))


def filled(load: Load) -> Session:
    """A session with full windows: restored from their blocks, as from a checkpoint, so nothing is joined."""
    session = session_of(load)
    assert isinstance(session.cores, LowLatency)
    (core,) = session.cores.cores
    plan = core.join.plan
    blocks: list[list[Block]] = [[], []]
    for number, name in enumerate("rs"):
        for start, count in load.pieces:
            batch = as_batch(load.table(name, start, count))
            block, _ = split(plan.join, number, batch)
            assert block is not None
            blocks[number].append(block)
    by_id = {f"{number}-{k}": block for number, own in enumerate(blocks) for k, block in enumerate(own)}
    ids = tuple(tuple(f"{number}-{k}" for k in range(len(own))) for number, own in enumerate(blocks))
    progress = Progress(tuple(max(block.most_time for block in own) for own in blocks))
    core.join = JoinCore.restore(plan, Manifest(plan.fingerprint, progress, ids, ((), ())), by_id.__getitem__)
    session._admission.progress = progress
    return session


def slide(load: Load, push: int, pushes: int, warm: int = 4) -> Slid:
    """So many pushes of each stream over full windows; those that warm up come first and are not counted."""
    gc.collect()
    before = resident()
    session = filled(load)
    slid = Slid(load, push)
    raw = sum(load.table(name, 0, 1000).nbytes for name in "rs") * load.window // 1000
    for k in range(warm + pushes):
        tables = {name: load.table(name, load.window + k * push, push) for name in "rs"}
        if k == warm:
            gc.collect()
            slid.raw, slid.resident = raw, resident() - before
            pool = pa.default_memory_pool()
            start_bytes = pool.bytes_allocated()
        for name, table in tables.items():
            wall, start = time.perf_counter(), time.process_time()
            found = session.push(name, table)
            if k >= warm:
                slid.cpu.append(time.process_time() - start)
                slid.walls.append(time.perf_counter() - wall)
                slid.matches += sum(batch.num_rows for batch in found)
                slid.pool = max(slid.pool, pool.bytes_allocated() - start_bytes)
            slid.last = found
    session.close()
    return slid


# -- verified ---------------------------------------------------------------------------------------------------------


def check_small(load: Load) -> int:
    """The matches of a small run, compared as a whole with DuckDB's; how many they are."""
    push, pushes = 700, 6
    session = session_of(load)
    tables: dict[str, list[pa.Table]] = {"r": [], "s": []}
    found: list[pa.RecordBatch] = []
    for k in range((load.window + push * pushes) // push):
        for name in "rs":
            tables[name].append(load.table(name, k * push, push))
            found += session.push(name, tables[name][-1])
    late = session.late_rows()
    assert all(table.num_rows == 0 for table in late.values()), "A tuple was late: the result depends on the pushes"
    found += session.close()
    r, s = (pa.concat_tables(tables[name]) for name in "rs")
    length = load.seconds * 1_000_000
    query = f"SELECT {IDS} FROM r JOIN s ON {load.on} AND abs(epoch_us(r.ts) - epoch_us(s.ts)) < {length} ORDER BY 1, 2"
    with duckdb.connect() as connection:
        connection.register("r", r)
        connection.register("s", s)
        expected = connection.sql(query).to_arrow_table()
    ours = pa.Table.from_batches(found).select(["r", "s"]).sort_by([("r", "ascending"), ("s", "ascending")])
    assert ours.equals(expected.cast(ours.schema)), f"{load}: {len(ours)} matches, DuckDB has {len(expected)}"
    return len(ours)


def check_large(slid: Slid, warm: int = 4) -> None:
    """The number of matches of an equality (what numpy counts), or the partners of some tuples of a band."""
    load, count = slid.load, len(slid.cpu) // 2
    first = load.window + warm * slid.push
    every = {name: joined(load, name, slid.push, warm + count) for name in "rs"}
    if "k" in load.on:
        found = _pairs(load, every["s"], every["r"], first, None) + _pairs(load, every["r"], every["s"], first, first)
        assert slid.matches == found, f"{slid.matches:,} matches, numpy counts {found:,}"
        return
    ours = pa.Table.from_batches(slid.last) if slid.last else None
    rng = np.random.default_rng(SEED)
    s, r = every["s"], every["r"]
    for at in rng.integers(len(s["id"]) - slid.push, len(s["id"]), 20):
        near = np.abs(r["x"].astype(np.int64) - int(s["a"][at])) <= 10
        b = s["b"][at]
        near &= (r["y"] >= np.float32(b - np.float32(10))) & (r["y"] <= np.float32(b + np.float32(10)))
        near &= np.abs(r["ts"] - s["ts"][at]) < load.seconds * 1_000_000
        own = [] if ours is None else ours.filter(pa.compute.equal(ours["s"], int(s["id"][at])))["r"].to_pylist()
        assert sorted(r["id"][near].tolist()) == sorted(own), f"Tuple {s['id'][at]} of s has other partners"


def joined(load: Load, name: str, push: int, pushes: int) -> Arrays:
    """All tuples of a stream that a run has had."""
    pieces = [load.arrays(name, start, count) for start, count in load.pieces]
    pieces += [load.arrays(name, load.window + k * push, push) for k in range(pushes)]
    return {column: np.concatenate([piece[column] for piece in pieces]) for column in pieces[0]}


def _pairs(load: Load, probing: Arrays, stored: Arrays, first: int, until: int | None) -> int:
    """Pairs of a tuple of `probing` from `first` on and one of `stored`, up to `until`, of one key and in a window."""
    length, room = load.seconds * 1_000_000, int(max(probing["ts"].max(), stored["ts"].max())) + 1
    room += 2 * length
    own = np.sort(stored["k"][:until] * room + stored["ts"][:until] + length)
    key, at = probing["k"][first:] * room, probing["ts"][first:] + length
    found = np.searchsorted(own, key + at + length, "left") - np.searchsorted(own, key + at - length, "right")
    return int(found.sum())


# -- against peers ----------------------------------------------------------------------------------------------------


def bounded(rows: int, on: str, turns: int) -> dict[str, Any]:
    """CPU of a join of two bounded tables, over that of each peer in the same turn; all find as many matches."""
    length = rows  # microseconds: a tuple meets twice as many others, at the most
    load = Load(on, 1_000_000, max(1, rows // 1_000_000), select=IDS)
    r, s = load.table("r", 0, rows), load.table("s", 0, rows)
    runs = {"handfast": lambda: _ours(load, r, s, length), **_peers(on, r, s, length)}
    found = {name: run() for name, run in runs.items()}
    assert len(set(found.values())) == 1, f"They do not find the same: {found}"
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            start = time.process_time()
            run()
            spent[name].append(time.process_time() - start)
    medians = {name: statistics.median(own) for name, own in spent.items()}
    best = min((name for name in runs if name != "handfast"), key=medians.__getitem__)
    ratio = Ratio.of(spent["handfast"], spent[best])
    print(f"{rows:,} × {rows:,}, {on}: {ratio} of the CPU of {best}; seconds {medians}", flush=True)
    return {"rows": rows, "on": on, "matches": found["handfast"], "CPU s": medians, "best peer": best} | asdict(ratio)


def _ours(load: Load, r: pa.Table, s: pa.Table, length: int) -> int:
    options = hf.LocalOptions(cores=1)
    joined = hf.join(
        {"r": r, "s": s}, on=load.on, window=f"{length} microseconds", time="ts", select=IDS, options=options
    )
    return len(joined)


def _peers(on: str, r: pa.Table, s: pa.Table, length: int) -> dict[str, Callable[[], int]]:
    left, right = (pl.from_arrow(table.set_column(0, "ts", table["ts"].cast(pa.int64()))) for table in (r, s))
    assert isinstance(left, pl.DataFrame) and isinstance(right, pl.DataFrame)
    near = (pl.col("ts") - pl.col("ts_right")).abs() < length
    inside = "abs(epoch_us(r.ts) - epoch_us(s.ts)) < " + str(length)
    if "k" in on:
        query = f"SELECT {IDS} FROM r JOIN s ON {on} AND {inside}"
        return {
            "Polars": lambda: left.join(right, on="k").filter(near).select(r="id", s="id_right").height,
            "DuckDB": lambda: _duckdb(query, r, s),
        }
    # buckets as wide as the band, by hand: on both sides of the first column, and of the second
    buckets = {"cx": pl.col("x") // 21, "cy": (pl.col("y") / 21).floor().cast(pl.Int64)}
    spread = right.with_columns(cx=pl.col("a") // 21, cy=(pl.col("b") / 21).floor().cast(pl.Int64))
    shifts = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]

    def polars() -> int:
        copies = pl.concat([spread.with_columns(cx=pl.col("cx") + dx, cy=pl.col("cy") + dy) for dx, dy in shifts])
        band = (pl.col("x") - pl.col("a")).is_between(-10, 10) & (pl.col("y") >= pl.col("b") - 10.0)
        joined = left.with_columns(**buckets).join(copies, on=["cx", "cy"])
        return joined.filter(near & band & (pl.col("y") <= pl.col("b") + 10.0)).select(r="id", s="id_right").height

    query = (
        "WITH a AS (SELECT *, x // 21 AS cx, floor(y / 21)::BIGINT AS cy FROM r), "
        "b AS (SELECT s.*, a // 21 + dx AS cx, floor(b / 21)::BIGINT + dy AS cy "
        "FROM s, (VALUES (-1), (0), (1)) u(dx), (VALUES (-1), (0), (1)) v(dy)) "
        f"SELECT r.id AS r, s.id AS s FROM a AS r JOIN b AS s ON r.cx = s.cx AND r.cy = s.cy AND {on} AND {inside}"
    )
    return {"Polars": polars, "DuckDB": lambda: _duckdb(query, r, s)}


def _duckdb(query: str, r: pa.Table, s: pa.Table) -> int:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("r", r)
        connection.register("s", s)
        return int(connection.sql(query).to_arrow_table().num_rows)


# -- all --------------------------------------------------------------------------------------------------------------

EQUALITY = Load("r.k = s.k", 1_000_000, 1)
BAND = Load(BAND_ON, 10_000, 60)


@dataclass(frozen=True)
class Measured:
    """A run that is measured, and the tuples/s/stream that are wanted."""

    load: Load
    push: int
    pushes: int
    goal: int | None = None


def measured(band_rate: int) -> dict[str, Measured]:
    """The runs by name; CellJoin's windows of 15 minutes at this rate."""
    long = replace(BAND, rate=band_rate, seconds=900)
    return {
        "equality, 1 M": Measured(EQUALITY, 100_000, 15, 5_000_000),
        "equality, 1 M, pushes of 10,000": Measured(EQUALITY, 10_000, 150, 1_500_000),
        "equality, 1 M, every column": Measured(replace(EQUALITY, select=None), 100_000, 15),
        "equality, 1 M, Zipf 1.2": Measured(replace(EQUALITY, values="zipf"), 100_000, 15),
        "equality, 1 M, 10% out of order": Measured(replace(EQUALITY, disorder=0.1), 100_000, 15),
        "equality, 30 M": Measured(replace(EQUALITY, seconds=30), 100_000, 15, 2_500_000),
        "band, 1 minute": Measured(BAND, 10_000, 30),
        "band, 1 minute, pushes of 1,000": Measured(BAND, 1_000, 100),
        "band, 1 minute, clustered": Measured(replace(BAND, values="clustered"), 10_000, 30),
        "band, 1 minute, 10% out of order": Measured(replace(BAND, disorder=0.1), 10_000, 30),
        "band, 15 minutes": Measured(long, band_rate, 6, band_rate),
        "band, 15 minutes, every column": Measured(replace(long, select=None), band_rate, 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="the runs whose names contain this text; `bounded` for the peers")
    parser.add_argument("--band-rate", type=int, default=10_000, help="tuples a second of the 15-minute windows")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    small = replace(EQUALITY, rate=1_000, seconds=2), replace(BAND, rate=1_000, seconds=3)
    for load in small:
        for change in ({}, {"disorder": 0.1}, {"values": "zipf" if "k" in load.on else "clustered"}):
            check_small(replace(load, **change))
    runs: dict[str, dict[str, Any]] = {}
    for name, own in measured(asked.band_rate).items():
        if asked.only in name:
            slid = slide(own.load, own.push, own.pushes)
            if own.load.select is not None:
                check_large(slid)
            print(f"{name}: {slid}", flush=True)
            runs[name] = slid.result | {"goal": own.goal}
    peers = []
    if asked.only in "bounded":
        peers.append(bounded(2_000_000, BAND_ON, asked.turns) | {"goal": 0.25})
        peers.append(bounded(2_000_000, "r.k = s.k", asked.turns) | {"goal": 0.4})
        peers.append(bounded(200_000, "r.k = s.k", asked.turns) | {"goal": 1.2})
    if asked.save:
        question = (__doc__ or "").splitlines()[0]
        result = {"question": question, "seed": SEED, **setting(), "sliding": runs, "bounded": peers}
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    met = all(own["goal"] is None or own["tuples/s/stream"] >= own["goal"] for own in runs.values())
    sys.exit(0 if met and all(own["median"] <= own["goal"] for own in peers) else 1)


if __name__ == "__main__":
    main()
