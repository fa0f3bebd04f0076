"""How fast are the indexes, with both streams sliding over full windows, and against peers on bounded tables?

A run fills both windows, then pushes both streams by turns; what is timed is the CPU of the pushes, of all threads.
Matches are verified first: small runs by DuckDB as whole tables, large ones by a count (equality) or by the partners of
single tuples (band) that numpy finds on its own. Every run has a process of its own: what it holds is the memory of
that process beyond what it took with a small window. Peers join the same bounded tables by turns with this engine.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

import handfast as hf
from benchmarks.page import MEMORY, SLOWEST
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
_GRID = 256  # values of floats are so many to a unit: bounds computed in FLOAT, as some peers do, are those in DOUBLE

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
        columns[names[1]] = (np.round(self._coordinate(rng, count) * _GRID) / _GRID).astype(np.float32)
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
    check_small(small(load))  # which loads all that joining needs
    _trim()
    before = resident()
    session = filled(load)
    slid = Slid(load, push)
    raw = sum(load.table(name, 0, 1000).nbytes for name in "rs") * load.window // 1000
    for k in range(warm + pushes):
        if k == warm:
            slid.last = []  # what the caller holds is no part of the window
            _trim()
            slid.raw, slid.resident = raw, resident() - before
            pool = pa.default_memory_pool()
            start_bytes = pool.bytes_allocated()
        tables = {name: load.table(name, load.window + k * push, push) for name in "rs"}
        for name in "rs":
            table = tables.pop(name)
            wall, start = time.perf_counter(), time.process_time()
            found = session.push(name, table)
            if k >= warm:
                slid.cpu.append(time.process_time() - start)
                slid.walls.append(time.perf_counter() - wall)
                slid.matches += sum(batch.num_rows for batch in found)
                slid.pool = max(slid.pool, pool.bytes_allocated() - start_bytes)
            slid.last = found
            del table, found
    session.close()
    return slid


def _trim() -> None:
    """Give back what is free: what making the data took is no part of the window."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


# -- verified ---------------------------------------------------------------------------------------------------------


def small(load: Load) -> Load:
    """The same in a window so small that DuckDB can check all of it."""
    rate, seconds = (1_000, 2) if "k" in load.on else (1_000, 3)
    return replace(load, rate=rate, seconds=seconds, select=IDS)


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
    if "k" in load.on:
        every = {name: joined(load, name, slid.push, warm + count) for name in "rs"}
        found = _pairs(load, every["s"], every["r"], first, None) + _pairs(load, every["r"], every["s"], first, first)
        assert slid.matches == found, f"{slid.matches:,} matches, numpy counts {found:,}"
        return
    ours = pa.Table.from_batches(slid.last) if slid.last else None
    s = load.arrays("s", load.window + (warm + count - 1) * slid.push, slid.push)
    sought = np.random.default_rng(SEED).integers(0, slid.push, 20)
    partners: list[list[int]] = [[] for _ in sought]
    for start, number in [*load.pieces, *((load.window + k * slid.push, slid.push) for k in range(warm + count))]:
        r = load.arrays("r", start, number)
        for own, at in zip(partners, sought, strict=True):
            near = np.abs(r["x"].astype(np.int64) - int(s["a"][at])) <= 10
            near &= np.abs(r["y"].astype(np.float64) - float(s["b"][at])) <= 10
            near &= np.abs(r["ts"] - s["ts"][at]) < load.seconds * 1_000_000
            own += r["id"][near].tolist()
    for own, at in zip(partners, sought, strict=True):
        mine = [] if ours is None else ours.filter(pa.compute.equal(ours["s"], int(s["id"][at])))["r"].to_pylist()
        assert sorted(own) == sorted(mine), f"Tuple {s['id'][at]} of s has other partners"


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


def bounded(rows: int, on: str, turns: int, peer: str | None = None) -> dict[str, Any]:
    """CPU of a join of two bounded tables, over that of a peer in the same turn: the best one, if none is named.

    All find as many matches.
    """
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
    against = peer or best
    ratio, of_best = (Ratio.of(spent["handfast"], spent[name]) for name in (against, best))
    print(f"{rows:,} × {rows:,}, {on}: {ratio} of the CPU of {against}; seconds {medians}", flush=True)
    own = {"rows": rows, "on": on, "matches": found["handfast"], "CPU s": medians, "against": against}
    return own | asdict(ratio) | {"best peer": best, "over the best": asdict(of_best)}


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
            "DataFusion": lambda: _datafusion(query, r, s),
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
    return {
        "Polars": polars,
        "DuckDB": lambda: _duckdb(query, r, s),
        "DataFusion": lambda: _datafusion(query.replace("//", "/"), r, s),
    }


def _duckdb(query: str, r: pa.Table, s: pa.Table) -> int:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("r", r)
        connection.register("s", s)
        return int(connection.sql(query).to_arrow_table().num_rows)


def _datafusion(query: str, r: pa.Table, s: pa.Table) -> int:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    for name, table in (("r", r), ("s", s)):
        times = table.set_column(0, "ts", table["ts"].cast(pa.int64()))
        context.register_record_batches(name, [times.to_batches()])
    plain = query.replace("epoch_us(r.ts)", "r.ts").replace("epoch_us(s.ts)", "s.ts")
    return int(context.sql(plain).to_arrow_table().num_rows)


