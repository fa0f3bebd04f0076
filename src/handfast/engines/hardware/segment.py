"""Segments: one core's share of a stream's window, as a shift register or in RAM."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out


def index_shape(size: int) -> range:
    """The shape of an index of so many things: at least one bit, for Verilog has no wires without."""
    return range(max(2, size))


def groups_of(size: int, at_once: int) -> int:
    """How many times so many slots have to be read at once to read a whole segment."""
    return -(-size // at_once)


class Segment(wiring.Component):
    """A segment as a shift register [OGE §4.1], [000 A.2].

    Both forms of a segment have the same ports and the same timing. Slots are read in groups. Reading every group gives
    every slot once, and empty ones where slots do not fill the last group; which group a slot is in is the segment's
    own business.

    Args:
        slot: The layout of a slot, with its valid flag. All slots are empty at first.
        size: How many slots there are.
        at_once: How many slots are read at once: the size of a group.

    Attributes:
        groups: How many groups there are.

    Ports:
        shift: Take in `entering`, and drop the oldest.
        leaving: The oldest slot, the one that the next shift drops.
        index: The group to be read in the next cycle.
        read: The slots of the group that `index` named in the cycle before.
    """

    def __init__(self, *, slot: Any, size: int, at_once: int = 1) -> None:
        self.slot = slot
        self.size = size
        self.at_once = at_once
        self.groups = groups_of(size, at_once)
        super().__init__(
            {
                "shift": In(1),
                "entering": In(slot),
                "leaving": Out(slot),
                "index": In(index_shape(self.groups)),
                "read": Out(slot).array(at_once),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        slots = [Signal(self.slot, name=f"slot_{k}") for k in range(self.size)]  # the window's tuples, newest first
        empty = Signal(self.slot)  # nothing drives it
        at = Signal(index_shape(self.groups))  # the group that is read now
        with m.If(self.shift):
            m.d.sync += slots[0].eq(self.entering)
            m.d.sync += [slots[k].eq(slots[k - 1]) for k in range(1, self.size)]
        m.d.sync += at.eq(self.index)
        m.d.comb += self.leaving.eq(slots[-1])
        padded = slots + [empty] * (self.groups * self.at_once - self.size)
        m.d.comb += [read.eq(Array(padded[k :: self.at_once])[at]) for k, read in enumerate(self.read)]
        return m


class RamSegment(Segment):
    """A segment in RAM, for windows that registers would be too dear for: new tuples overwrite the oldest in turn.

    There is a bank of RAM for each slot of a group, and tuples are put into one bank after the other. The RAM has to
    start with zeros, which are empty slots; a reset alone does not empty it.

    Block RAM has two ports. One reads what is scanned; the other writes what enters, and between two shifts it reads
    the slot that will be the oldest after the next one. So two shifts may not follow each other without a cycle between
    them; no core does that.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # where the oldest tuple is, which the next one overwrites
        group = Signal(index_shape(self.groups))
        bank = Signal(index_shape(self.at_once))
        following = Signal.like(group)  # the group and the bank that come next
        following_bank = Signal.like(bank)
        in_last_bank, in_last_slot = Signal(), Signal()
        oldest = Signal(self.slot)  # the oldest slot, once more
        m.d.comb += [
            in_last_slot.eq((group == self.groups - 1) & (bank == (self.size - 1) % self.at_once)),
            in_last_bank.eq((bank == self.at_once - 1) | in_last_slot),
            following_bank.eq(Mux(in_last_bank, 0, bank + 1)),
            following.eq(Mux(in_last_slot, 0, group + in_last_bank)),
            self.leaving.eq(oldest),
        ]
        depth = len(index_shape(self.groups))  # no RAM without an address either
        address = Signal.like(group)  # one for reading and writing, else it takes a port for each
        m.d.comb += address.eq(Mux(self.shift, group, following))
        ahead = []  # by bank, what it reads for the time after the next shift
        for number in range(min(self.at_once, self.size)):  # of a group that is larger, the rest is empty
            m.submodules[f"bank_{number}"] = slots = memory.Memory(shape=self.slot, depth=depth, init=[])
            write, second = slots.write_port(), slots.read_port()
            scanned = slots.read_port(transparent_for=(write,))
            ahead.append(second.data)
            m.d.comb += [
                write.addr.eq(address),
                write.data.eq(self.entering),
                write.en.eq(self.shift & (bank == number)),
                second.addr.eq(address),
                scanned.addr.eq(self.index),
                self.read[number].eq(scanned.data),
            ]
        with m.If(self.shift):
            m.d.sync += [
                group.eq(following),
                bank.eq(following_bank),
                oldest.eq(self.entering if self.size == 1 else Array(ahead)[following_bank]),
            ]
        return m
