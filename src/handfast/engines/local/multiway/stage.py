"""A stage: the thread that extends intermediates by the tuples of its window, and hands them to the next stage.

A stage has a buffer and a scan for every hop that ends at it. It always works on the highest hop that it can: a scan of
the last hop gives matches, for which there is room as soon as the driver takes them; so the last hop's buffers empty,
then those of the hop before. That is why nothing can block for ever, though every buffer is bounded, and why nothing
ever has to be dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

from handfast.core.probe import Members, NewTuples
from handfast.engines.local.channel import Bell, Channel
from handfast.engines.local.multiway.intermediate import Intermediate

Found = Channel[tuple[NewTuples, Members]]


class JoinStage:
    """One stage with its buffers, by hop; each is written by one thread, and read by this stage's."""

    def __init__(self, buffers: Mapping[int, Channel[Intermediate]], found: Found, bell: Bell, driver: Bell) -> None:
        self.buffers = buffers
        self.found = found
        self.bell = bell
        self.onward: Mapping[int, Channel[Intermediate]] = {}  # by hop, where what it finds goes; nowhere: to `found`
        self._driver = driver
        self._hops = sorted(buffers, reverse=True)
        self._scans: dict[int, Iterator[Intermediate] | None] = dict.fromkeys(buffers)
        self.made = self.ended = 0  # intermediates: handed on, done with
        self.busy = 0.0

    @property
    def queued(self) -> int:
        """How many intermediates wait for it, including the one it is working on."""
        return sum(map(len, self.buffers.values()))

    def work(self) -> bool:
        """Do a part of one scan, of the highest hop that can go on."""
        start = perf_counter()
        worked = any(self._advance(hop) for hop in self._hops)
        self.busy += perf_counter() - start
        return worked

    def _advance(self, hop: int) -> bool:
        buffer, onward = self.buffers[hop], self.onward.get(hop)
        has_room = (self.found.room if onward is None else onward.room) > 0
        if not len(buffer) or not has_room:
            return False
        scan = self._scans[hop]
        if scan is None:
            scan = self._scans[hop] = buffer.first.extended()
        wider = next(scan, None)
        if wider is None:
            self._scans[hop] = None
            buffer.drop_first()
            self.ended += 1
            self._driver.ring()
            return True
        if hop == 0:
            wider = wider.kept()
        if onward is None:
            self.found.send((wider.arrival.new, wider.members))
        else:
            self.made += 1  # before it can be done with
            onward.send(wider)
        return True
