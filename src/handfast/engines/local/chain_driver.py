"""The driver of a handshake chain: it feeds tuples in at both ends, and says which have expired [HSJ §4.4]."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf

import numpy as np
import pyarrow as pa

from handfast.core.span import window_span
from handfast.engines.local.channel import Bell
from handfast.engines.local.cores import Tally
from handfast.engines.local.crew import Crew
from handfast.engines.local.handshake import HandshakeChain, HandshakeCore, Message, Signal
from handfast.engines.local.merger import Merger
from handfast.engines.local.placement import placement
from handfast.flow.block import Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.time import Horizon
from handfast.flow.topology import STREAMS, ChainTopology, Side
from handfast.plan import Plan

_CAPACITY = 64  # messages in a channel
_ROWS = 256  # tuples in a block, at most: what moves, what is stored, what is removed


class ChainDriver:
    """A handshake chain with a thread for every core. A match is given once its tuples have come to the same core."""

    def __init__(self, plan: Plan, topology: ChainTopology, rows: int | None = None) -> None:
        self._bell = Bell()
        self.chain = HandshakeChain(plan, topology, capacity=_CAPACITY, driver=self._bell)
        self._merger = Merger(topology.cores, in_order=plan.join.spec.in_order)
        works = [
            _work(core, partial(self._merger.put, number), self._bell) for number, core in enumerate(self.chain.cores)
        ]
        bells = [core.bell for core in self.chain.cores]
        self._crew = Crew(works, bells, self._bell, placement(topology.cores).cpus)
        weakref.finalize(self, self._crew.stop)
        self._windows = Windows(plan, topology, rows or _ROWS)
        # for each end of the chain, messages for which there was no room yet
        self._unsent: dict[Side, deque[Message]] = {end: deque() for end in Side}

    @property
    def held(self) -> float:
        """For how long, at most, a match was held back for the sake of the order, in seconds."""
        return self._merger.held

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        for end in Side:
            while self._unsent[end]:
                self._crew.wait_until(partial(self._has_room, end))
                self._send()
        yield from self._collect()

    def _has_room(self, end: Side) -> bool:
        return self.chain.entrance(end).room > 0

    def offer(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        yield from self.poll()

    def poll(self) -> Iterator[pa.RecordBatch]:
        self._send()
        yield from self._collect()

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        for end in Side:
            self._unsent[end].append(Signal.FLUSH)
        yield from self.feed([None, None], horizon)
        self._crew.wait_until(lambda: self.chain.is_flushed)
        self.stop()
        yield from self._collect()

    def busiest(self) -> tuple[int, float]:
        return max(((core.joined, core.busy) for core in self.chain.cores), key=lambda own: own[1])

    def backlog(self) -> int:
        return sum(len(message) for own in self._unsent.values() for message in own if isinstance(message, Block))

    def tally(self, stream: int) -> Tally:
        entering = self._unsent[self.chain.topology.entry(stream)]
        unsent = sum(len(message) for message in entering if isinstance(message, Block))
        inside = self.chain.tally(stream)
        return Tally(unsent + inside.waiting, inside.live, inside.expired)

    def room(self) -> float:
        return inf

    def stored_bytes(self) -> int:
        return sum(block.batch.nbytes for own in self._windows.blocks for block in own)

    def metrics(self) -> tuple[CoreMetrics, ...]:
        return tuple(
            CoreMetrics(
                tuple(book.live for book in core.books),
                len(core.from_left) + len(core.from_right),
                core.scanned,
                core.matched,
                sum(core.sent),
                core.busy,
                self._crew.idle[number],
            )
            for number, core in enumerate(self.chain.cores)
        )

    def algorithm(self) -> None:
        return None  # two streams pass each other

    def stop(self) -> None:
        self._crew.stop()

    def _take(self, admitted: Sequence[Block | None], horizon: Horizon) -> None:
        """Make messages of new blocks, and of the expiries that are due."""
        for end, message in self._windows.messages(admitted, horizon):
            self._unsent[end].append(message)
        self.chain.weigh()

    def _send(self) -> None:
        """Send what there is room for, each end in order."""
        for end, unsent in self._unsent.items():
            entrance = self.chain.entrance(end)
            while unsent and entrance.room:
                entrance.send(unsent.popleft())

    def _collect(self) -> Iterator[pa.RecordBatch]:
        self._crew.check()
        # before the matches are taken: what had passed all cores by then has found all of its own
        passed = self._windows.passed(self.chain)
        yield from self._merger.give(self._merger.collect(), passed)


def _work(core: HandshakeCore, give: Callable[[pa.RecordBatch], None], driver: Bell) -> Callable[[], bool]:
    """A round of all that a core can do."""
    actions = core.actions(give)

    def work() -> bool:
        did = [action() for action in actions]
        if any(core.flushed):
            driver.ring()
        return any(did)

    return work


class Windows:
    """What the driver knows: which blocks are in the chain, in the order they entered it, and when each expires."""

    def __init__(self, plan: Plan, topology: ChainTopology, rows: int) -> None:
        self._topology = topology
        self._rows = rows
        self._spans = [window_span(s.window, k) for k, s in enumerate(plan.join.spec.streams)]
        self._stamped = plan.join.stamped
        self.blocks: tuple[deque[Block], deque[Block]] = (deque(), deque())
        # of blocks that have not passed all cores, the first rank
        self._entered: tuple[deque[int], deque[int]] = (deque(), deque())
        self._passed = [0, 0]  # of both streams, how many blocks have

    def messages(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[tuple[Side, Message]]:
        """What to send for new blocks, each with the end at which it enters: first the tuples, then the expiries.

        A stream's expiries enter at its exit, which is where the other stream's tuples enter: so they come behind all
        that can still meet what expires.
        """
        for stream, whole in enumerate(admitted):
            if whole is None:
                continue
            ordered = whole.sorted()
            for start in range(0, len(ordered), self._rows):
                block = ordered.slice(start, min(start + self._rows, len(ordered)))
                self.blocks[stream].append(block)
                if self._stamped:
                    self._entered[stream].append(sum(int(own[0]) for own in block.seen))
                yield self._topology.entry(stream), block
        for stream in STREAMS:
            blocks, span = self.blocks[stream], self._spans[stream]
            # the oldest first, as the chain removes them: one whose window is over waits for those before it
            while blocks and span.is_over(blocks[0], horizon):
                blocks.popleft()
                yield self._topology.exit(stream), Signal.EXPIRE

    def passed(self, chain: HandshakeChain) -> float:
        """The rank below which every tuple has passed all cores."""
        for stream in STREAMS:
            last = chain.last(stream)
            while self._passed[stream] < last.arrived[stream] and self._entered[stream]:
                self._entered[stream].popleft()
                self._passed[stream] += 1
        on_their_way = [own[0] for own in self._entered if own]
        return min(on_their_way, default=np.inf)
