"""The stash: matching pairs, kept round and round; it knows when one is gone that could still match [CMJ §III]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.window import StageWindow
from handfast.engines.hardware.segment import groups_of, index_shape
from handfast.engines.hardware.stashed.conditions import PAIR
from handfast.engines.hardware.stashed.layout import LineLayout


class Stash(wiring.Component):
    """Room for pairs of tuples of two streams. A new pair overwrites the oldest.

    A pair is *live* while both of its tuples may be in their windows: from their places `low` on. If a live pair is
    overwritten, pairs are missing until all of one stream's tuples in such pairs have expired. What is not known for
    certain is taken for missing, so that what is found in a stash that is `whole` is all there is.

    Args:
        layout: The bits of pairs and places.
        size: How many pairs there is room for; it is rounded up to whole groups.

    Attributes:
        size: How many pairs there is room for.

    Ports:
        keep, pair: Keep a pair.
        knows, low_0, low_1: By stream, whether its window begins at a place now; and that place, which never goes back.
        whole: No pair is missing that is in windows which begin at the places `low`, of both streams.
        group, bank: The place behind the newest pair.
        count: How many pairs there are, backwards from there, of which some may be live.
        trim, reach: Of the pairs the oldest ones are not live any more, those beyond so many; while none is kept.
        at_group, at_bank: The place before which pairs are read in the next cycle.
        read: These pairs, by bank.
        overwritten: A live pair is overwritten.
    """

    def __init__(self, *, layout: LineLayout, size: int) -> None:
        self.layout = layout
        self.groups = groups_of(size, layout.comparisons)
        self.size = self.groups * layout.comparisons
        places = {f"low_{stream}": In(layout.low(stream)) for stream in PAIR}
        super().__init__(
            {
                "keep": In(1),
                "pair": In(layout.pair),
                "knows": In(len(PAIR)),
                **places,
                "whole": Out(1),
                "group": Out(index_shape(self.groups)),
                "bank": Out(index_shape(layout.comparisons)),
                "count": Out(range(max(1, self.size) + 1)),
                "trim": In(1),
                "reach": In(range(max(1, self.size) + 1)),
                "at_group": In(index_shape(self.groups)),
                "at_bank": In(index_shape(layout.comparisons)),
                "read": Out(layout.pair).array(layout.comparisons),
                "overwritten": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if self.size == 0:
            return m  # nothing is kept, and it is never whole
        m.submodules.pairs = pairs = StageWindow(
            slot=self.layout.pair, groups=self.groups, banks=self.layout.comparisons
        )
        place = pairs.next
        m.d.comb += [
            pairs.store.eq(self.keep),
            pairs.entering.eq(self.pair),
            pairs.group.eq(self.at_group),
            pairs.bank.eq(self.at_bank),
            self.group.eq(place.group),
            self.bank.eq(place.bank),
        ]
        m.d.comb += [mine.eq(own) for mine, own in zip(self.read, pairs.read, strict=True)]
        with m.If(self.keep):
            m.d.sync += self.count.eq(Mux(self.count == self.size, self.size, self.count + 1))
        with m.Elif(self.trim):
            m.d.sync += self.count.eq(self.reach)

        oldest = self._oldest(m)
        live: Any = Const(1, 1)
        gone: Any = Const(0, 1)  # all of one stream's tuples in missing pairs have expired
        missing = Signal()  # some pairs are
        places, lasts, lows = [], [], []
        for stream in PAIR:
            given = getattr(self, f"low_{stream}")
            known = Signal.like(given, name=f"known_{stream}")  # where the window begins, as far as is known
            low = Signal.like(given, name=f"now_{stream}")
            last = Signal.like(given, name=f"last_{stream}")  # the last tuple of the stream that is in a missing pair
            m.d.comb += low.eq(Mux(self.knows[stream], given, known))
            m.d.sync += known.eq(low)
            live &= oldest[stream] >= low
            gone |= low > last
            places.append(oldest[stream])
            lasts.append(last)
            lows.append(low)
        still = Signal()  # pairs are missing that could match
        m.d.comb += [
            still.eq(missing & ~gone),
            self.whole.eq(~still),
            self.overwritten.eq(self.keep & (self.count == self.size) & live),
        ]
        m.d.sync += missing.eq(still | self.overwritten)
        with m.If(self.overwritten):
            for own, last in zip(places, lasts, strict=True):
                m.d.sync += last.eq(self._later(still, last, own))
        return m

    @staticmethod
    def _later(still: Any, last: Any, own: Any) -> Any:
        """Of the tuples that are in missing pairs the last one, when one more is."""
        return Mux(still & (last > own), last, own)

    def _oldest(self, m: Module) -> list[Signal]:
        """The places of the tuples of the pair that the next one overwrites: kept once more, and read ahead."""
        places = data.StructLayout({str(stream): self.layout.low(stream) for stream in PAIR})
        m.submodules.oldest = again = memory.Memory(shape=places, depth=len(index_shape(self.size)), init=[])
        write = again.write_port()
        read = again.read_port(transparent_for=(write,))
        at = Signal(index_shape(self.size))  # the place of the next pair
        following = Signal.like(at)
        m.d.comb += [
            following.eq(Mux(at == self.size - 1, 0, at + 1)),
            write.addr.eq(at),
            *(write.data[str(stream)].eq(self.pair[f"of_{stream}"].seq) for stream in PAIR),
            write.en.eq(self.keep),
            read.addr.eq(Mux(self.keep, following, at)),
        ]
        with m.If(self.keep):
            m.d.sync += at.eq(following)
        return [read.data[str(stream)] for stream in PAIR]
