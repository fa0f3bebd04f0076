"""The runs behind the figures: each circuit with each input once, on as many threads as there are."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from handfast.cli.reproduce import printed
from handfast.cli.reproduce.circuits import (
    COMBINATIONS,
    OF_RING,
    OF_TREE,
    Option,
    baseline,
    by_level,
    nested_loop,
    proposed,
    uniform,
)
from handfast.engines.hardware.model.circuit import Ints, run
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.workload import BURST, GAUSSIAN, RANDOM, StreamPair
from handfast.errors import InternalError

TRACED = tuple((pattern, rate) for pattern in (RANDOM, GAUSSIAN, BURST) for rate in (0.2, 0.4))
TRACED_LEVEL = 3  # whose mergers' FIFOs are drawn [OGE Fig. 5.2.1]
_TRACE_POINTS = 300
_NEVER_FULL = 1 << 16  # slots: "equal to or more than 2^16" [OGE §5.2]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run.

    Attributes:
        cores: Of the large circuit; the printed figures are of 64.
        buffers: Slots of every FIFO, one run each [OGE Fig. 5.1.1].
        rates: Match rates of the throughput figures.
        few_rates: Match rates of [OGE Fig. 5.1.2].
        seeds: Of random inputs; a figure shows the median, the lowest and the highest.
    """

    cores: int
    buffers: tuple[int, ...]
    rates: tuple[float, ...]
    few_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    segment: int = printed.SEGMENT
    small_cores: int = 16  # of [OGE Fig. 6.3.5]

    @property
    def tuples(self) -> int:
        """The length of each stream: as many tuples as the chain holds."""
        return self.cores * self.segment

    @property
    def is_printed(self) -> bool:
        """Whether the circuit is the one whose cycles are printed."""
        return (self.cores, self.segment) == (printed.CORES, printed.SEGMENT)


_TENTHS = tuple(k / 10 for k in range(1, 11))
WHOLE = Scale(
    cores=printed.CORES,
    buffers=tuple(2**i for i in range(2, 12)),
    rates=tuple(sorted((*_TENTHS, 0.35, 0.45))),
    few_rates=(0.2, 0.4, 0.6, 0.8, 1.0),
    seeds=(1, 2, 3),
)
QUICK = Scale(cores=16, buffers=(4, 8, 16), rates=(0.2, 0.6, 1.0), few_rates=(0.4, 1.0), seeds=(1,))


@dataclass(frozen=True, slots=True)
class Job:
    """A circuit and its input."""

    shape: CircuitShape
    streams: StreamPair
    flushed: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job took.

    Attributes:
        cycles: Until every step is done and every result has come out, as the thesis counts: “no result tuples remain”
            [OGE §5.1].
        ends: Whether it ever came to that; if not, a result was going round for ever.
    """

    cycles: int
    results: int
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Spread:
    """Cycles over several seeds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Trace:
    """How many results each FIFO of a level held: by sample and FIFO, and the cycles of the samples."""

    cycles: Ints
    levels: Ints


Costs = Mapping[Job, Cost]