# -- all --------------------------------------------------------------------------------------------------------------

_ROOM = 3.5  # what a process holds over the raw columns of its windows while it fills them, about
EQUALITY = Load("r.k = s.k", 1_000_000, 1)
BAND = Load(BAND_ON, 10_000, 60)


@dataclass(frozen=True)
class Measured:
    """A run that is measured.

    Attributes:
        goal: The tuples/s/stream that are wanted.
        beside: The run of uniform values in order whose half, at least, is wanted.
    """

    load: Load
    push: int
    pushes: int
    goal: int | None = None
    beside: str | None = None

    def run(self) -> tuple[str, dict[str, Any]]:
        """Its figures, in words and by name, once what it found has been checked."""
        slid = slide(self.load, self.push, self.pushes)
        if self.load.select is not None:
            check_large(slid)
        return str(slid), slid.result | {"goal": self.goal}


def measured(band_rate: int) -> dict[str, Measured]:
    """The runs by name; CellJoin's windows of 15 minutes at this rate, with every column at up to 40,000."""
    long, wide = (replace(BAND, rate=rate, seconds=900) for rate in (band_rate, min(band_rate, 40_000)))
    equality, band = "equality, 1 M", "band, 1 minute"
    return {
        equality: Measured(EQUALITY, 100_000, 15, 5_000_000),
        "equality, 1 M, pushes of 10,000": Measured(EQUALITY, 10_000, 150, 1_500_000),
        "equality, 1 M, every column": Measured(replace(EQUALITY, select=None), 100_000, 15),
        "equality, 1 M, Zipf 1.2": Measured(replace(EQUALITY, values="zipf"), 100_000, 15, beside=equality),
        "equality, 1 M, 10% out of order": Measured(replace(EQUALITY, disorder=0.1), 100_000, 15, beside=equality),
        "equality, 30 M": Measured(replace(EQUALITY, seconds=30), 100_000, 15, 2_500_000),
        band: Measured(BAND, 10_000, 30),
        "band, 1 minute, pushes of 1,000": Measured(BAND, 1_000, 100),
        "band, 1 minute, clustered": Measured(replace(BAND, values="clustered"), 10_000, 30, beside=band),
        "band, 1 minute, 10% out of order": Measured(replace(BAND, disorder=0.1), 10_000, 30, beside=band),
        "band, 15 minutes": Measured(long, long.rate, 6, long.rate),
        "band, 15 minutes, every column": Measured(replace(wide, select=None), wide.rate, 6, wide.rate),
    }


def fitting_rate() -> int:
    """The tuples a second of each stream, up to 75,000, whose windows of 15 minutes fit in the memory that is free."""
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(meminfo["MemAvailable"].split()[0]) * 1024
    row = BAND.table("r", 0, 1000).nbytes / 1000
    fits = int(0.8 * free / (2 * 900 * row * _ROOM))
    return max(1_000, min(75_000, fits // 1_000 * 1_000))


def ratios(runs: dict[str, dict[str, Any]], every: dict[str, Measured]) -> dict[str, dict[str, float]]:
    """What skew and disorder leave of the speed, for the runs that have been measured."""
    figures = {}
    for name, own in every.items():
        if name in runs and own.beside in runs:
            left = runs[name]["tuples/s/stream"] / runs[own.beside]["tuples/s/stream"]
            figures[f"{name}, over {own.beside}"] = {"ratio": left, "goal": 0.5}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="the runs whose names contain this text; `bounded` for the peers")
    parser.add_argument("--band-rate", type=int, help="tuples a second of 15-minute windows; by default what fits")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", type=Path, nargs="?", const=RESULT, help=f"write {RESULT.name}, or another file")
    asked = parser.parse_args()
    for load in map(small, (EQUALITY, BAND)):
        for change in ({}, {"disorder": 0.1}, {"values": "zipf" if "k" in load.on else "clustered"}):
            check_small(replace(load, **change))
    runs: dict[str, dict[str, Any]] = {}
    every = measured(asked.band_rate or fitting_rate())
    for name, own in every.items():
        if asked.only in name:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                words, runs[name] = pool.submit(own.run).result()
            print(f"{name}: {words}", flush=True)
    beside = ratios(runs, every)
    for name, figure in beside.items():
        print(f"{name}: {figure['ratio']:.2f}, goal {figure['goal']}", flush=True)
    peers = []
    if asked.only in "bounded":
        peers.append(bounded(2_000_000, BAND_ON, asked.turns) | {"goal": 0.25})
        peers.append(bounded(2_000_000, "r.k = s.k", asked.turns) | {"goal": 0.4})
        peers.append(bounded(200_000, "r.k = s.k", asked.turns, "Polars") | {"goal": 1.2})
    if asked.save:
        question = (__doc__ or "").splitlines()[0]
        result = {"question": question, "seed": SEED, **setting(), "sliding": runs, "beside": beside, "bounded": peers}
        asked.save.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    met = [own["goal"] is None or own["tuples/s/stream"] >= own["goal"] for own in runs.values()]
    met += [own["slowest push over median"] <= SLOWEST and own["resident over raw"] <= MEMORY for own in runs.values()]
    met += [own["ratio"] >= own["goal"] for own in beside.values()]
    met += [own["median"] <= own["goal"] for own in peers]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
