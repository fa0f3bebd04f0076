"""Stamps: every tuple's place in the order of all, given once it is final.

A tuple's place is final when no tuple that is still to come can stand before it: when the watermark has passed its
time. Until then it waits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from handfast.flow.block import Block
from handfast.flow.order import in_order
from handfast.flow.time import Horizon
from handfast.spec.join import BoundJoin


class Stamper:
    """Holds tuples back until their place is final, then stamps them."""

    def __init__(self, join: BoundJoin) -> None:
        self._sequences = [stream.sequence for stream in join.spec.streams]
        self.waiting: list[list[Block]] = [[] for _ in self._sequences]
        self.counts = [0] * len(self._sequences)

    def stamp(self, arrivals: Sequence[Block | None], watermark: int) -> tuple[list[Block | None], Horizon]:
        """The tuples whose place is final now, in their order, and what none still to come can fall below."""
        final = [self._release(stream, block, watermark) for stream, block in enumerate(arrivals)]
        times = [block.times if block is not None else np.empty(0, np.int64) for block in final]
        stamped: list[Block | None] = []
        for stream, block in enumerate(final):
            if block is None:
                stamped.append(None)
                continue
            seen = []
            for other, count in enumerate(self.counts):
                if other == stream:
                    before = np.arange(len(block), dtype=np.int64)
                else:
                    # at equal times the stream that is named first came first
                    side = "right" if other < stream else "left"
                    before = np.searchsorted(times[other], block.times, side=side)  # type: ignore[call-overload]
                seen.append(count + before)
            stamped.append(block.with_seen(tuple(seen)))
        self.counts = [count + len(own) for count, own in zip(self.counts, times, strict=True)]
        return stamped, Horizon(watermark, tuple(self.counts))

    def _release(self, stream: int, block: Block | None, watermark: int) -> Block | None:
        """The waiting and new tuples below the watermark, in order; the others wait on."""
        blocks = [*self.waiting[stream], *([block] if block is not None else [])]
        released, self.waiting[stream] = [], []
        for each in blocks:
            final = each.times < watermark
            if final.any():
                released.append(each.take(final))
            if not final.all():
                self.waiting[stream].append(each.take(~final))
        return in_order(Block.concat(released), self._sequences[stream]) if released else None