class Evaluation:
    """Every figure's jobs, and once they have run, its data."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.costs: dict[Job, Cost] = {}
        self.traces: dict[tuple[str, float], Trace] = {}
        self.tree = baseline(scale.cores, scale.segment)
        self.ring = proposed(scale.cores, scale.segment)
        self.small_tree = baseline(scale.small_cores, scale.segment)
        self.small_ring = proposed(scale.small_cores, scale.segment)
        self.loop = nested_loop(scale.tuples)

    # -- the jobs ------------------------------------------------------------------------------------------------

    def everything(self, tuples: int | None = None) -> StreamPair:
        """The input of which all matches."""
        return StreamPair(tuples or self.scale.tuples, 1.0)

    def random(self, shape: CircuitShape, rate: float) -> list[Job]:
        """A circuit with random inputs, one for each seed; where all matches, they are all the same."""
        tuples = shape.cores * shape.sizes[0]
        seeds = self.scale.seeds if rate < 1 else self.scale.seeds[:1]
        return [Job(shape, StreamPair(tuples, rate, RANDOM, seed)) for seed in seeds]

    def burst(self, shape: CircuitShape, rate: float) -> Job:
        """A circuit with a burst."""
        return Job(shape, StreamPair(shape.cores * shape.sizes[0], rate, BURST))

    def with_options(self, shape: CircuitShape, options: Iterable[Option]) -> CircuitShape:
        """A circuit with some choices made in another way."""
        fields = {name: value for option in options for name, value in option.fields.items()}
        return replace(shape, **fields)

    def jobs(self) -> list[Job]:
        """Every job once."""
        scale, found = self.scale, []
        found += [Job(uniform(self.tree, slots), self.everything()) for slots in (*scale.buffers, *printed.CYCLES)]
        for rate in scale.few_rates:
            for buffers in printed.TABLE_5_1.values():
                found += self.random(by_level(self.tree, buffers), rate)
        for rate in scale.rates:
            found += [*self.random(self.tree, rate), *self.random(self.ring, rate), self.burst(self.ring, rate)]
            found += [*self.random(self.loop, rate)]
            found += [*self.random(self.small_tree, rate), *self.random(self.small_ring, rate)]
        for choice in OF_TREE:
            found += [job for option in choice.options for job in self.uniform_jobs([option]).values()]
        found += [self.ring_job(option) for choice in OF_RING for option in choice.options]
        found += [self.unflushed(slots) for slots in printed.CYCLES]
        for options in COMBINATIONS:
            found += [*self.uniform_jobs(options).values(), *self.baseline_jobs(options)]
        found += [job for _, job in self.input_alternatives()]
        return list(dict.fromkeys(found))

    def uniform_jobs(self, options: Iterable[Option]) -> dict[int, Job]:
        """By slots of every FIFO, the baseline with these options, where all matches."""
        shape = self.with_options(self.tree, options)
        return {slots: Job(uniform(shape, slots), self.everything()) for slots in printed.CYCLES}

    def baseline_jobs(self, options: Iterable[Option]) -> tuple[Job, Job]:
        """The baseline of the throughput figures with these options, where all matches, and where it must be slow."""
        shape = self.with_options(self.tree, options)
        return self.random(shape, 1.0)[0], self.random(shape, printed.CROSSING)[0]

    def ring_job(self, option: Option) -> Job:
        """The proposed circuit with an option, where all matches."""
        return Job(self.with_options(self.ring, [option]), self.everything())

    def unflushed(self, slots: int) -> Job:
        """The baseline without empty steps behind the streams: results are missing."""
        return Job(uniform(self.tree, slots), self.everything(), flushed=False)

    def input_alternatives(self) -> list[tuple[str, Job]]:
        """What the thesis leaves open about its inputs, at a match rate of 40%."""
        burst = StreamPair(self.scale.tuples, 0.4, BURST)
        gaussian = StreamPair(self.scale.tuples, 0.4, GAUSSIAN)
        inputs = {
            "burst in the middle": burst,
            "burst at the beginning": replace(burst, burst_at=0.0),
            "burst at the end": replace(burst, burst_at=1.0),
            "Gaussian, deviation of an eighth of the stream": gaussian,
            "Gaussian, a quarter": replace(gaussian, deviation=1 / 4),
            "Gaussian, a sixteenth": replace(gaussian, deviation=1 / 16),
        }
        return [(name, Job(shape, own)) for name, own in inputs.items() for shape in (self.tree, self.ring)]

    # -- running -------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many runs there are."""
        return len(self.jobs()) + len(TRACED)

    def run(self, threads: int, done: Callable[[int], None]) -> None:
        """Run everything; `done` is told how many runs are behind."""
        jobs = self.jobs()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for job, cost in zip(jobs, pool.map(run_job, jobs), strict=True):
                    self.costs[job] = cost
                    done(len(self.costs))
                for key, trace in zip(TRACED, pool.map(self._trace, TRACED), strict=True):
                    self.traces[key] = trace
                    done(len(self.costs) + len(self.traces))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def cycles(self, job: Job) -> int:
        """The cycles of a job that was run to its end."""
        cost = self.costs[job]
        if not cost.ends:
            raise InternalError(f"The circuit did not end: {job}")
        return cost.cycles

    def spread(self, jobs: Iterable[Job]) -> Spread:
        """The cycles of jobs that differ in their seeds."""
        own = [self.cycles(job) for job in jobs]
        return Spread(statistics.median(own), min(own), max(own))

    def _trace(self, of: tuple[str, float]) -> Trace:
        """The levels of the FIFOs of one level of the tree while nothing ever has to wait [OGE §5.2]."""
        shape = uniform(self.tree, _NEVER_FULL)
        streams = StreamPair(self.scale.tuples, of[1], of[0])
        steps = streams.steps(shape.flush)
        expected = max(len(steps.r) * shape.cycles_per_step, shape.cycles_per_result * streams.results)
        every = max(1, expected // _TRACE_POINTS)
        ran = run(shape, steps, streams.pairs(), levels_every=every)
        first = shape.cores + 2**TRACED_LEVEL - 1  # behind the cores' FIFOs, mergers come from the root on
        assert ran.levels is not None, "they were asked for"
        levels = ran.levels[first : first + 2**TRACED_LEVEL].T
        return Trace(every * np.arange(len(levels), dtype=np.int64), levels)


def run_job(job: Job) -> Cost:
    """Run one job."""
    try:
        ran = run(job.shape, job.streams.steps(job.shape.flush if job.flushed else 0), job.streams.pairs())
    except InternalError:  # the model saw the circuit stand still: one of the choices leads to that
        return Cost(0, 0, ends=False)
    return Cost(ran.idle, len(ran.r))
