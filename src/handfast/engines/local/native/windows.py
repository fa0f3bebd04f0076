"""What the driver of a chain says: which tuples enter, and up to which position windows are over [HSJ §4.4]."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from handfast.core.span import window_span
from handfast.engines.local.native.memory import EXPIRE, KIND_BITS, TUPLES, Words
from handfast.flow.block import Block
from handfast.flow.time import Horizon
from handfast.flow.topology import STREAMS, ChainTopology, Side
from handfast.plan import Plan

_PART = 1 << 12  # tuples that are looked at together when it is asked how many are over


class Windows:
    """The tuples whose window is not over, in the order in which they entered, and the messages about them.

    Attributes:
        blocks: Of both streams, these tuples; the oldest of them may be over.
    """

    def __init__(self, plan: Plan, topology: ChainTopology, rows: int, chunk: int) -> None:
        self._topology = topology
        self._rows = rows
        self._chunk = chunk
        self._spans = [window_span(own.window, k) for k, own in enumerate(plan.join.spec.streams)]
        self.blocks: tuple[deque[Block], deque[Block]] = (deque(), deque())
        self._entered = [0, 0]  # of both streams, how many tuples
        self._over = [0, 0]  # and how many of them are over
        self._gone = [0, 0]  # of the oldest block, how many

    def messages(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[tuple[Side, Words]]:
        """What to send, with the end at which it enters: first the tuples, then the expiries.

        A stream's expiries enter at its exit, which is where the other stream's tuples enter: so they come behind all
        that can still meet what expires.
        """
        for stream, block in enumerate(admitted):
            if block is not None and len(block):
                parts = range(0, len(block), _PART)
                self.blocks[stream].extend(block.slice(k, min(k + _PART, len(block))) for k in parts)
                start = self._entered[stream]
                self._entered[stream] = stop = start + len(block)
                yield self._topology.entry(stream), self._stops(start, stop) << KIND_BITS | TUPLES
        for stream in STREAMS:
            if self._expire(stream, horizon):
                yield self._topology.exit(stream), np.array([self._over[stream] << KIND_BITS | EXPIRE])

    def _stops(self, start: int, stop: int) -> Words:
        """Where messages end that have these tuples: a message has not too many, and all lie in one chunk."""
        parts = np.arange(start + self._rows, stop, self._rows)
        chunks = np.arange(start - start % self._chunk + self._chunk, stop, self._chunk)
        return np.union1d(np.concatenate([parts, chunks]), [stop])

    def _expire(self, stream: int, horizon: Horizon) -> bool:
        """Let the tuples go whose window is over, the oldest first: one waits for those before it; whether any do."""
        blocks, before = self.blocks[stream], self._over[stream]
        while blocks:
            over = self._spans[stream].over(blocks[0], horizon)
            count = len(over) if over.all() else int(np.argmin(over))
            self._over[stream] += count - self._gone[stream]
            self._gone[stream] = count
            if count < len(over):
                break
            blocks.popleft()
            self._gone[stream] = 0
        return self._over[stream] > before
