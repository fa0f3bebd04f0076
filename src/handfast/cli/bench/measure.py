"""What the local engine does in a second: pairs tried, matches found, how soon; by cores, local join and forwarding."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.cli.bench.workload import Bench
from handfast.core.planner import make_plan
from handfast.core.recipe import Recipe
from handfast.engines.local.options import HANDSHAKE, LOW_LATENCY, LocalOptions
from handfast.errors import EngineError
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.flow.time import micros
from handfast.judge import oracle
from handfast.judge.rows import tables_of
from handfast.kernels.columns import Columns
from handfast.kernels.sizes import KernelSizes
from handfast.kernels.strings import StringTable
from handfast.plan import SCAN

T = TypeVar("T")
_STAT = Path("/proc/stat")
_WARM = 15  # blocks that only warm up, and over which the pace of the machine is taken as a median


@dataclass(frozen=True, slots=True)
class Speed:
    """What was done in a run, and how long it took."""

    seconds: float
    tuples: int
    pairs: int
    matches: int

    @property
    def tuples_per_second(self) -> float:
        """New tuples that were joined with the whole window in a second."""
        return self.tuples / self.seconds

    @property
    def pairs_per_second(self) -> float:
        return self.pairs / self.seconds

    @property
    def matches_per_second(self) -> float:
        return self.matches / self.seconds

    def rate(self, window_seconds: float) -> float:
        """Tuples a second and stream at which all pairs are tried, with windows of so many seconds on both streams.

        A tuple meets rate × window others, and of both streams together there are 2 × rate in a second.
        """
        return float((self.pairs_per_second / (2 * window_seconds)) ** 0.5)


def speed(bench: Bench, options: LocalOptions, *, block: int, blocks: int) -> Speed:
    """How fast blocks of S meet a full window of R; the first block only warms up."""
    session = bench.session(options)
    batches = [bench.rows("s", start, block) for start in range(0, block * (blocks + 1), block)]
    session.push("s", batches[0])
    start = perf_counter()
    matches = sum(found.num_rows for batch in batches[1:] for found in session.push("s", batch))
    seconds = perf_counter() - start
    session.close()
    return Speed(seconds, block * blocks, bench.window * block * blocks, matches)


def scan_speed(bench: Bench, sizes: KernelSizes, *, block: int, blocks: int) -> Speed:
    """How fast a scan by kernels of these sizes tries blocks of S against a window of R; the first only warms up."""
    names = ("r", "s")
    join = bench.spec.bind({name: schema_of(bench.workload.schema(name)) for name in names})
    recipe = Recipe(make_plan(join, 1, local_join=SCAN), sizes)
    kernels, reader = recipe.pairing(0, 1).kernels, recipe.reader(StringTable())
    literals = reader.literals(kernels.literals)

    def read(stream: int, start: int, count: int) -> Columns:
        batch = as_batch(bench.rows(names[stream], start, count))
        return reader.read(stream, Block(batch, micros(batch.column("ts")), np.zeros(count, np.uint8)))

    window = read(0, 0, bench.window)
    runs = [read(1, k * block, block) for k in range(blocks + 1)]

    def scan(run: Columns) -> int:
        return sum(len(found) for _, found in kernels.scan(window, run, literals, (0, 0)))

    scan(runs[0])
    start = perf_counter()
    matches = sum(map(scan, runs[1:]))
    return Speed(perf_counter() - start, block * blocks, bench.window * block * blocks, matches)


def compare(bench: Bench, options: Mapping[str, LocalOptions], *, block: int, blocks: int) -> dict[str, list[Speed]]:
    """How fast each block of S meets a full window of R, in several sessions by turns; the first two only warm up.

    A turn is as short as a block, so that whatever else the machine does affects all sessions alike.
    """
    sessions = {name: bench.session(own) for name, own in options.items()}
    speeds: dict[str, list[Speed]] = {name: [] for name in sessions}
    for k in range(blocks + 2):
        batch = bench.rows("s", k * block, block)
        for name, session in sessions.items():
            start = perf_counter()
            matches = sum(found.num_rows for found in session.push("s", batch))
            speeds[name].append(Speed(perf_counter() - start, block, bench.window * block, matches))
    for session in sessions.values():
        session.close()
    return {name: own[2:] for name, own in speeds.items()}


def checked(bench: Bench, options: Sequence[LocalOptions], *, block: int) -> int:
    """How many matches a block of S has; raise an error if a session with any of these options finds others."""
    tables = {"r": bench.rows("r", 0, bench.window), "s": bench.rows("s", 0, block)}
    bound = bench.spec.bind({name: schema_of(table.schema) for name, table in tables.items()})
    right = sorted(oracle.matches(bound, tables_of(tables)))
    for own in options:
        session = bench.session(own)
        batches = [*session.push("s", tables["s"]), *session.close()]
        columns = [[i for batch in batches for i in batch.column(name).to_pylist()] for name in ("r_id", "s_id")]
        if right != sorted(zip(*columns, strict=True)):
            raise EngineError(f"{own} does not find the {len(right)} matches of the oracle: nothing is measured")
    return len(right)


def quantile(values: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return float(np.quantile(values, share))


def in_turns(runs: Mapping[str, Callable[[], T]], turns: int) -> dict[str, list[T]]:
    """Make each run once in every turn, so that whatever else the machine does affects all of them alike."""
    results: dict[str, list[T]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            results[name].append(run())
    return results


@dataclass(frozen=True, slots=True)
class Ratio:
    """How much faster one is than another: the median over turns, and its quartiles."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(faster: Sequence[float], slower: Sequence[float]) -> Ratio:
        ratios = [a / b for a, b in zip(faster, slower, strict=True)]
        return Ratio(*(quantile(ratios, share) for share in (0.5, 0.25, 0.75)))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


