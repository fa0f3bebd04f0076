"""The runs behind the figures of rings: each ring with each input once, on as many threads as there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.circular.workload import NEIGHBOURS, ONE_KEY, RingStreams
from handfast.engines.hardware.model.circular import run as run_ring
from handfast.engines.hardware.model.stashed import run as run_line
from handfast.engines.hardware.options import HIGHEST, ROUND_ROBIN
from handfast.engines.hardware.stashed.shape import LineShape

CLOCK = 100e6
"""Cycles in a second: that of the paper's measurements [CMJ §IV]."""

WINDOW, STREAMS = 1 << 14, (3, 4, 5, 6, 7, 8)
"""Of the paper's figures [CMJ Fig. 7]."""

PRINTED_PROBABILITY = 1e-4
"""Of Figure 7c, the only one that the paper prints [CMJ §IV]."""

_POINTS = 120  # of a line over tuples
_FEWEST = 8  # tuples of each stream: from fewer, no throughput is told


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run.

    Attributes:
        window: Rows of each window.
        streams: How many streams; one line each.
        probabilities: Match probabilities, from the lowest to the highest; a figure each.
        cycles: About so many cycles are run with full windows.
        shown: Numbers of streams of the tables that compare circuits.
        comparisons: Numbers of slots that a stage compares at a time.
        kept: Sizes of a stash, as so many times the pairs that are in their windows on average. Twice as many are found
            while a window fills, and those that have expired make room only when they are the oldest.
    """

    window: int
    streams: tuple[int, ...]
    probabilities: tuple[float, ...]
    cycles: float
    shown: tuple[int, ...] = (3, 5, 8)
    comparisons: tuple[int, ...] = (1, 2, 4, 8)
    kept: tuple[float, ...] = (2.5, 1.0, 0.25)

    @property
    def is_printed(self) -> bool:
        """Whether the windows are the paper's."""
        return self.window == WINDOW


WHOLE = Scale(WINDOW, STREAMS, (1e-7, 1e-5, PRINTED_PROBABILITY), 1e9)
QUICK = Scale(1 << 9, (3, 5, 8), (32e-7, 32e-5, 32e-4), 1e7, comparisons=(1, 4))
"""As many partners in each window as with the paper's."""


@dataclass(frozen=True, slots=True)
class Order:
    """How the stages of a ring work: which item is next, how many tuples may be under way, how long the queues are."""

    turn: str
    in_flight: int | None  # as many as there are streams, if None
    buffer: int

    def shape(self, streams: int, window: int, comparisons: int = 1) -> RingShape:
        """The ring."""
        return RingShape(
            sizes=(window,) * streams,
            counted=(window,) * streams,
            comparisons=comparisons,
            in_flight=self.in_flight or streams,
            buffer=self.buffer,
            turn=self.turn,
        )

    @property
    def says(self) -> str:
        """In words."""
        first = "intermediates first" if self.turn == HIGHEST else "in turn"
        under_way = f"{self.in_flight:,}" if self.in_flight else "N"
        slots = "1 slot" if self.buffer == 1 else f"{self.buffer} slots"
        return f"{first}, {under_way} under way, {slots}"


PAPER = Order(HIGHEST, None, 1)
"""The paper's rule: intermediates before new tuples, order control for as many tuples as there are stages."""

OURS = Order(ROUND_ROBIN, 128, 8)
LADDER = (PAPER, Order(HIGHEST, 128, 8), OURS, Order(ROUND_ROBIN, 1_024, 64))


