"""The whole circuit of Stashed-MJ: what stores tuples, the line of stages, the merging network [CMJ Fig. 6]."""

from __future__ import annotations

import math
from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.admission import COUNT_BITS
from handfast.engines.hardware.circular.distribution import Ranges, StoringRound
from handfast.engines.hardware.circular.in_flight import InFlight
from handfast.engines.hardware.circular.layout import copy
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.segment import index_shape
from handfast.engines.hardware.stashed.conditions import PAIR
from handfast.engines.hardware.stashed.layout import LineLayout
from handfast.engines.hardware.stashed.line_stage import LineMatches, LineStage
from handfast.engines.hardware.stashed.stash_stage import StashStage


class LineEntrance(wiring.Component):
    """Stores each new tuple in its window, and makes an item of it then.

    Args:
        layout: The bits of tuples and items.
        counted: By stream, how many rows its window holds; None for a window of time.

    Ports:
        valid, step, number: A tuple enters, with its number.
        store: By stream, whether there is a tuple for its window.
        slot_0, slot_1 …: These tuples.
        new, item: A tuple that begins, with the ranges that it will scan.
    """

    def __init__(self, *, layout: LineLayout, counted: tuple[int | None, ...]) -> None:
        self.layout = layout
        self.counted = counted
        ports: dict[str, Any] = {
            "valid": In(1),
            "step": In(layout.step),
            "number": In(index_shape(layout.in_flight)),
            "store": Out(layout.streams),
            "new": Out(1),
            "item": Out(layout.item(0)),
        }
        super().__init__(ports | {f"slot_{k}": Out(layout.slot(k).shape) for k in range(layout.streams)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
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
        item = Signal(self.layout.item(0))
        m.d.comb += [
            item.number.eq(storing.turning_number),
            item.origin.eq(storing.turning.origin),
            item.valid.eq(1),
            item.last.eq(1),
        ]
        for k in range(self.layout.streams):
            m.d.comb += getattr(self, f"slot_{k}").eq(getattr(storing, f"slot_{k}"))
            slot = Signal(self.layout.slot(k).shape, name=f"new_{k}")
            m.d.comb += slot.eq(storing.turning.slot)
            with m.If(storing.turning.origin == k):
                copy(m, self.layout.member(0, k), slot, item[f"of_{k}"].member)
            with m.Else():
                m.d.comb += item[f"of_{k}"].range.eq(ranges.ranges[str(k)])
        for k in PAIR:
            seen = Signal(self.layout.low(k), name=f"seen_{k}")  # how many tuples of the stream have come
            m.d.comb += item[f"low_{k}"].eq(seen - ranges.ranges[str(k)].held)
            m.d.sync += seen.eq(seen + (storing.turns & (storing.turning.origin == k)))
        m.d.sync += [self.new.eq(storing.turns), self.item.eq(item)]
        return m


class LineCircuit(wiring.Component):
    """Stashed-MJ: a stage with two windows and the stash, and a stage for each other stream behind it.

    Args:
        layout: The bits of tuples, items and results.
        counted: By stream, how many rows its window holds; None for a window of time.
        matches: The logic of each stage's conditions.
        stash: How many pairs the stash has room for.
        buffer: How many intermediates may wait before each stage.
        network: Any merging network with an input for each stage.

    Attributes:
        fifos: Those of the merging network.

    Ports:
        steps: New tuples, in the order of their rank.
        results: The matches.
        idle: Nothing is under way: every match of the tuples so far has come out.
        waits: By stage, whether what it has found has nowhere to go.
        discarded, dropped: 0; nothing is lost here.
        overwritten: How many pairs were overwritten that could still match.
        computed: How many tuples have computed pairs that were missing.
    """

    def __init__(
        self,
        *,
        layout: LineLayout,
        counted: tuple[int | None, ...],
        matches: LineMatches,
        stash: int,
        buffer: int,
        network: Any,
    ) -> None:
        self.layout = layout
        self.network = network
        self.entrance = LineEntrance(layout=layout, counted=counted)
        self.in_flight = InFlight(limit=layout.in_flight, stages=layout.stages)
        self.first = StashStage(layout=layout, matches=matches, size=stash)
        self.others = [
            LineStage(place=k, layout=layout, matches=matches, buffer=buffer) for k in range(1, layout.stages)
        ]
        self.fifos: list[Fifo] = list(network.fifos)
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(layout.step.size))),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "idle": Out(1),
                "waits": Out(layout.stages),
                "discarded": Out(COUNT_BITS),
                "dropped": Out(COUNT_BITS),
                "overwritten": Out(COUNT_BITS),
                "computed": Out(COUNT_BITS),
            }
        )

    @property
    def standing(self) -> Signal:
        """By stage, whether it stands still."""
        return self.waits

    @property
    def silence(self) -> int:
        """More cycles than the circuit ever works without a word that moves."""
        # all that is under way may match everything, but for the last stage
        intermediates = math.prod(held + 2 for held in self.layout.held) + self.first.stash.size
        return 1_000 + self.layout.in_flight * (64 + 8 * intermediates)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.network = network = self.network
        m.submodules.entrance = entrance = self.entrance
        m.submodules.in_flight = under_way = self.in_flight
        m.submodules.stage_0 = first = self.first
        connect(m, network.output, flipped(self.results))
        m.d.comb += [
            self.steps.ready.eq(under_way.room),
            under_way.enters.eq(self.steps.valid & under_way.room),
            entrance.valid.eq(under_way.enters),
            entrance.step.eq(self.steps.payload),
            entrance.number.eq(under_way.number),
            first.new.eq(entrance.new),
            first.item.eq(entrance.item),
            first.store.eq(entrance.store),
            *(getattr(first, f"slot_{k}").eq(getattr(entrance, f"slot_{k}")) for k in PAIR),
        ]
        before: StashStage | LineStage = first
        for k, stage in enumerate(self.others, 1):
            m.submodules[f"stage_{k}"] = stage
            connect(m, before.onward, stage.items)
            m.d.comb += [
                stage.store.eq(entrance.store[k + 1]),
                stage.slot.eq(getattr(entrance, f"slot_{k + 1}")),
            ]
            before = stage
        stages: list[StashStage | LineStage] = [first, *self.others]
        for k, each in enumerate(stages):
            connect(m, each.results, network.inputs[k])
            m.d.comb += [
                under_way.ended[k].eq(each.ended),
                under_way.ended_number[k].eq(each.ended_number),
                self.waits[k].eq(each.waits),
            ]
        m.d.sync += [
            self.overwritten.eq(self.overwritten + first.overwritten),
            self.computed.eq(self.computed + first.computes),
        ]
        most = 1 + sum(fifo.depth + 4 for fifo in self.fifos) + 8 * len(stages)  # results that the network holds
        new = Signal(range(len(stages) + 1))  # how many results left the stages in the last cycle
        found = Signal(range(2 * most))  # how many results are in the network; it may wrap for one cycle
        m.d.sync += [
            new.eq(sum(each.results.valid & each.results.ready for each in stages)),
            found.eq(found + new - (self.results.valid & self.results.ready)),
        ]
        m.d.comb += self.idle.eq(under_way.empty & (new == 0) & (found == 0))
        return m
