"""The distribution chain: brings each new tuple to its own window, then to the stage it begins at [CMJ §II]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.layout import RingLayout, WindowsLayout, copy
from handfast.engines.hardware.circular.window import StagePlace
from handfast.engines.hardware.segment import index_shape


class StoringRound(wiring.Component):
    """The first round: a register for each stream, at which its tuples are stored. A tuple moves on in every cycle.

    Args:
        layout: The bits of tuples.

    Ports:
        valid, step, number: A tuple enters, with its number.
        store: By stream, whether there is a tuple for its window.
        slot_0, slot_1 …: These tuples.
        turns, turning, turning_number: A tuple that leaves at the end, when all before it have been stored.
    """

    def __init__(self, *, layout: WindowsLayout) -> None:
        self.layout = layout
        number = index_shape(layout.in_flight)
        ports: dict[str, Any] = {"valid": In(1), "step": In(layout.step), "number": In(number)}
        ports |= {"turns": Out(1), "turning": Out(layout.step), "turning_number": Out(number)}
        ports["store"] = Out(layout.streams)
        super().__init__(ports | {f"slot_{k}": Out(layout.slot(k).shape) for k in range(layout.streams)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        before = self.valid, self.step, self.number
        for k in range(self.layout.streams):
            valid = Signal(name=f"valid_{k}")  # whether there is a tuple here
            step = Signal(self.layout.step, name=f"step_{k}")
            number = Signal.like(self.number, name=f"number_{k}")
            m.d.sync += [valid.eq(before[0]), step.eq(before[1]), number.eq(before[2])]
            m.d.comb += [self.store[k].eq(valid & (step.origin == k)), getattr(self, f"slot_{k}").eq(step.slot)]
            before = valid, step, number
        m.d.comb += [self.turns.eq(before[0]), self.turning.eq(before[1]), self.turning_number.eq(before[2])]
        return m


class Ranges(wiring.Component):
    """Which tuples a new one may meet: of each other stream those that came before it and are in its window.

    Args:
        layout: The bits of tuples and ranges.
        counted: By stream, how many rows its window holds; None for a window of time.

    Ports:
        valid, step: A tuple comes; the ranges are there in the same cycle.
        ranges: By stream, the slots that its window holds.
    """

    def __init__(self, *, layout: WindowsLayout, counted: tuple[int | None, ...]) -> None:
        self.layout = layout
        self.counted = counted
        super().__init__({"valid": In(1), "step": In(layout.step), "ranges": Out(layout.ranges)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for stream, rows in enumerate(self.counted):
            own = self.ranges[str(stream)]
            place = StagePlace(groups=self.layout.groups(stream), banks=self.layout.comparisons)
            m.submodules[f"place_{stream}"] = place  # of the next tuple of the stream
            m.d.comb += [place.move.eq(self.valid & (self.step.origin == stream)), own.group.eq(place.group)]
            if self.layout.comparisons > 1:
                m.d.comb += own.bank.eq(place.bank)
            if rows is None:
                m.d.comb += own.held.eq(self.step.held[str(stream)])
                continue
            most = min(rows, self.layout.held[stream])
            count = Signal(range(most + 1), name=f"count_{stream}")  # how many tuples its window holds
            m.d.comb += own.held.eq(count)
            with m.If(place.move):
                m.d.sync += count.eq(Mux(count == most, most, count + 1))
        return m


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
        store: By stage, whether there is a tuple for its window.
        slot_0, slot_1 …: These tuples.
        new: By stage, whether there is a tuple that begins there.
        item_0, item_1 …: These tuples.
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
        }
        ports |= {f"slot_{k}": Out(layout.slot(k).shape) for k in stages}
        ports |= {f"item_{k}": Out(layout.item(k)) for k in stages}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        streams = self.layout.streams
        m.submodules.storing = storing = StoringRound(layout=self.layout)
        m.submodules.window_ranges = ranges = Ranges(layout=self.layout, counted=self.counted)
        m.d.comb += [
            storing.valid.eq(self.valid),
            storing.step.eq(self.step),
            storing.number.eq(self.number),
            self.store.eq(storing.store),
            ranges.valid.eq(storing.turns),
            ranges.step.eq(storing.turning),
        ]
        shape = data.StructLayout(
            {
                "origin": range(streams),
                "slot": self.layout.step["slot"].shape,
                "number": index_shape(self.layout.in_flight),
                "ranges": self.layout.ranges,
            }
        )
        bringing = [Signal(shape, name=f"bringing_{k}") for k in range(streams)]  # tuples on their second round
        brings = [Signal(name=f"brings_{k}") for k in range(streams)]  # whether there is one
        m.d.sync += [
            brings[0].eq(storing.turns),
            bringing[0].origin.eq(storing.turning.origin),
            bringing[0].slot.eq(storing.turning.slot),
            bringing[0].number.eq(storing.turning_number),
            bringing[0].ranges.eq(ranges.ranges),
        ]
        for k in range(1, streams):
            m.d.sync += [brings[k].eq(brings[k - 1] & ~self.new[k - 1]), bringing[k].eq(bringing[k - 1])]

        for k in range(streams):
            before = (k - 1) % streams  # the stream whose tuples begin at this stage
            item = getattr(self, f"item_{k}")
            m.d.comb += [
                getattr(self, f"slot_{k}").eq(getattr(storing, f"slot_{k}")),
                self.new[k].eq(brings[k] & (bringing[k].origin == before)),
                item.number.eq(bringing[k].number),
                item.valid.eq(1),
                item.last.eq(1),
            ]
            slot = Signal(self.layout.slot(before).shape, name=f"new_{k}")
            m.d.comb += slot.eq(bringing[k].slot)
            copy(m, self.layout.member(k, before), slot, item[f"of_{before}"].member)
            for stream in range(streams):
                if stream != before:
                    m.d.comb += item[f"of_{stream}"].range.eq(bringing[k].ranges[str(stream)])
        return m
