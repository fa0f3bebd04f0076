"""A stage's window in RAM, with slots beyond it for tuples that have expired and are still being looked for."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.segment import index_shape


class StageWindow(wiring.Component):
    """Banks of RAM that take in new tuples round and round, one bank after the other.

    Any `banks` slots that follow each other can be read at once: those before a place, which is a group and a bank. The
    banks before the one of the place give their slot of its group, the others that of the group before.

    A tuple is overwritten by the one that comes `groups` · `banks` tuples later. With as many slots beyond the longest
    window as tuples may be under way, that is the window together with the paper's EBuf [CMJ §II-C].

    Args:
        slot: The layout of a slot.
        groups: How many slots a bank has.
        banks: How many banks there are.

    Attributes:
        next: The place of the next tuple.

    Ports:
        store: Take in `entering` at the next place.
        group, bank: The place before which slots are read in the next cycle.
        read: The slots, by bank, that were asked for in the cycle before.
    """

    def __init__(self, *, slot: Any, groups: int, banks: int = 1) -> None:
        self.slot = slot
        self.groups = groups
        self.banks = banks
        self.next = StagePlace(groups=groups, banks=banks)
        super().__init__(
            {
                "store": In(1),
                "entering": In(slot),
                "group": In(index_shape(groups)),
                "bank": In(index_shape(banks)),
                "read": Out(slot).array(banks),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.next = place = self.next
        before = Signal.like(self.group)  # the group before the one that is asked for
        m.d.comb += [place.move.eq(self.store), before.eq(Mux(self.group == 0, self.groups - 1, self.group - 1))]
        for number in range(self.banks):
            depth = len(index_shape(self.groups))  # no RAM without an address
            m.submodules[f"bank_{number}"] = slots = memory.Memory(shape=self.slot, depth=depth, init=[])
            write, read = slots.write_port(), slots.read_port()
            m.d.comb += [
                write.addr.eq(place.group),
                write.data.eq(self.entering),
                write.en.eq(self.store & (place.bank == number)),
                read.addr.eq(Mux(number < self.bank, self.group, before)),
                self.read[number].eq(read.data),
            ]
        return m


class StagePlace(wiring.Component):
    """A place in a window that moves on by one slot, round and round.

    Ports:
        move: Move on.
        group, bank: The place.
    """

    def __init__(self, *, groups: int, banks: int) -> None:
        self.groups = groups
        self.banks = banks
        super().__init__({"move": In(1), "group": Out(index_shape(groups)), "bank": Out(index_shape(banks))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        last = Signal()  # it is in the last bank
        m.d.comb += last.eq(self.bank == self.banks - 1)
        with m.If(self.move):
            m.d.sync += self.bank.eq(Mux(last, 0, self.bank + 1))
        with m.If(self.move & last):
            m.d.sync += self.group.eq(Mux(self.group == self.groups - 1, 0, self.group + 1))
        return m
