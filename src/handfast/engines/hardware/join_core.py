"""The join core: segments of both windows, and the states that shift and scan them [OGE §4.1]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.segment import RamSegment, Segment, index_shape
from handfast.flow.topology import R, S

Matches = Callable[[Module, Any, Any], Any]  # adds the predicate's logic for an R and an S slot; whether it is true


class JoinCore(wiring.Component):
    """A core of the lock-step chain, with immediate scan by nested loops.

    A step takes the states of [OGE Fig. 4.1.1], one cycle each but for the scans: 4 + size of the S segment + 1 + size
    of the R segment, where both streams shift. STATE0, the reset, is the registers' initial value.

    The core has no buffer of its own. A result that is not taken is offered again, and the core stands still until it
    is taken; so no result is ever lost, whatever stands behind the core.

    Args:
        layout: The bits of tuples and results.
        matches: The predicate's logic, once for both scans.
        sizes: The slots of the R and of the S segment.
        ram: Whether the segments are in RAM, not in registers.

    Ports:
        start: A step begins: the core is in STATE1, and every other one is too.
        r_shift, s_shift: Whether the step brings a slot of the stream; constant from STATE2 to the end of the step.
        r_in, s_in: The slot that enters from the neighbour, or from outside; read in STATE2.
        r_out, s_out: The oldest slot, which the neighbour reads in STATE2.
        ready: The core is in STATE1 and waits for a step.
        suspend: Stand still, for a buffer is nearly full [OGE §4.4]; the same for all cores.
        results: The matches.
    """

    def __init__(self, *, layout: JoinLayout, matches: Matches, sizes: tuple[int, int], ram: bool = False) -> None:
        self.layout = layout
        self.matches = matches
        self.sizes = sizes
        self.ram = ram
        r, s = layout.r.shape, layout.s.shape
        super().__init__(
            {
                "start": In(1),
                "r_shift": In(1),
                "s_shift": In(1),
                "r_in": In(r),
                "s_in": In(s),
                "r_out": Out(r),
                "s_out": Out(s),
                "ready": Out(1),
                "suspend": In(1),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        form = RamSegment if self.ram else Segment
        m.submodules.r = r = form(slot=self.layout.r.shape, size=self.sizes[R])
        m.submodules.s = s = form(slot=self.layout.s.shape, size=self.sizes[S])
        new_r = Signal(self.layout.r.shape)  # input buffer register of R
        new_s = Signal(self.layout.s.shape)  # input buffer register of S
        at = Signal(index_shape(max(self.sizes)))  # the slot of the scanned segment that is compared now
        waiting = Signal()  # a result was offered in the last cycle and not taken: it may not be withdrawn

        scans_s, scans_r = Signal(), Signal()  # STATE5: the new R tuple scans S; STATE7: the new S tuple scans R
        found = Signal()  # the two slots that are compared match
        advance = Signal()  # the comparison is done with
        last = Signal()  # and it is the last one of the scan
        one_r, one_s = Signal(self.layout.r.shape), Signal(self.layout.s.shape)  # the two that are compared
        held = (one_r.seq >= one_s.low) & (one_s.seq >= one_r.low) if self.layout.compares_stamps else 1
        m.d.comb += [
            r.entering.eq(new_r),
            s.entering.eq(new_s),
            self.r_out.eq(r.leaving),
            self.s_out.eq(s.leaving),
            one_r.eq(Mux(scans_r, r.read, new_r)),
            one_s.eq(Mux(scans_r, new_s, s.read)),
            found.eq((scans_r | scans_s) & one_r.valid & one_s.valid & held & self.matches(m, one_r, one_s)),
            self.results.valid.eq(found & (~self.suspend | waiting)),
            self.results.payload.eq(self.layout.result(one_r, one_s)),
            advance.eq(Mux(found, self.results.valid & self.results.ready, ~self.suspend)),
            last.eq(at == Mux(scans_r, self.sizes[R] - 1, self.sizes[S] - 1)),
        ]
        m.d.sync += waiting.eq(self.results.valid & ~self.results.ready)

        # The segments read one cycle ahead, so they are told where `at` will be.
        ahead = Signal(range(max(self.sizes) + 1))
        m.d.comb += [ahead.eq(0), r.index.eq(ahead), s.index.eq(ahead)]
        m.d.sync += at.eq(ahead)
        with m.If(scans_r | scans_s):
            m.d.comb += ahead.eq(Mux(advance & ~last, at + 1, at))

        go = ~self.suspend
        with m.FSM():
            with m.State("STATE1"):
                m.d.comb += self.ready.eq(1)
                with m.If(self.start):
                    m.next = "STATE2"
            with m.State("STATE2"), m.If(go):
                m.d.sync += [new_r.eq(self.r_in), new_s.eq(self.s_in)]
                m.next = "STATE3"
            with m.State("STATE3"), m.If(go):  # the input buffer registers have settled
                m.next = "STATE4"
            with m.State("STATE4"), m.If(go):
                m.d.comb += r.shift.eq(self.r_shift)
                with m.If(self.r_shift):
                    m.next = "STATE5"
                with m.Else():
                    m.next = "STATE6"
            with m.State("STATE5"):
                m.d.comb += scans_s.eq(1)
                with m.If(advance & last):
                    m.next = "STATE6"
            with m.State("STATE6"), m.If(go):
                m.d.comb += s.shift.eq(self.s_shift)
                with m.If(self.s_shift):
                    m.next = "STATE7"
                with m.Else():
                    m.next = "STATE1"
            with m.State("STATE7"):
                m.d.comb += scans_r.eq(1)
                with m.If(advance & last):
                    m.next = "STATE1"
        return m
