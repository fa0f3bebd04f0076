"""What is proven of everything that merges streams into one, mergers and trees: order, room, and that all get their turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Signal
from amaranth.hdl._ast import AnyConst  # any value that never changes; 0.5 has no public name for it
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.proofs.follow import Follow
from handfast.engines.hardware.proofs.offer import count_while, stands


class MergingProof(wiring.Component):
    """Inputs that offer what and when they like, and an output that is taken at will. One input, any one, is watched.

    A word is one bit of its own and the number of its input.

    Args:
        part: A merger or a tree; its words are `word_width(part)` wide.
        room: How many words of one input it has room for.
        taken_within: The most cycles with a ready output that an input waits for.
        leaves_within: The most cycles with a ready output that a word stays inside.
        others_first: How many words of other inputs may be taken while one waits, where the part promises that.
        unrefused: FIFOs inside to which nobody may write while they have no room.
    """

    def __init__(
        self,
        part: Any,
        *,
        room: int,
        taken_within: int,
        leaves_within: int,
        others_first: int | None = None,
        unrefused: Sequence[Fifo] = (),
    ) -> None:
        self.part = part
        self.room = room
        self.taken_within = taken_within
        self.leaves_within = leaves_within
        self.others_first = others_first
        self.unrefused = unrefused
        inputs = len(part.inputs)
        super().__init__({"valid": In(inputs), "bits": In(inputs), "ready": In(1), "pick": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.part = part = self.part
        m.submodules.follow = follow = Follow(width=1, room=self.room, within=self.leaves_within)
        inputs = range(len(part.inputs))
        watched = Signal(range(len(inputs)))  # the number of the input that is watched
        m.d.comb += [watched.eq(AnyConst(watched.shape())), Assume(watched < len(inputs))]
        for number, entry in enumerate(part.inputs):
            m.d.comb += [
                entry.valid.eq(self.valid[number]),
                entry.payload.eq(Cat(self.bits[number], Const(number, len(watched)))),
            ]
        taken = Cat(entry.valid & entry.ready for entry in part.inputs)
        offered, mine = Signal(), Signal()  # the watched input offers a word; it is taken
        m.d.comb += [
            offered.eq(self.valid.bit_select(watched, 1)),
            mine.eq(taken.bit_select(watched, 1)),
            part.output.ready.eq(self.ready),
            follow.pick.eq(self.pick),
            follow.enters.eq(mine),
            follow.entering.eq(self.bits.bit_select(watched, 1)),
            follow.leaves.eq(part.output.valid & self.ready & (part.output.payload[1:] == watched)),
            follow.leaving.eq(part.output.payload[0]),
            follow.drains.eq(self.ready),
        ]
        waits = count_while(m, offered & ~mine, self.ready, self.taken_within, name="waits")
        m.d.comb += Assert(
            waits <= self.taken_within, f"an input waits for at most {self.taken_within} cycles with a ready output"
        )
        if self.others_first is not None:
            passed = count_while(m, offered & ~mine, taken.any(), self.others_first, name="passed")
            m.d.comb += Assert(passed <= self.others_first, f"an input waits for at most {self.others_first} others")
        for fifo in self.unrefused:
            m.d.comb += Assert(~fifo.write.valid | fifo.write.ready, "what is written to a FIFO finds room there")
        stands(m, part.output)
        return m


def word_width(inputs: int) -> int:
    """Bits of a word in a proof with so many inputs."""
    return 1 + len(Signal(range(inputs)))
