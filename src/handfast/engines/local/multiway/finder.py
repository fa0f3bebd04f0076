"""How a core finds the matches of three and more streams: by the algorithm that was asked for, or the best one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handfast.core.orders import Review
from handfast.core.probe import Arrival, Members, NewTuples, Prober
from handfast.core.recipe import recipe
from handfast.core.segment import Segment
from handfast.core.stash import Stash
from handfast.core.workload import Workload
from handfast.engines.local.multiway.choice import Layout, Seen, choose, cut
from handfast.engines.local.multiway.circular import circular_ways
from handfast.engines.local.multiway.intermediate import Intermediate, Seek
from handfast.engines.local.multiway.stages import Stages, Way
from handfast.engines.local.multiway.stashed import stash_members, stashed_ways
from handfast.engines.local.multiway.words import algorithm_words
from handfast.flow.metrics import StageMetrics, StashMetrics
from handfast.flow.ring import RingTopology
from handfast.plan import CIRCULAR, PLAIN, STASHED, Plan

LEAST, MOST = 3, 16  # streams


@dataclass(frozen=True, slots=True)
class _Laid:
    """How the streams are joined by now: one value, so that what another thread reads of it fits together."""

    layout: Layout
    seen: Seen
    ways: list[Way]
    stages: Stages | None
    stash: Stash | None


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
        self._laid: _Laid | None = None

    @property
    def layout(self) -> Layout | None:
        """What was decided last; None before the first tuples."""
        return self._laid.layout if self._laid is not None else None

    @property
    def seen(self) -> Seen | None:
        """What it was decided by; None before the first tuples."""
        return self._laid.seen if self._laid is not None else None

    def cut(self, count: int) -> int:
        if self._laid is None or self._laid.stages is None:
            return max(1, count)
        return cut(count, len(self._laid.stages.stages), self._laid.layout.least)

    def find(self, prober: Prober, arrivals: Sequence[Arrival]) -> Iterator[tuple[NewTuples, Members]]:
        if not arrivals:
            return
        if self._review.is_due(prober.rates.tuples):
            self._laid = self._decided(prober, arrivals)
        laid = self._laid
        assert laid is not None, "a decision is due before the first tuples"
        if laid.stages is not None:
            yield from laid.stages.find(prober, arrivals)
        else:
            for arrival in arrivals:
                hops = tuple(hop for _, hop in laid.ways[arrival.new.stream])
                yield from Intermediate(prober, arrival, {}, hops).matches()
        if laid.stash is not None:
            laid.stash.tidy(prober.segments)

    def moved(self, before: Sequence[Segment], after: Sequence[Segment]) -> None:
        if self._laid is not None and self._laid.stash is not None:
            self._laid.stash.moved(before, after)

    def stop(self) -> None:
        """End every thread."""
        if self._laid is not None and self._laid.stages is not None:
            self._laid.stages.stop()

    def words(self) -> tuple[str, str] | None:
        """What was decided last, and why; None before the first tuples."""
        laid = self._laid
        if laid is None:
            return None
        return algorithm_words(self._plan.join.spec.names, laid.layout, laid.seen, self._algorithm)

    def metrics(self) -> tuple[tuple[StageMetrics, ...], StashMetrics | None]:
        """What each stage has done since it was made, and what the stash was good for; any thread may ask."""
        laid = self._laid
        if laid is None:
            return (), None
        stash = laid.stash.metrics() if laid.stash is not None else None
        if laid.stages is None:
            return (), stash
        names = self._plan.join.spec.names
        stages = zip(laid.layout.stages, laid.stages.stages, laid.stages.idle, strict=True)
        return tuple(
            StageMetrics(tuple(names[own] for own in streams), stage.queued, stage.made, stage.busy, idle)
            for streams, stage, idle in stages
        ), stash

    # -- decisions -------------------------------------------------------------------------------

    def _decided(self, prober: Prober, arrivals: Sequence[Arrival]) -> _Laid:
        """Lay the join out as the match rates ask for; the stages are empty now."""
        workload = prober.rates.workload(prober.segments)
        arriving = sum(len(arrival.new.block) for arrival in arrivals)
        seen = Seen(workload, arriving, prober.rates.tuples)
        before = self._laid
        layout = choose(workload, self._algorithm, self.layout, arriving)
        if before is not None and layout == before.layout:
            ways = self._ways_of(layout, workload, before.stash)
            if before.stages is not None:
                before.stages.ways = ways
            return _Laid(layout, seen, ways, before.stages, before.stash)
        self.stop()
        stash = None
        if layout.algorithm == STASHED:
            pair = layout.order[0], layout.order[1]
            stash = Stash(recipe(self._plan), pair, stash_members(workload, pair), self._stash_size)
            stash.begin(arrivals[0].stops, prober.segments)
        ways = self._ways_of(layout, workload, stash)
        return _Laid(layout, seen, ways, Stages(ways, self._buffer) if layout.algorithm != PLAIN else None, stash)

    def _ways_of(self, layout: Layout, workload: Workload, stash: Stash | None) -> list[Way]:
        if stash is not None:
            return stashed_ways(workload, stash, layout.order[2:])
        if layout.algorithm == CIRCULAR:
            return circular_ways(workload, RingTopology(layout.order))
        steps = (workload.steps(workload.best_way(origin)) for origin in workload.streams)
        return [[(0, Seek(*step)) for step in own] for own in steps]
