"""The handshake: a chain of join cores in lock step that R and S pass in opposite directions [OGE §4], [000 A.2]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.comparisons import Matches
from handfast.engines.hardware.eager_core import EagerCore
from handfast.engines.hardware.join_core import JoinCore
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.options import EAGER, IMMEDIATE
from handfast.flow.topology import ChainTopology, R, S


class Handshake(wiring.Component):
    """The chain: all cores start a step together, and a step starts when all have finished the one before.

    Args:
        topology: Who is whose neighbour, and where the streams enter.
        layout: The bits of tuples and results.
        matches: The predicate's circuit.
        sizes: The slots of the R and of the S segment of a core.
        ram: Whether the segments are in RAM, not in registers.
        comparisons: How many slots a core compares a new tuple with at a time.
        scan: "immediate", by `JoinCore`, or "eager", by `EagerCore`.

    Ports:
        steps: What enters; a step is taken when all cores wait for one and none is suspended.
        suspend: All cores stand still.
        ready: All cores wait for a step: all results of the steps so far have left the chain.
        results: The matches, by core.
    """

    def __init__(
        self,
        *,
        topology: ChainTopology,
        layout: JoinLayout,
        matches: Matches,
        sizes: tuple[int, int],
        ram: bool = False,
        comparisons: int = 1,
        scan: str = IMMEDIATE,
    ) -> None:
        self.topology = topology
        self.layout = layout
        self.sizes = sizes
        self.scan = scan
        core = EagerCore if scan == EAGER else JoinCore
        self.cores = [
            core(layout=layout, matches=matches, sizes=sizes, ram=ram, comparisons=comparisons)
            for _ in range(topology.cores)
        ]
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(layout.step.size))),
                "suspend": In(1),
                "ready": Out(1),
                "results": Out(stream.Signature(unsigned(layout.result_width))).array(topology.cores),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        start = Signal()
        m.d.comb += [
            self.ready.eq(Cat(core.ready for core in self.cores).all()),
            self.steps.ready.eq(self.ready & ~self.suspend),
            start.eq(self.steps.valid & self.steps.ready),
        ]
        if self.scan == EAGER:
            step = self.layout.step(self.steps.payload)  # the cores read it when they start
        else:
            step = Signal(self.layout.step)  # the step that the cores work on
            with m.If(start):
                m.d.sync += step.eq(self.steps.payload)
        for k, core in enumerate(self.cores):
            m.submodules[f"core_{k}"] = core
            from_left = self.topology.neighbour(k, self.topology.entry(R))
            from_right = self.topology.neighbour(k, self.topology.entry(S))
            m.d.comb += [
                core.start.eq(start),
                core.suspend.eq(self.suspend),
                core.r_shift.eq(step.r_shift),
                core.s_shift.eq(step.s_shift),
                core.r_in.eq(step.r if from_left is None else self.cores[from_left].r_out),
                core.s_in.eq(step.s if from_right is None else self.cores[from_right].s_out),
            ]
            wiring.connect(m, core.results, wiring.flipped(self.results[k]))
        return m
