"""Segments: one core's share of a stream's window, as a shift register or in RAM."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


def index_shape(size: int) -> range:
    """The shape of an index of so many slots: at least one bit, for Verilog has no wires without."""
    return range(max(2, size))


class Segment(wiring.Component):
    """A segment as a shift register [OGE §4.1], [000 A.2].

    Both forms of a segment have the same ports and the same timing. Reading every index gives every slot once; which
    index a slot has is the segment's own business.

    Args:
        slot: The layout of a slot, with its valid flag. All slots are empty at first.
        size: How many slots there are.

    Ports:
        shift: Take in `entering`, and drop the oldest.
        leaving: The oldest slot, the one that the next shift drops.
        index: The slot to be read in the next cycle.
        read: The slot that `index` named in the cycle before.
    """

    def __init__(self, *, slot: Any, size: int) -> None:
        self.slot = slot
        self.size = size
        super().__init__(
            {
                "shift": In(1),
                "entering": In(slot),
                "leaving": Out(slot),
                "index": In(index_shape(size)),
                "read": Out(slot),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        slots = [Signal(self.slot, name=f"slot_{k}") for k in range(self.size)]  # the window's tuples, newest first
        at = Signal(index_shape(self.size))  # the index that is read now
        with m.If(self.shift):
            m.d.sync += slots[0].eq(self.entering)
            m.d.sync += [slots[k].eq(slots[k - 1]) for k in range(1, self.size)]
        m.d.sync += at.eq(self.index)
        m.d.comb += [self.leaving.eq(slots[-1]), self.read.eq(Array(slots)[at])]
        return m


class RamSegment(Segment):
    """A segment in RAM, for windows that registers would be too dear for: new tuples overwrite the oldest in turn.

    The RAM has to start with zeros, which are empty slots; a reset alone does not empty it.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.slots = slots = memory.Memory(shape=self.slot, depth=self.size, init=[])
        write = slots.write_port()
        scanned = slots.read_port(transparent_for=(write,))
        oldest = slots.read_port(transparent_for=(write,))
        place = Signal(index_shape(self.size))  # where the oldest tuple is, which the next one overwrites
        following = Signal(index_shape(self.size))
        m.d.comb += [
            following.eq(Mux(place == self.size - 1, 0, place + 1)),
            write.addr.eq(place),
            write.data.eq(self.entering),
            write.en.eq(self.shift),
            oldest.addr.eq(Mux(self.shift, following, place)),
            self.leaving.eq(oldest.data),
            scanned.addr.eq(self.index),
            self.read.eq(scanned.data),
        ]
        with m.If(self.shift):
            m.d.sync += place.eq(following)
        return m
