"""What is proven of all that merges streams, mergers and networks: order, room, and that every input has its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Signal
from amaranth.hdl._ast import AnyConst  # any value that never changes; 0.5 has no public name for it
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.proofs.fifo import keeps_count
from handfast.engines.hardware.proofs.follow import Follow
from handfast.engines.hardware.proofs.offer import count_while, in_words, stands


class OrderProof(wiring.Component):
    """Inputs that offer what and when they like, and an output that is taken at will. One input, any one, is watched.

    A word is one bit of its own and the number of its input; so wide the part's words have to be.

    Args:
        part: A merger or a network.
        room: How many words of one input it has room for.
        within: The most cycles with a ready output, in a row or not, that a word stays inside.
        unrefused: FIFOs inside to which nobody may write while they have no room.
    """

    def __init__(self, part: Any, *, room: int, within: int, unrefused: Sequence[Fifo] = ()) -> None:
        self.part = part
        self.room = room
        self.within = within
        self.unrefused = unrefused
        inputs = len(part.inputs)
        super().__init__({"valid": In(inputs), "bits": In(inputs), "ready": In(1), "pick": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.part = part = self.part
        m.submodules.follow = follow = Follow(width=1, room=self.room, within=self.within)
        watched = any_of(m, len(part.inputs))
        for number, entry in enumerate(part.inputs):
            m.d.comb += [
                entry.valid.eq(self.valid[number]),
                entry.payload.eq(Cat(self.bits[number], Const(number, len(watched)))),
            ]
        taken = Cat(entry.valid & entry.ready for entry in part.inputs)
        m.d.comb += [
            part.output.ready.eq(self.ready),
            follow.pick.eq(self.pick),
            follow.enters.eq(taken.bit_select(watched, 1)),
            follow.entering.eq(self.bits.bit_select(watched, 1)),
            follow.leaves.eq(part.output.valid & self.ready & (part.output.payload[1:] == watched)),
            follow.leaving.eq(part.output.payload[0]),
            follow.drains.eq(self.ready),
        ]
        for fifo in self.unrefused:
            m.d.comb += Assert(~fifo.write.valid | fifo.write.ready, "what is written to a FIFO finds room there")
        stands(m, part.output)
        return m


class TurnProof(wiring.Component):
    """Inputs that offer a word when they like, and an output that is taken at will. One input, any one, is watched.

    Args:
        part: A merger or a network; its words have one bit.
        within: For how many cycles in a row, all with a ready output, an input waits at most.
        one_of: Whether one input is taken in every cycle with a ready output in which there is an offer, and never two:
            whether the part is an arbiter before a register.
    """

    def __init__(self, part: Any, *, within: int, one_of: bool = False) -> None:
        self.part = part
        self.within = within
        self.one_of = one_of
        super().__init__({"valid": In(len(part.inputs)), "ready": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.part = part = self.part
        watched = any_of(m, len(part.inputs))
        m.d.comb += [entry.valid.eq(offer) for entry, offer in zip(part.inputs, self.valid, strict=True)]
        m.d.comb += part.output.ready.eq(self.ready)
        taken = Cat(entry.valid & entry.ready for entry in part.inputs)
        waits = (self.valid & ~taken).bit_select(watched, 1)
        waited = count_while(m, waits & self.ready, self.within, name="waited")
        m.d.comb += Assert(
            waited <= self.within, f"an input waits for at most {in_words(self.within)} in a row with a ready output"
        )
        if self.one_of:
            several = taken & (taken - 1)[: len(taken)]
            m.d.comb += [
                Assert(~several.any(), "of several inputs one is taken"),
                Assert(
                    ~(self.ready & self.valid.any()) | taken.any(), "an offer is taken whenever the output is ready"
                ),
            ]
        for fifo in getattr(part, "fifos", [part.fifo] if hasattr(part, "fifo") else []):
            keeps_count(m, fifo)
        return m


def any_of(m: Module, number: int) -> Signal:
    """Any one of so many things, always the same."""
    watched = Signal(range(number))  # which one is watched
    m.d.comb += [watched.eq(AnyConst(watched.shape())), Assume(watched < number)]
    return watched
