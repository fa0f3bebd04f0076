"""The driver of a handshake chain: it feeds both ends, and alone says when tuples leave their windows [HSJ §4.4]."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from time import perf_counter

import numpy as np
import pyarrow as pa

from handfast.core.span import window_span
from handfast.engines.local.balance import Balance
from handfast.engines.local.channel import Bell
from handfast.engines.local.cores import Tally
from handfast.engines.local.crew import Crew
from handfast.engines.local.handshake import HandshakeChain, HandshakeCore, Message, R, S, Signal, turns
from handfast.engines.local.layout import layout
from handfast.flow.block import Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.order import RANK, by_rank
from handfast.flow.time import Horizon
from handfast.plan import Plan

_CAPACITY = 64  # messages in a channel
_ROWS = 256  # tuples in a block, at most: what moves, what is stored, what is removed

Found = deque[tuple[float, pa.RecordBatch]]  # when, and what


class ChainDriver:
    """A handshake chain with a thread for every core. A match is given once its tuples have walked to one core."""

    def __init__(self, plan: Plan, balance: Balance) -> None:
        self._driver = Bell()
        self.chain = HandshakeChain(plan, plan.cores, balance, capacity=_CAPACITY, driver=self._driver)
        self._found: list[Found] = [deque() for _ in self.chain.cores]
        works = [_work(core, found, self._driver) for core, found in zip(self.chain.cores, self._found, strict=True)]
        bells = [core.bell for core in self.chain.cores]
        self._crew = Crew(works, bells, self._driver, layout(plan.cores).places)
        weakref.finalize(self, self._crew.stop)
        self._windows = Windows(plan, _ROWS)
        # for each end, messages for which there was no room yet; removals go into the end opposite to their tuples
        self._unsent: tuple[deque[Message], deque[Message]] = (deque(), deque())
        self._collector = InOrder() if plan.join.spec.in_order else None

    @property
    def held(self) -> float:
        """For how long, at most, a match was held back for the sake of the order, in seconds."""
        return self._collector.held if self._collector is not None else 0.0

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        for end in (R, S):
            while self._unsent[end]:
                self._crew.wait_until(partial(self._has_room, end))
                self._send()
        yield from self._collect()

    def _has_room(self, end: int) -> bool:
        return self.chain.entries[end].room > 0

    def offer(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        yield from self.poll()

    def poll(self) -> Iterator[pa.RecordBatch]:
        self._send()
        yield from self._collect()

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        self._take(admitted, horizon)
        for end in (R, S):
            self._unsent[end].append(Signal.FLUSH)
        yield from self.feed([None, None], horizon)
        self._crew.wait_until(lambda: self.chain.is_flushed)
        self.stop()
        yield from self._collect()

    def work(self) -> tuple[int, float]:
        return max(((core.met, core.busy) for core in self.chain.cores), key=lambda work: work[1])

    def backlog(self) -> int:
        return sum(len(message) for own in self._unsent for message in own if isinstance(message, Block))

    def tally(self, stream: int) -> Tally:
        unsent = sum(len(message) for message in self._unsent[stream] if isinstance(message, Block))
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

    def stop(self) -> None:
        self._crew.stop()

    def _take(self, admitted: Sequence[Block | None], horizon: Horizon) -> None:
        """Make messages of new blocks, and of the removals that are due."""
        for end, message in self._windows.messages(admitted, horizon):
            self._unsent[end].append(message)
        self.chain.weigh()

    def _send(self) -> None:
        """Send what there is room for, each end in order."""
        for entry, unsent in zip(self.chain.entries, self._unsent, strict=True):
            while unsent and entry.room:
                entry.send(unsent.popleft())

    def _collect(self) -> Iterator[pa.RecordBatch]:
        self._crew.check()
        # before the matches are taken: what had arrived by then has given all of its own
        arrived = self._windows.arrived(self.chain)
        found = [own.popleft() for own in self._found for _ in range(len(own))]
        if self._collector is None:
            yield from (batch for _, batch in found)
        else:
            yield from self._collector.take(found, arrived)


def _work(core: HandshakeCore, found: Found, driver: Bell) -> Callable[[], bool]:
    """A round of all that a core can do."""
    steps = turns(core, lambda batch: found.append((perf_counter(), batch)))

    def work() -> bool:
        did = [step() for step in steps]
        if any(core.flushed):
            driver.ring()
        return any(did)

    return work


class Windows:
    """What the driver knows: which blocks are in the chain, in the order they entered it, and when each has to go."""

    def __init__(self, plan: Plan, rows: int) -> None:
        self._rows = rows
        self._spans = [window_span(s.window, k) for k, s in enumerate(plan.join.spec.streams)]
        self._stamped = plan.join.stamped
        self.blocks: tuple[deque[Block], deque[Block]] = (deque(), deque())
        self._entered: tuple[deque[int], deque[int]] = (deque(), deque())  # first ranks of blocks that still walk
        self._arrived = [0, 0]

    def messages(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[tuple[int, Message]]:
        """What to send for new blocks, each with the stream at whose end it enters: tuples, then removals.

        A removal enters at the other end than the tuples it removes: behind all that could still meet them.
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
                yield stream, block
        for stream in (R, S):
            blocks, span = self.blocks[stream], self._spans[stream]
            # the oldest first, as the chain removes them: one that is over waits for those before it
            while blocks and span.is_over(blocks[0], horizon):
                blocks.popleft()
                yield 1 - stream, Signal.ACK

    def arrived(self, chain: HandshakeChain) -> float:
        """The rank below which every tuple has walked past all cores."""
        for stream, core in ((R, chain.cores[-1]), (S, chain.cores[0])):
            while self._arrived[stream] < core.arrived[stream] and self._entered[stream]:
                self._entered[stream].popleft()
                self._arrived[stream] += 1
        walking = [own[0] for own in self._entered if own]
        return min(walking, default=np.inf)


class InOrder:
    """Holds matches back until none of a lower rank can still be found: a punctuation from both ends says so."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, pa.RecordBatch]] = []
        self.held = 0.0

    def take(self, found: list[tuple[float, pa.RecordBatch]], arrived: float) -> Iterator[pa.RecordBatch]:
        """The matches below the rank that all tuples have arrived up to, with those that waited."""
        now, ready, waiting = perf_counter(), [], []
        for when, batch in [*self._waiting, *found]:
            below = batch.column(RANK).to_numpy() < arrived
            if below.any():
                ready.append(batch.filter(pa.array(below)))
                self.held = max(self.held, now - when)
            if not below.all():
                waiting.append((when, batch.filter(pa.array(~below))))
        self._waiting = waiting
        yield from by_rank(ready)
