"""A stage of the line behind the first: one window, one queue, one scanner [CMJ §III]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.circular.window import StageWindow
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.segment import index_shape
from handfast.engines.hardware.stashed.conditions import Step
from handfast.engines.hardware.stashed.lanes import Lanes, distances
from handfast.engines.hardware.stashed.layout import LineLayout

LineMatches = Callable[[Module, int, Mapping[int, Any], Callable[[Step], Any]], Any]
"""Adds the logic of a stage's conditions, for the tuples by stream and for the step that is taken; whether all hold."""


class LineStage(wiring.Component):
    """A stage of the line. Items come, are worked on and go on in the order of the tuples that they are of.

    - START: waits for an item. One of the stage's own stream is handed on as it is. Of others the scan begins.
    - SCAN: as in a ring; a match waits in its place for as long as there is no room.
    - END: a marker has come: the tuple ends here, or the marker goes on.

    As nothing ever comes back, a stage that waits can only wait for one behind it, and the last one for the results to
    be taken: the line cannot get stuck.

    Args:
        place: The number of the stage; its window is that of the stream place + 1.
        layout: The bits of items, slots and results.
        matches: The logic of the conditions.
        buffer: How many items may wait before it.

    Ports:
        store, slot: A tuple for the window.
        items: What comes from the stage before.
        onward: What goes to the next stage; the last stage gives nothing there.
        results: The matches of all streams.
        ended, ended_number: A tuple ends.
        waits: What was found has nowhere to go.
    """

    def __init__(self, *, place: int, layout: LineLayout, matches: LineMatches, buffer: int) -> None:
        self.place = place
        self.layout = layout
        self.matches = matches
        self.queue = Fifo(width=layout.item(place).size, depth=buffer, margin=0, latency=1)
        self.onward_shape = layout.item(min(place + 1, layout.stages - 1))
        super().__init__(
            {
                "store": In(1),
                "slot": In(layout.slot(place + 1).shape),
                "items": In(stream.Signature(unsigned(layout.item(place).size))),
                "onward": Out(stream.Signature(unsigned(self.onward_shape.size))),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "ended": Out(1),
                "ended_number": Out(index_shape(layout.in_flight)),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layout, own, banks = self.layout, self.place + 1, self.layout.comparisons
        groups = layout.groups(own)
        m.submodules.queue = queue = self.queue
        m.submodules.window = window = StageWindow(slot=layout.slot(own).shape, groups=groups, banks=banks)
        wiring.connect(m, wiring.flipped(self.items), queue.write)
        item = Signal(layout.item(self.place))
        range_ = item[f"of_{own}"].range
        group = Signal(index_shape(groups))  # the place before which slots are compared
        left = Signal(range_.held.shape())  # how many slots are left to scan
        passed = Signal()  # an item of the tuple has gone on
        scans, taken, hands_on, marks = Signal(), Signal(), Signal(), Signal()
        last = Signal()  # the item is complete with a tuple of this stage
        bank = range_.bank if banks > 1 else 0
        before = Signal.like(group)  # the next group to scan
        m.d.comb += [
            item.eq(queue.read.payload),
            window.store.eq(self.store),
            window.entering.eq(self.slot),
            window.group.eq(group),
            window.bank.eq(bank),
            last.eq(layout.is_last(self.place, item)),
            before.eq(Mux(group == 0, groups - 1, group - 1)),
            self.ended_number.eq(item.number),
        ]
        met = {k: item[f"of_{k}"].member for k in range(layout.streams) if k != own}
        found = [
            (away <= left) & self.matches(m, self.place, met | {own: slot}, lambda step: item.origin == step.origin)
            for away, slot in zip(distances(bank, banks), window.read, strict=True)
        ]
        lanes = Lanes(m, found, scans=scans, taken=taken)
        slot = Signal(layout.slot(own).shape)  # the one that leaves
        lanes.pick(m, list(window.read), slot)
        goes = lanes.matches.any()
        m.d.comb += [
            self.results.valid.eq(goes & last),
            self.results.payload.eq(layout.result(item, {own: slot})),
            taken.eq(goes & Mux(last, self.results.ready, self.onward.ready)),
            self.waits.eq((goes & ~taken) | ((hands_on | marks) & ~self.onward.ready)),
        ]
        if self.place < layout.stages - 1:
            onward = Signal(self.onward_shape)
            layout.onward(m, self.place, item, {own: slot}, onward)
            with m.If(item.origin == own):
                m.d.comb += onward[f"of_{own}"].eq(item[f"of_{own}"])
            with m.If(marks):
                m.d.comb += [onward.valid.eq(0), onward.last.eq(1)]
            m.d.comb += [self.onward.valid.eq((goes & ~last) | hands_on | marks), self.onward.payload.eq(onward)]
        with m.If(taken):
            m.d.sync += passed.eq(1)

        with m.FSM():
            with m.State("START"):
                m.d.comb += window.group.eq(range_.group)
                m.d.sync += [group.eq(range_.group), left.eq(range_.held), lanes.sent.eq(0)]
                with m.If(queue.read.valid):
                    with m.If(~item.valid):
                        m.next = "END"
                    with m.Elif(item.origin == own):
                        m.d.comb += [hands_on.eq(1), queue.read.ready.eq(self.onward.ready)]
                        m.d.sync += passed.eq(1)
                    with m.Elif(range_.held != 0):
                        m.next = "SCAN"
                    with m.Else():
                        m.d.comb += queue.read.ready.eq(1)
            with m.State("SCAN"):
                m.d.comb += scans.eq(1)
                with m.If(lanes.done & (left > banks)):
                    m.d.comb += window.group.eq(before)
                    m.d.sync += [group.eq(before), left.eq(left - banks), lanes.sent.eq(0)]
                with m.Elif(lanes.done):
                    m.d.comb += queue.read.ready.eq(1)
                    m.next = "START"
            with m.State("END"):
                with m.If(last | ~passed):
                    m.d.comb += [self.ended.eq(1), queue.read.ready.eq(1)]
                with m.Else():
                    m.d.comb += [marks.eq(1), queue.read.ready.eq(self.onward.ready)]
                with m.If(queue.read.ready):
                    m.d.sync += passed.eq(0)
                    m.next = "START"
        return m
