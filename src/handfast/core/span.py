"""How long a window keeps a block: what expiry and merging go by. Late expiry is harmless, early expiry is a bug."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from handfast.flow.block import Block
from handfast.flow.time import END, Horizon
from handfast.spec.moment import EARLIEST
from handfast.spec.window import CountWindow, Window

_PART = 16  # a merged block spans at most this part of the time for which it is kept


class WindowSpan(Protocol):
    """For how long a window keeps blocks, and which tuples have had their last chance to match."""

    def is_over(self, block: Block, horizon: Horizon) -> bool:
        """Whether no tuple beyond the horizon can meet any tuple of the block."""
        ...

    def over(self, block: Block, horizon: Horizon) -> NDArray[np.bool_]:
        """Which tuples of the block no tuple beyond the horizon can meet."""
        ...

    def over_before(self, rows: Block, horizon: Horizon) -> NDArray[np.bool_]:
        """Which rows have no tuple of the window's stream before them that can still be met."""
        ...

    def fits(self, blocks: Sequence[Block]) -> bool:
        """Whether the blocks together span only a part of the time for which they are kept."""
        ...


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time window over a stream whose tuples may come late by so much."""

    length: int
    lateness: int

    def is_over(self, block: Block, horizon: Horizon) -> bool:
        return block.most_time + self.length <= horizon.time

    def over(self, block: Block, horizon: Horizon) -> NDArray[np.bool_]:
        limit = horizon.time - self.length  # as Python counts: it may be below every int64
        return block.times <= limit if limit >= EARLIEST else np.zeros(len(block), np.bool_)

    def over_before(self, rows: Block, horizon: Horizon) -> NDArray[np.bool_]:
        return self.over(rows, horizon)  # those before it may have the same time

    def fits(self, blocks: Sequence[Block]) -> bool:
        span = max(block.most_time for block in blocks) - min(block.least_time for block in blocks)
        return span <= (self.length + self.lateness) // _PART


@dataclass(frozen=True, slots=True)
class CountSpan:
    """A count window over the stream of number `stream`."""

    rows: int
    stream: int

    def is_over(self, block: Block, horizon: Horizon) -> bool:
        return horizon.time == END or block.most_seen[self.stream] < horizon.counts[self.stream] - self.rows

    def over(self, block: Block, horizon: Horizon) -> NDArray[np.bool_]:
        if horizon.time == END:
            return np.ones(len(block), np.bool_)
        return block.seen[self.stream] < horizon.counts[self.stream] - self.rows

    def over_before(self, rows: Block, horizon: Horizon) -> NDArray[np.bool_]:
        if horizon.time == END:
            return np.ones(len(rows), np.bool_)
        return rows.seen[self.stream] <= horizon.counts[self.stream] - self.rows

    def fits(self, blocks: Sequence[Block]) -> bool:
        first = min(int(block.seen[self.stream].min()) for block in blocks)
        last = max(block.most_seen[self.stream] for block in blocks)
        return last - first <= self.rows // _PART


def window_span(window: Window, stream: int, lateness: int = 0) -> WindowSpan:
    """The span of a stream's window, where tuples may come late by so much."""
    return CountSpan(window.rows, stream) if isinstance(window, CountWindow) else TimeSpan(window.length, lateness)
