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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

import handfast as hf
from benchmarks.trigger import setting
from handfast.cli.bench.measure import Ratio, quantile
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
        return (
            f"{self.per_stream:,.0f} tuples/s/stream, {1e3 * statistics.median(self.cpu):.2f} ms a push of {self.push:,}"
            f" (slowest {self.worst:.1f} ×), {self.matches / (self.push * len(self.cpu)):.2f} matches a tuple{memory}"
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
