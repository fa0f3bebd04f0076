"""The distribution chain: brings each new tuple to its own window, then to the stage it begins at [CMJ §II]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.window import StagePlace
from handfast.engines.hardware.segment import index_shape


class DistributionChain(wiring.Component):
    """A register for each stage, twice. A tuple moves on by one in every cycle and never waits.

    On the first round a tuple is stored in the window of its stream. Between the rounds it is found out which tuples of
    the other streams it may meet: those that came before it. As these are ahead of it in the chain, they have all been
    stored when it leaves the chain on its second round, at the stage after its own. There is room for it: no more
    tuples are under way than the stage has slots for new ones.

    Args:
        layout: The bits of tuples and items.
        counted: By stream, how many rows its window holds; None for a window of time.

    Ports:
        valid, step, number: A tuple enters, with its number.
        store, slots: By stage, a tuple for its window.
        new, items: By stage, a tuple that begins there.
        empty: There is no tuple in the chain.
    """

    def __init__(self, *, layout: RingLayout, counted: tuple[int | None, ...]) -> None:
        self.layout = layout
        self.counted = counted
        stages = range(layout.streams)
        ports: dict[str, Any] = {
            "valid": In(1),
            "step": In(layout.step),
            "number": In(index_shape(layout.in_flight)),
            "store": Out(layout.streams),
            "new": Out(layout.streams),
            "empty": Out(1),
        }
        ports |= {f"slot_{k}": Out(layout.slot(k).shape) for k in stages}
        ports |= {f"item_{k}": Out(layout.item(k)) for k in stages}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        streams = self.layout.streams
        first = data.StructLayout({"step": self.layout.step, "number": index_shape(self.layout.in_flight)})
        ranges = {str(stream): self.layout.range(stream) for stream in range(streams)}
        second = data.StructLayout(
            {
                "origin": range(streams),
                "slot": self.layout.step["slot"].shape,
                "number": index_shape(self.layout.in_flight),
                "ranges": data.StructLayout(ranges),
            }
        )
        storing = [Signal(first, name=f"storing_{k}") for k in range(streams)]  # tuples on their first round
        stores = [Signal(name=f"stores_{k}") for k in range(streams)]  # whether there is one
        bringing = [Signal(second, name=f"bringing_{k}") for k in range(streams)]  # tuples on their second round
        brings = [Signal(name=f"brings_{k}") for k in range(streams)]

        m.d.sync += [stores[0].eq(self.valid), storing[0].step.eq(self.step), storing[0].number.eq(self.number)]
        for k in range(1, streams):
            m.d.sync += [stores[k].eq(stores[k - 1]), storing[k].eq(storing[k - 1])]
        turning = storing[-1]  # the tuple between the rounds
        m.d.sync += [
            brings[0].eq(stores[-1]),
            bringing[0].origin.eq(turning.step.origin),
            bringing[0].slot.eq(turning.step.slot),
            bringing[0].number.eq(turning.number),
            bringing[0].ranges.eq(self._ranges(m, stores[-1], turning.step)),
        ]
        for k in range(1, streams):
            m.d.sync += [brings[k].eq(brings[k - 1] & ~self.new[k - 1]), bringing[k].eq(bringing[k - 1])]

        for k in range(streams):
            before = (k - 1) % streams  # the stream whose tuples begin at this stage
            item = getattr(self, f"item_{k}")
            m.d.comb += [
                self.store[k].eq(stores[k] & (storing[k].step.origin == k)),
                getattr(self, f"slot_{k}").eq(storing[k].step.slot),
                self.new[k].eq(brings[k] & (bringing[k].origin == before)),
                item.number.eq(bringing[k].number),
                item.valid.eq(1),
                item.last.eq(1),
            ]
            slot = Signal(self.layout.slot(before).shape, name=f"new_{k}")
            member = self.layout.member(k, before)
            m.d.comb += slot.eq(bringing[k].slot)
            self.layout.copy(m, member, slot, item[f"of_{before}"].member)
            for stream in range(streams):
                if stream != before:
                    m.d.comb += item[f"of_{stream}"].range.eq(bringing[k].ranges[str(stream)])
        m.d.comb += self.empty.eq(~Cat(stores, brings).any())
        return m

    def _ranges(self, m: Module, valid: Signal, step: Any) -> Signal:
        """For each stream, the slots that hold what the window of the stream holds when the tuple arrives."""
        ranges = Signal(data.StructLayout({str(k): self.layout.range(k) for k in range(self.layout.streams)}))
        for stream in range(self.layout.streams):
            own = ranges[str(stream)]
            place = StagePlace(groups=self.layout.groups(stream), banks=self.layout.comparisons)
            m.submodules[f"place_{stream}"] = place  # of the next tuple of the stream
            m.d.comb += [place.move.eq(valid & (step.origin == stream)), own.group.eq(place.group)]
            if self.layout.comparisons > 1:
                m.d.comb += own.bank.eq(place.bank)
            rows = self.counted[stream]
            if rows is None:
                m.d.comb += own.held.eq(step.held[str(stream)])
                continue
            most = min(rows, self.layout.held[stream])
            count = Signal(range(most + 1), name=f"count_{stream}")  # how many tuples its window holds
            m.d.comb += own.held.eq(count)
            with m.If(place.move):
                m.d.sync += count.eq(Mux(count == most, most, count + 1))
        return ranges