@dataclass(frozen=True, slots=True)
class RingJob:
    """A ring, or a line with a stash, and its input."""

    shape: RingShape | LineShape
    streams: RingStreams


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job took.

    Attributes:
        taken: The cycles in which tuples entered: of the first, of every `every`-th behind it, and of the last.
        every: Tuples between these.
        utilisation: The part of their cycles in which stages compare, until the last tuple entered.
        scans: Scans of all stages.
        groups: What all stages have compared, a slot or several at a time.
        dropped: Intermediates that were lost.
        overwritten: Pairs of a stash that were overwritten and could still match.
        computed: Tuples for which pairs were computed that were missing.
        waited: The part of their cycles in which stages have found something and have no room for it.
    """

    taken: NDArray[np.int64]
    every: int
    utilisation: float
    scans: int
    groups: int
    results: int
    cycles: int
    dropped: int
    waited: float
    overwritten: int
    computed: int

    @property
    def throughput(self) -> float:
        """Tuples in a second, of all streams together."""
        return (len(self.taken) - 1) * self.every * CLOCK / float(self.taken[-1] - self.taken[0])

    @property
    def at_the_end(self) -> float:
        """Tuples in a second, over the last quarter of them."""
        last = self.taken[3 * len(self.taken) // 4 :]
        return (len(last) - 1) * self.every * CLOCK / float(last[-1] - last[0])

    def over_tuples(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """After so many tuples, how many enter in a second."""
        tuples = self.every * (np.arange(1, len(self.taken)) - 0.5)
        return tuples, self.every * CLOCK / np.diff(self.taken)


@dataclass
class RingEvaluation:
    """Every figure's jobs, and once they have run, what they took."""

    scale: Scale
    costs: dict[RingJob, Cost] = field(default_factory=dict)

    # -- the jobs ------------------------------------------------------------------------------------------------

    def from_empty(self, streams: int, probability: float, order: Order = OURS) -> RingJob:
        """From empty windows until a quarter more tuples have come than fill them, or as many as there is time for."""
        filling = streams * self.scale.window
        further = min(filling // 4, self._tuples(streams, probability, 2 * self.scale.cycles))
        made = RingStreams(streams, self.scale.window, probability, filling + further)
        return RingJob(order.shape(streams, self.scale.window), made)

    def steady(
        self,
        streams: int,
        probability: float,
        order: Order = OURS,
        pattern: str = NEIGHBOURS,
        comparisons: int = 1,
    ) -> RingJob:
        """With full windows."""
        tuples = self._tuples(streams, probability, self.scale.cycles)
        made = RingStreams(streams, self.scale.window, probability, tuples, pattern, filled=True)
        return RingJob(order.shape(streams, self.scale.window, comparisons), made)

    def stashed(self, probability: float, kept: float) -> RingJob:
        """Three streams and a stash of so many times the pairs that are in their windows on average."""
        made = self.stash_input(probability)
        window = self.scale.window
        pairs = max(16, int(kept * window * probability * window))
        return RingJob(LineShape(sizes=(window,) * 3, counted=(window,) * 3, stash=pairs), made)

    def unstashed(self, probability: float) -> RingJob:
        """The same input for a ring."""
        return RingJob(OURS.shape(3, self.scale.window), self.stash_input(probability))

    def stash_input(self, probability: float) -> RingStreams:
        """Three streams with one key, until twice as many tuples have come as fill the windows."""
        window = self.scale.window
        return RingStreams(3, window, probability, 6 * window, ONE_KEY)

    def _tuples(self, streams: int, probability: float, cycles: float) -> int:
        """How many tuples take about so many cycles, or a few where already one takes more."""
        scans = RingStreams(streams, self.scale.window, probability, 0).scans
        return max(_FEWEST, int(cycles / (self.scale.window * scans))) * streams

    def jobs(self) -> list[RingJob]:
        """Every job once."""
        scale = self.scale
        high = scale.probabilities[-1]
        found = [self.from_empty(n, each) for n in scale.streams for each in scale.probabilities]
        found += [self.from_empty(n, high, PAPER) for n in scale.streams]
        found += [self.steady(n, each) for n in scale.streams for each in scale.probabilities]
        for n in scale.shown:
            found += [self.steady(n, high, order, pattern) for order in LADDER for pattern in (NEIGHBOURS, ONE_KEY)]
            ends = (scale.probabilities[0], high)
            found += [self.steady(n, each, comparisons=k) for each in ends for k in scale.comparisons]
        for each in scale.probabilities:
            found += [self.unstashed(each), *(self.stashed(each, kept) for kept in scale.kept)]
        return list(dict.fromkeys(found))

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many runs there are."""
        return len(self.jobs())

    def run(self, threads: int, done: Callable[[int], None]) -> None:
        """Run everything; `done` is told how many runs are behind."""
        jobs = self.jobs()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for job, cost in zip(jobs, pool.map(run_job, jobs), strict=True):
                    self.costs[job] = cost
                    done(len(self.costs))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def cost(self, job: RingJob) -> Cost:
        """What a job took."""
        return self.costs[job]

    def bound(self, streams: int, probability: float) -> float:
        """Tuples in a second if all stages always compare: N · f / (w · Σ (mp · w)^k)."""
        made = RingStreams(streams, self.scale.window, probability, 0)
        return streams * CLOCK / (self.scale.window * made.scans)

    def dropped(self) -> int:
        """The intermediates that were lost in any run."""
        return sum(own.dropped for own in self.costs.values())

    def each(self, jobs: Iterable[RingJob]) -> list[Cost]:
        """What some jobs took."""
        return [self.cost(job) for job in jobs]


def run_job(job: RingJob) -> Cost:
    """Run one job."""
    into, lists = job.streams.entering(), job.streams.lists()
    ran = run_ring(job.shape, into, lists) if isinstance(job.shape, RingShape) else run_line(job.shape, into, lists)
    every = max(1, len(ran.taken) // _POINTS)
    stages = len(ran.scans)
    return Cost(
        taken=ran.taken[::every].copy(),
        every=every,
        utilisation=ran.utilisation,
        scans=int(ran.scans.sum()),
        groups=int(ran.compared.sum()),
        results=len(ran.results),
        cycles=ran.idle,
        dropped=ran.dropped,
        waited=float(ran.waited.sum()) / (stages * ran.idle),
        overwritten=ran.overwritten,
        computed=ran.computed,
    )
