"""The nested-loop join that the thesis compares with: one join unit for each direction [OGE §2.2.2, after Terada]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.join_core import Matches
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.segment import RamSegment, Segment, index_shape
from handfast.flow.topology import R, S

UNITS = 2


class NestedLoop(wiring.Component):
    """Two whole windows and two join units, which work at the same time: new R tuples scan S, new S tuples scan R.

    A step takes 3 cycles and as many as the longer of the scanned windows has slots: take it in, insert R, scan, insert
    S. So a tuple of S meets the tuple of R that came with it, and not the other way round too. Nothing moves but by new
    tuples, so there is nothing to flush.

    It has the ports of `Handshake`, and takes its place in a circuit.

    Args:
        layout: The bits of tuples and results.
        matches: The predicate's logic.
        sizes: The slots of the R and of the S window.
        ram: Whether the windows are in RAM, not in registers.
    """

    def __init__(self, *, layout: JoinLayout, matches: Matches, sizes: tuple[int, int], ram: bool = True) -> None:
        self.layout = layout
        self.matches = matches
        self.sizes = sizes
        self.ram = ram
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(layout.step.size))),
                "suspend": In(1),
                "ready": Out(1),
                "results": Out(stream.Signature(unsigned(layout.result_width))).array(UNITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        form = RamSegment if self.ram else Segment
        m.submodules.r = r = form(slot=self.layout.r.shape, size=self.sizes[R])
        m.submodules.s = s = form(slot=self.layout.s.shape, size=self.sizes[S])
        step = Signal(self.layout.step)  # the step that the units work on
        scans = Signal()  # the windows are scanned in this cycle
        done = Signal(UNITS)  # which unit has come to the end of its window
        m.d.comb += [
            self.steps.ready.eq(self.ready & ~self.suspend),
            r.entering.eq(step.r),
            s.entering.eq(step.s),
        ]
        self._unit(m, 0, s, scans & step.r_shift, done[0], lambda read: (step.r, read))
        self._unit(m, 1, r, scans & step.s_shift, done[1], lambda read: (read, step.s))

        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.ready.eq(1)
                m.d.sync += done.eq(0)
                with m.If(self.steps.valid & self.steps.ready):
                    m.d.sync += step.eq(self.steps.payload)
                    m.next = "INSERT_R"
            with m.State("INSERT_R"), m.If(~self.suspend):
                m.d.comb += r.shift.eq(step.r_shift)
                m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += scans.eq(1)
                with m.If((done[0] | ~step.r_shift) & (done[1] | ~step.s_shift)):
                    m.d.comb += scans.eq(0)
                    m.d.comb += s.shift.eq(step.s_shift)
                    m.next = "WAIT"
        return m

    def _unit(self, m: Module, number: int, window: Segment, active: Any, done: Any, pair: Any) -> None:
        """A join unit: it compares a new tuple with one slot of the other window after the other."""
        results = self.results[number]
        at = Signal(index_shape(window.size), name=f"at_{number}")  # the slot that is compared now
        waiting = Signal(name=f"waiting_{number}")  # a result was offered in the last cycle and not taken
        found, advance, last = (Signal(name=f"{name}_{number}") for name in ("found", "advance", "last"))
        one_r, one_s = pair(window.read)
        held = (one_r.seq >= one_s.low) & (one_s.seq >= one_r.low) if self.layout.compares_stamps else 1
        works = active & ~done
        m.d.comb += [
            found.eq(works & one_r.valid & one_s.valid & held & self.matches(m, one_r, one_s)),
            results.valid.eq(found & (~self.suspend | waiting)),
            results.payload.eq(self.layout.result(one_r, one_s)),
            advance.eq(works & Mux(found, results.valid & results.ready, ~self.suspend)),
            last.eq(at == window.size - 1),
            window.index.eq(Mux(works, Mux(advance & ~last, at + 1, at), 0)),  # read one cycle ahead
        ]
        m.d.sync += [at.eq(window.index), waiting.eq(results.valid & ~results.ready)]
        with m.If(advance & last):
            m.d.sync += done.eq(1)
