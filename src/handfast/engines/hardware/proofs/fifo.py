"""What is proven of the FIFO: it is a queue, its level and its flag are right, and an offer stands."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.proofs.follow import Follow
from handfast.engines.hardware.proofs.offer import stands


class FifoProof(wiring.Component):
    """A FIFO that is written and read at will."""

    def __init__(self, fifo: Fifo) -> None:
        self.fifo = fifo
        super().__init__({"valid": In(1), "word": In(fifo.width), "ready": In(1), "pick": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        # One word leaves in a cycle; only the one that was just written to block RAM cannot be read yet.
        within = fifo.depth + (fifo.latency == 2)
        m.submodules.follow = follow = Follow(width=fifo.width, room=fifo.depth, within=within)
        m.d.comb += [
            fifo.write.valid.eq(self.valid),
            fifo.write.payload.eq(self.word),
            fifo.read.ready.eq(self.ready),
            follow.pick.eq(self.pick),
            follow.enters.eq(self.valid & fifo.write.ready),
            follow.entering.eq(self.word),
            follow.leaves.eq(fifo.read.valid & self.ready),
            follow.leaving.eq(fifo.read.payload),
            follow.drains.eq(self.ready),
        ]
        free = fifo.depth - follow.inside
        m.d.comb += [
            Assert(fifo.level == follow.inside, "the level is the number of words inside"),
            Assert(fifo.write.ready == (free != 0), "a word is taken while there is room"),
            Assert(fifo.almost_full == (free <= fifo.margin), "almost full is a margin of free slots or fewer"),
        ]
        stands(m, fifo.read)
        return m


def keeps_count(m: Module, fifo: Fifo) -> None:
    """Claim what induction has to know of a FIFO inside a larger part."""
    there = (fifo.level != 0) | (fifo.write.valid if fifo.latency == 0 else 0)
    m.d.comb += Assert(
        (fifo.level <= fifo.depth) & (~fifo.read.valid | there),
        "a FIFO holds what it has room for, and gives only that",
    )
