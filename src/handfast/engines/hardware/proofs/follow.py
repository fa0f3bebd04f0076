"""One word, any one, followed through a part: what it means that nothing is lost, doubled, changed or overtaken."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.proofs.offer import in_words


class Follow(wiring.Component):
    """A word that enters is picked; it has to leave behind those that were inside before it, and soon.

    `pick` is left free, so the word may be any that ever enters, and what is claimed of it holds for all of them.

    Args:
        width: Bits of a word.
        room: The most words that the part has room for.
        within: The most cycles with `drains`, in a row or not, that a word stays inside.

    Ports:
        pick: Follow the word that enters; the first time counts.
        enters, entering: A word enters in this cycle.
        leaves, leaving: A word leaves in this cycle.
        drains: The part could give a word in this cycle.
        inside: How many words have entered and not left.
    """

    def __init__(self, *, width: int, room: int, within: int) -> None:
        self.width = width
        self.room = room
        self.within = within
        super().__init__(
            {
                "pick": In(1),
                "enters": In(1),
                "entering": In(width),
                "leaves": In(1),
                "leaving": In(width),
                "drains": In(1),
                "inside": Out(range(room + 2)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        picked = Signal()  # a word was picked, whether or not it is still inside
        followed = Signal()  # it is still inside
        word = Signal(self.width)  # it
        ahead = Signal(range(self.room + 2))  # how many words inside entered before it
        cycles = Signal(range(self.within + 2))  # how many times the part could give a word since then
        alone = self.inside == 0
        in_order = "words leave unchanged and in the order they entered in"
        m.d.sync += self.inside.eq(self.inside + self.enters - self.leaves)
        with m.If(self.enters & self.pick & ~picked):
            m.d.sync += [
                picked.eq(1),
                word.eq(self.entering),
                followed.eq(~(alone & self.leaves)),
                ahead.eq(self.inside - self.leaves),
            ]
        with m.If(alone & self.leaves):  # then it is what enters just now
            m.d.comb += Assert(self.enters & (self.leaving == self.entering), in_order)
        with m.If(followed & self.leaves):
            with m.If(ahead == 0):
                m.d.sync += followed.eq(0)
                m.d.comb += Assert(self.leaving == word, in_order)
            with m.Else():
                m.d.sync += ahead.eq(ahead - 1)
        with m.If(followed & self.drains & (cycles <= self.within)):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            Assert(self.inside <= self.room, f"no more than {self.room} of its words are inside"),
            Assert(cycles <= self.within, f"a word leaves within {in_words(self.within)} with a ready output"),
        ]
        return m