# -- latency ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from the second tuple's arrival to the result, by match."""

    low_latency: NDArray[np.float64]
    handshake: NDArray[np.float64]
    scan: float  # what one block's scan took its busiest core, at the pace that the machine had meanwhile
    stolen: float  # the part of the CPUs' time that the host gave to other machines meanwhile


def latency(bench: Bench, *, cores: int, block: int, blocks: int, load: float = 0.5) -> Latency:
    """Feed blocks of a stream to both forwardings, by the clock, at a part of the load that the cores can bear.

    What they can bear is seen as it goes, for a shared machine is faster in one second than in the next: blocks come
    a scan's time ÷ load apart, with the median of the last scans. The handshake gets its blocks just as far apart.
    """
    session, scans, gaps = bench.session(_options(cores, LOW_LATENCY)), [], []
    start, stolen = perf_counter(), stolen_seconds()

    def join(batch: pa.Table) -> Iterator[pa.RecordBatch]:
        before = [core.busy for core in session.metrics().cores]
        yield from session.push("s", batch)
        scans.append(max(core.busy - own for core, own in zip(session.metrics().cores, before, strict=True)))

    for k in range(_WARM):
        list(join(bench.rows("s", k * block, block)))

    def gap() -> float:
        gaps.append(statistics.median(scans[-_WARM:]) / load)
        return gaps[-1]

    batches = [bench.rows("s", k * block, block) for k in range(_WARM, _WARM + blocks)]
    at_once = _waits(batches, gap, join)
    share = (stolen_seconds() - stolen) / ((perf_counter() - start) * (os.cpu_count() or 1))
    session.close()
    handshake, same_gaps = bench.session(_options(cores, HANDSHAKE)), iter(gaps)
    later = _waits(batches, lambda: next(same_gaps), lambda batch: handshake.push("s", batch), handshake.close)
    return Latency(at_once, later, statistics.median(scans[_WARM:]), share)


def stolen_seconds(stat: Path = _STAT) -> float:
    """The CPU time so far that this machine wanted and its host gave to others, as Linux counts it; else none."""
    if not stat.exists():
        return 0.0
    total, *_ = stat.read_text(encoding="utf-8").splitlines()
    return int(total.split()[8]) / float(os.sysconf("SC_CLK_TCK"))


def _options(cores: int, forwarding: str) -> LocalOptions:
    return LocalOptions(cores=cores, forwarding=forwarding, local_join=SCAN)


def _waits(
    batches: Sequence[pa.Table],
    gap: Callable[[], float],
    join: Callable[[pa.Table], Iterable[pa.RecordBatch]],
    close: Callable[[], Iterable[pa.RecordBatch]] = tuple,
) -> NDArray[np.float64]:
    """For each match, the seconds since its block was due. A block that is due while another is joined waits."""
    waits: list[NDArray[np.float64]] = []
    ids = [batch["id"].to_numpy() for batch in batches]
    arrivals = np.zeros(1 + max(int(own.max()) for own in ids))

    def take(found: Iterable[pa.RecordBatch]) -> None:
        given = list(found)
        now = perf_counter()
        # quickly: the next block may be due
        waits.extend(now - arrivals[batch.column("s_id").to_numpy()] for batch in given)

    arrival = perf_counter()
    for batch, own in zip(batches, ids, strict=True):
        arrival += gap()
        arrivals[own] = arrival
        sleep(max(0.0, arrival - perf_counter()))
        take(join(batch))
    take(close())
    return np.concatenate(waits)
