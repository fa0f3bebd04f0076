"""The collector: it takes what the cores of a chain have found, and makes rows of it [HSJ §4.4, Fig. 12]."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.output import Output
from handfast.core.probe import NewTuples
from handfast.core.segment import Segment
from handfast.core.span import window_span
from handfast.engines.local.native.chain import NativeChain
from handfast.engines.local.native.loop import LOOP
from handfast.flow.block import Block
from handfast.flow.order import ranked
from handfast.flow.topology import STREAMS
from handfast.kernels.columns import Columns
from handfast.plan import Plan

_PAIRS = 1 << 17  # matches that are taken from a core at a time
_BLOCKS = 16  # that may wait to be stored; with them, what has expired is let go
_NOWHERE = -1  # the stream of new tuples, where there are none


class Collector:
    """Holds the rows of all tuples that may still be in a match. One thread works; another gives it blocks."""

    def __init__(self, plan: Plan, chain: NativeChain, give: Callable[[pa.RecordBatch], None]) -> None:
        self._chain = chain
        self._give = give
        self._ranks = plan.join.spec.in_order
        self._segments = [Segment({}) for _ in STREAMS]
        self._output = Output(plan, self._segments)
        self._bases = [0, 0]  # of both streams, the position that is 0 in its segment
        self._spans = [window_span(own.window, k) for k, own in enumerate(plan.join.spec.streams)]
        self._blocks: deque[tuple[int, Block]] = deque()
        self._out = np.empty((2, _PAIRS), np.int64)
        empty = Block(pa.RecordBatch.from_arrays([], names=[]), np.empty(0, np.int64), np.empty(0, np.uint8))
        columns, marks = Columns([], [], empty.times), np.empty(0, np.bool_)
        self._none = NewTuples(_NOWHERE, empty, columns, {}, marks)
        self.passed: float = 0 if self._ranks else np.inf  # the rank below which every match has been given

    def hold(self, stream: int, block: Block) -> None:
        """Take in tuples, before any core hears of them."""
        self._blocks.append((stream, block))

    @property
    def owes(self) -> bool:
        """Whether there is something to do though nobody may have found anything: many blocks to store, or an order."""
        return self._ranks or len(self._blocks) >= _BLOCKS

    def work(self) -> bool:
        """Take what was found, and make rows of it; whether there was anything."""
        # first how far the tuples have come: whatever they match was found before
        passed = self._passed() if self._ranks else np.inf
        released = [self._chain.released(stream) for stream in STREAMS]
        count = 0
        for core in self._chain.cores:
            r_out, s_out = self._out
            taken = LOOP.take_pairs(core.found, _PAIRS, r_out, s_out, core.row, self._chain.rules)
            count += taken
            if taken:
                self._store()
                members = {k: own[:taken] - self._bases[k] for k, own in enumerate((r_out, s_out))}
                for batch in self._rows(members):
                    self._give(batch)
            if taken == _PAIRS:  # there may be more, from before the tuples had come so far
                passed, released = self.passed, list(self._bases)
        self._store()
        self.passed = passed
        self._release(released)
        return count > 0

    def _passed(self) -> float:
        """The rank below which every tuple has passed all cores. Ranks are numbers without gaps."""
        # asked first: what comes later has a higher rank than all that have entered by now
        entered = self._chain.log.entered
        under_way = (self._first_under_way(stream, entered[stream]) for stream in STREAMS)
        return min(sum(entered), *under_way)

    def _first_under_way(self, stream: int, entered: int) -> float:
        """The rank of the first of so many tuples of a stream that has not passed all cores."""
        while (arrived := self._chain.arrived(stream)) < entered:
            rank = self._chain.log.rank(stream, arrived)
            # else it has passed and expired meanwhile: its chunk may be gone, or be another's by now
            if rank is not None and self._chain.released(stream) <= arrived:
                return rank
        return np.inf

    def _rows(self, members: dict[int, NDArray[np.int64]]) -> Iterator[pa.RecordBatch]:
        for rows in self._output.matched(self._none, members):
            yield ranked(rows) if self._ranks else rows.batch

    def _store(self) -> None:
        """Put the blocks that have come behind those that are held."""
        for _ in range(len(self._blocks)):
            stream, block = self._blocks.popleft()
            stamps = Columns([], [], block.times, block.seen)
            self._segments[stream].insert(block, stamps, {}, np.zeros(len(block), np.bool_))
            self._segments[stream].merge(self._spans[stream].fits)

    def _release(self, released: list[int]) -> None:
        """Let the rows of tuples go that are stored nowhere any more."""
        for stream, segment in enumerate(self._segments):
            limit = released[stream] - self._bases[stream]
            if not segment.blocks or segment.first + len(segment.blocks[0]) > limit:
                continue
            position = segment.first

            def is_over(block: Block, limit: int = limit) -> bool:
                nonlocal position
                position += len(block)
                return position <= limit

            segment.expire(is_over)
            before = segment.stop
            segment.drop()
            self._bases[stream] += before - segment.stop
