"""Stamps: every tuple's place in the order of all, given once it is final.

A tuple's place is final when no tuple that is still to come can stand before it: when the watermark has passed its
time. Until then it waits. By order of arrival it is final at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.flow.block import Block
from handfast.flow.order import by_sequence, by_time
from handfast.flow.pieces import LIMIT, gathered_blocks
from handfast.flow.time import END, Horizon
from handfast.spec.join import ARRIVAL, BoundJoin

_MOST_WAITING = 64  # blocks of a stream that wait before small ones become one


class Stamper:
    """Holds tuples back until their place is final, then stamps them."""

    def __init__(self, join: BoundJoin) -> None:
        self._sequences = join.sequences
        self.by_arrival = join.spec.order == ARRIVAL
        self.waiting: list[list[Block]] = [[] for _ in self._sequences]
        self.counts = [0] * len(self._sequences)

    def stamp(self, arrivals: Sequence[Block | None], watermark: int) -> tuple[list[Block | None], Horizon]:
        """The tuples whose place is final now, in their order, and what none still to come can fall below."""
        if self.by_arrival and watermark == END:  # bounded inputs
            final, places = by_sequence(arrivals, self._sequences)
        elif self.by_arrival:
            final = list(arrivals)
            places = [np.zeros(len(block) if block is not None else 0, np.int64) for block in final]
        else:
            final = [self._release(stream, block, watermark) for stream, block in enumerate(arrivals)]
            places = [block.times if block is not None else np.empty(0, np.int64) for block in final]
        stamped: list[Block | None] = []
        for stream, block in enumerate(final):
            if block is None:
                stamped.append(None)
                continue
            seen = []
            for other, count in enumerate(self.counts):
                own = np.arange(len(block), dtype=np.int64)
                before = own if other == stream else came_before(places[other], places[stream], other < stream)
                seen.append(count + before)
            stamped.append(block.with_seen(tuple(seen)))
        self.counts = [count + len(own) for count, own in zip(self.counts, places, strict=True)]
        return stamped, Horizon(watermark, tuple(self.counts))

    def _release(self, stream: int, block: Block | None, watermark: int) -> Block | None:
        """The waiting and new tuples below the watermark, in order; the others wait on."""
        blocks = [*self.waiting[stream], *([block] if block is not None else [])]
        released, waiting = [], []
        for each in blocks:
            if each.least_time >= watermark:
                waiting.append(each)
                continue
            final = each.times < watermark
            released.append(each.take(final))
            if not final.all():
                waiting.append(each.take(~final))
        ordered = by_time(Block.concat(released), self._sequences[stream]) if released else None
        self.waiting[stream] = waiting if len(waiting) < _MOST_WAITING else list(gathered_blocks(waiting, LIMIT))
        return ordered


def came_before(places: NDArray[np.int64], at: NDArray[np.int64], is_first: bool) -> NDArray[np.int64]:
    """How many tuples of another stream came before each of these; at equal places the stream named first did."""
    if is_first:
        return np.searchsorted(places, at, side="right")
    return np.searchsorted(places, at, side="left")
