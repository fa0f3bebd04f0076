"""Two clocks with an integer ratio: a chain that is slower than the merging network behind it [000 A.4]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import EnableInserter, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.nested_loop import NestedLoop
from handfast.errors import SpecError


class SlowChain(wiring.Component):
    """A chain that works in one of `ratio` cycles only, in the place of one that works in each.

    It works in cycles 0, `ratio`, 2 · `ratio`, and so on, and does in them what the chain does in cycles 0, 1, 2. In a
    cycle between them nothing changes in it: it takes no step, it offers no result, and it does not see `suspend`. So
    what is around it sees what it would see of a slower clock, and what is clocked is the same.

    In a circuit there is one clock with an enable for the chain, whose paths have `ratio` cycles time.

    Args:
        chain: The join cores, or the two units of the nested-loop join.
        ratio: How many cycles a cycle of the chain takes.

    The ports are those of the chain.
    """

    def __init__(self, chain: Handshake | NestedLoop, *, ratio: int) -> None:
        if ratio < 2:
            raise SpecError(f"A chain that is slower than the network takes at least 2 of its cycles, not {ratio!r}")
        self.chain = chain
        self.ratio = ratio
        self.layout = chain.layout
        self.sizes = chain.sizes
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(chain.layout.step.size))),
                "suspend": In(1),
                "ready": Out(1),
                "results": Out(stream.Signature(unsigned(chain.layout.result_width))).array(len(chain.results)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        chain = self.chain
        left = Signal(range(self.ratio))  # cycles until the chain works again
        works = Signal()  # it works in this cycle
        m.submodules.chain = EnableInserter(works)(chain)
        m.d.comb += [
            works.eq(left == 0),
            self.ready.eq(chain.ready),
            chain.suspend.eq(self.suspend),
            chain.steps.valid.eq(self.steps.valid),
            chain.steps.payload.eq(self.steps.payload),
            self.steps.ready.eq(chain.steps.ready & works),
        ]
        m.d.sync += left.eq(Mux(works, self.ratio - 1, left - 1))
        for found, given in zip(chain.results, self.results, strict=True):
            m.d.comb += [
                given.valid.eq(found.valid & works),
                given.payload.eq(found.payload),
                found.ready.eq(given.ready),
            ]
        return m
