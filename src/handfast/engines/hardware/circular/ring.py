"""The whole circuit of a ring: distribution chain, stages round the circular bus, merging network [CMJ Fig. 4]."""

from __future__ import annotations

import math
from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.admission import COUNT_BITS
from handfast.engines.hardware.circular.distribution import DistributionChain
from handfast.engines.hardware.circular.in_flight import InFlight
from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.stage import RingStage, StageMatches
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.options import ROUND_ROBIN


class RingCircuit(wiring.Component):
    """Circular-MJ: a stage for each stream; intermediates go from each to the next, and from the last to the first.

    Args:
        layout: The bits of tuples, items and results.
        counted: By stream, how many rows its window holds; None for a window of time.
        matches: The logic of each stage's conditions.
        buffer: How many intermediates there is room for at each stage and hop.
        turn: Which item of a stage is next; see `RingStage`.
        network: Any merging network with an input for each stage.
        drops: Whether intermediates without room are dropped, as in the paper.

    Attributes:
        fifos: Those of the merging network.

    Ports:
        steps: New tuples, in the order of their rank.
        results: The matches.
        idle: Nothing is under way: every match of the tuples so far has come out, or was dropped.
        waits: By stage, whether what it has found has nowhere to go.
        discarded: 0; a ring discards no tuple.
        dropped: How many intermediates were dropped.
    """

    def __init__(
        self,
        *,
        layout: RingLayout,
        counted: tuple[int | None, ...],
        matches: StageMatches,
        buffer: int,
        network: Any,
        turn: str = ROUND_ROBIN,
        drops: bool = False,
    ) -> None:
        self.layout = layout
        self.network = network
        self.chain = DistributionChain(layout=layout, counted=counted)
        self.in_flight = InFlight(limit=layout.in_flight, stages=layout.streams)
        self.stages = [
            RingStage(place=k, layout=layout, matches=matches, buffer=buffer, turn=turn, drops=drops)
            for k in range(layout.streams)
        ]
        self.fifos: list[Fifo] = list(network.fifos)
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(layout.step.size))),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "idle": Out(1),
                "waits": Out(layout.streams),
                "discarded": Out(COUNT_BITS),
                "dropped": Out(COUNT_BITS),
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
        intermediates = math.prod(held + 2 for held in self.layout.held)
        return 1_000 + self.layout.in_flight * (64 + 8 * intermediates)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.network = network = self.network
        m.submodules.chain = chain = self.chain
        m.submodules.in_flight = under_way = self.in_flight
        connect(m, network.output, flipped(self.results))
        m.d.comb += [
            self.steps.ready.eq(under_way.room),
            under_way.enters.eq(self.steps.valid & under_way.room),
            chain.valid.eq(under_way.enters),
            chain.step.eq(self.steps.payload),
            chain.number.eq(under_way.number),
        ]
        for k, stage in enumerate(self.stages):
            m.submodules[f"stage_{k}"] = stage
            following = self.stages[(k + 1) % len(self.stages)]
            connect(m, stage.results, network.inputs[k])
            m.d.comb += [
                stage.store.eq(chain.store[k]),
                stage.slot.eq(getattr(chain, f"slot_{k}")),
                stage.new.eq(chain.new[k]),
                stage.new_item.eq(getattr(chain, f"item_{k}")),
                following.valid.eq(stage.onward_valid),
                following.hop.eq(stage.onward_hop),
                following.item.eq(stage.onward),
                stage.onward_room.eq(following.room),
                under_way.ended[k].eq(stage.ended),
                under_way.ended_number[k].eq(stage.ended_number),
                self.waits[k].eq(stage.waits),
            ]
        m.d.sync += self.dropped.eq(self.dropped + sum(stage.dropped for stage in self.stages))

        most = 1 + sum(fifo.depth + 4 for fifo in self.fifos) + 8 * len(self.stages)  # results that the network holds
        new = Signal(range(len(self.stages) + 1))  # how many results left the stages in the last cycle
        found = Signal(range(2 * most))  # how many results are in the network; it may wrap for one cycle
        m.d.sync += [
            new.eq(sum(stage.results.valid & stage.results.ready for stage in self.stages)),
            found.eq(found + new - (self.results.valid & self.results.ready)),
        ]
        m.d.comb += self.idle.eq(under_way.empty & (new == 0) & (found == 0))
        return m
