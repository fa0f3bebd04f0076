"""How a core finds the matches of three and more streams: by the algorithm that was asked for, or the best one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handfast.core.orders import Review
from handfast.core.probe import Arrival, Members, NewTuples, Prober
from handfast.core.recipe import recipe
from handfast.core.segment import Segment
from handfast.core.stash import Stash
from handfast.core.workload import Workload
from handfast.engines.local.multiway.choice import Layout, Seen, choose
from handfast.engines.local.multiway.circular import circular_ways
from handfast.engines.local.multiway.intermediate import Intermediate, Seek
from handfast.engines.local.multiway.stages import Stages, Way
from handfast.engines.local.multiway.stashed import stash_members, stashed_ways
from handfast.engines.local.multiway.words import algorithm_words
from handfast.flow.metrics import StageMetrics, StashMetrics
from handfast.flow.ring import RingTopology
from handfast.plan import CIRCULAR, PLAIN, STASHED, Plan

LEAST, MOST = 3, 16  # streams
_PIECE, _SMALLEST = 1 << 14, 1 << 10  # how many tuples go from stage to stage together, at the most and at the least
_TURNS = 4  # pieces for each stage, so that all of them have something to do


class MultiwayFinder:
    """Finds matches by one of the algorithms, and looks from time to time whether another one would do better.

    Args:
        algorithm: The one to use; None for the best.
        buffer: How many intermediates may wait before a stage, of each hop.
        stash_size: How many pairs a stash keeps at the most; all that are in their windows, if None.
    """

    def __init__(self, plan: Plan, algorithm: str | None, buffer: int, stash_size: int | None) -> None:
        self._plan = plan
        self._algorithm = algorithm
        self._buffer = buffer
        self._stash_size = stash_size
        self._review = Review()
        self._layout: Layout | None = None
        self.seen: Seen | None = None
        self._ways: list[Way] = []
        self._stages: Stages | None = None
        self.stash: Stash | None = None

    def cut(self, count: int) -> int:
        if self._stages is None:
            return max(1, count)
        return min(_PIECE, max(_SMALLEST, -(-count // (_TURNS * len(self._stages.stages)))))

    def find(self, prober: Prober, arrivals: Sequence[Arrival]) -> Iterator[tuple[NewTuples, Members]]:
        if not arrivals:
            return
        if self._review.is_due(prober.rates.tuples):
            self._decide(prober, arrivals)
        if self._stages is not None:
            yield from self._stages.find(prober, arrivals)
        else:
            for arrival in arrivals:
                hops = tuple(hop for _, hop in self._ways[arrival.new.stream])
                yield from Intermediate(prober, arrival, {}, hops).matches()
        if self.stash is not None:
            self.stash.tidy(prober.segments)

    def moved(self, before: Sequence[Segment], after: Sequence[Segment]) -> None:
        if self.stash is not None:
            self.stash.moved(before, after)

    def stop(self) -> None:
        """End every thread."""
        if self._stages is not None:
            self._stages.stop()

    def words(self) -> tuple[str, str] | None:
        """What was decided last, and why; None before the first tuples."""
        if self._layout is None or self.seen is None:
            return None
        return algorithm_words(self._plan.join.spec.names, self._layout, self.seen, self._algorithm)

    @property
    def layout(self) -> Layout | None:
        """What was decided last; None before the first tuples."""
        return self._layout

    def metrics(self) -> tuple[tuple[StageMetrics, ...], StashMetrics | None]:
        """What each stage has done since the last decision, and what the stash was good for."""
        stash = self.stash.metrics() if self.stash is not None else None
        if self._stages is None or self._layout is None:
            return (), stash
        names = self._plan.join.spec.names
        stages = zip(self._layout.stages, self._stages.stages, self._stages.idle, strict=True)
        return tuple(
            StageMetrics(tuple(names[own] for own in streams), stage.queued, stage.made, stage.busy, idle)
            for streams, stage, idle in stages
        ), stash

    # -- decisions -------------------------------------------------------------------------------

    def _decide(self, prober: Prober, arrivals: Sequence[Arrival]) -> None:
        """Lay the join out as the match rates ask for; the stages are empty now."""
        workload = prober.rates.workload(prober.segments)
        arriving = sum(len(arrival.new.block) for arrival in arrivals)
        self.seen = Seen(workload, arriving, prober.rates.tuples)
        layout = choose(workload, self._algorithm, self._layout, arriving)
        is_new = layout != self._layout
        self._layout = layout
        if is_new:
            self.stop()
            self._stages = self.stash = None
        if is_new and layout.algorithm == STASHED:
            pair = layout.order[0], layout.order[1]
            self.stash = Stash(recipe(self._plan), pair, stash_members(workload, pair), self._stash_size)
            self.stash.begin(arrivals[0].stops, prober.segments)
        self._ways = self._ways_of(layout, workload)
        if self._stages is not None:
            self._stages.ways = self._ways
        elif layout.algorithm != PLAIN:
            self._stages = Stages(self._ways, self._buffer)

    def _ways_of(self, layout: Layout, workload: Workload) -> list[Way]:
        if self.stash is not None:
            return stashed_ways(workload, self.stash, layout.order[2:])
        if layout.algorithm == CIRCULAR:
            return circular_ways(workload, RingTopology(layout.order))
        steps = (workload.steps(workload.best_way(origin)) for origin in workload.streams)
        return [[(0, Seek(*step)) for step in own] for own in steps]
