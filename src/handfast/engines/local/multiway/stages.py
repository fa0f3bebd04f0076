"""Stages at work: new tuples are let in, go from stage to stage, and come out as matches."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence

from handfast.core.probe import Arrival, Members, NewTuples, Prober
from handfast.engines.local.channel import Bell, Channel
from handfast.engines.local.crew import Crew
from handfast.engines.local.multiway.intermediate import Hop, Intermediate
from handfast.engines.local.multiway.stage import JoinStage
from handfast.engines.local.placement import placement

Way = Sequence[tuple[int, Hop]]  # the stages that tuples of one stream come to, and what each does with them


class Stages:
    """A thread for each stage, and a bounded buffer between any two of them that follow each other on a way.

    Args:
        ways: By stream, the way of its new tuples. Two ways that come to a stage by the same hop come from the same
            stage, so that every buffer has one writer.
        buffer: How many intermediates may wait in each buffer.
    """

    def __init__(self, ways: Sequence[Way], buffer: int) -> None:
        self.ways = ways
        self._driver = Bell()
        count = 1 + max(stage for way in ways for stage, _ in way)
        bells = [Bell() for _ in range(count)]
        buffers: list[dict[int, Channel[Intermediate]]] = [{} for _ in range(count)]
        onward: list[dict[int, Channel[Intermediate]]] = [{} for _ in range(count)]
        for way in ways:
            before = None
            for hop, (stage, _) in enumerate(way):
                writer = self._driver if before is None else bells[before]
                if hop not in buffers[stage]:
                    buffers[stage][hop] = Channel(buffer, reader=bells[stage], writer=writer)
                if before is not None:
                    assert onward[before].setdefault(hop - 1, buffers[stage][hop]) is buffers[stage][hop]
                before = stage
        found = [Channel[tuple[NewTuples, Members]](buffer, reader=self._driver, writer=bell) for bell in bells]
        self.stages = [JoinStage(*parts, self._driver) for parts in zip(buffers, found, bells, strict=True)]
        for own, forward in zip(self.stages, onward, strict=True):
            own.onward = forward
        self._submitted = 0
        self._crew = Crew([own.work for own in self.stages], bells, self._driver, placement(count).cpus)
        weakref.finalize(self, self._crew.stop)

    @property
    def idle(self) -> list[float]:
        """For how many seconds each stage had nothing to do."""
        return self._crew.idle

    def stop(self) -> None:
        """End every thread."""
        self._crew.stop()

    def find(self, prober: Prober, arrivals: Sequence[Arrival]) -> Iterator[tuple[NewTuples, Members]]:
        """Send new tuples on their ways, and give their matches as they come."""
        waiting = deque(arrivals)
        while True:
            self._send(prober, waiting)
            done = not waiting and self._are_empty()
            found = [stage.found for stage in self.stages if len(stage.found)]
            for channel in found:
                match = channel.first
                channel.drop_first()
                yield match
            self._crew.check()
            if done and not found:
                return
            if not found:
                self._driver.wait()

    def _send(self, prober: Prober, waiting: deque[Arrival]) -> None:
        """Let in new tuples in their order, as long as there is room for the next."""
        while waiting:
            way = self.ways[waiting[0].new.stream]
            entrance = self.stages[way[0][0]].buffers[0]
            if not entrance.room:
                return
            self._submitted += 1
            entrance.send(Intermediate(prober, waiting.popleft(), {}, tuple(hop for _, hop in way)))

    def _are_empty(self) -> bool:
        """Whether nothing is under way. What has ended is counted before what was made: it cannot catch up between."""
        ended = sum(stage.ended for stage in self.stages)
        return ended == self._submitted + sum(stage.made for stage in self.stages)
