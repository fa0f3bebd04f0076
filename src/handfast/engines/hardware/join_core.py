"""The join core: segments of both windows, and the states that shift and scan them [OGE §4.1]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.comparisons import Comparisons, Matches
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.segment import RamSegment, Segment, index_shape
from handfast.flow.topology import R, S


class JoinCore(wiring.Component):
    """A core of the lock-step chain, with immediate scan by nested loops, one stream after the other.

    Cycle by cycle, the states of [OGE Fig. 4.1.1]; STATE0, the reset, is the registers' initial value. A suspended core
    stays in its state; only in STATE5 and STATE7 what was offered already may still leave, see `Comparisons`.

    - STATE1: `ready`. With `start` on to STATE2.
    - STATE2: the slots at `r_in` and `s_in` are loaded into the input registers.
    - STATE3: nothing.
    - STATE4: R shifts, if the step brings a slot of R, and STATE5 follows; else STATE6.
    - STATE5: the new R slot is compared with the slots of S, `comparisons` of them at a time. A group takes one cycle,
      or as many as it has matches, and longer where they are not taken. STATE6 follows the last group.
    - STATE6: S shifts, if the step brings a slot of S, and STATE7 follows; else STATE1.
    - STATE7: the new S slot is compared with the slots of R in the same way. STATE1 follows the last group.

    Where both streams shift and no result waits, a step takes 5 cycles and one for each group of both segments.

    Args:
        layout: The bits of tuples and results.
        matches: The predicate's logic.
        sizes: The slots of the R and of the S segment.
        ram: Whether the segments are in RAM, not in registers.
        comparisons: How many slots a new tuple is compared with at a time.

    Ports:
        start: A step begins: the core is in STATE1, and every other one is too.
        r_shift, s_shift: Whether the step brings a slot of the stream; constant from STATE2 to the end of the step.
        r_in, s_in: The slot that enters from the neighbour, or from outside; read in STATE2.
        r_out, s_out: The oldest slot, which the neighbour reads in STATE2.
        ready: The core is in STATE1 and waits for a step.
        suspend: Stand still, for a buffer is nearly full [OGE §4.4]; the same for all cores.
        results: The matches.
    """

    def __init__(
        self,
        *,
        layout: JoinLayout,
        matches: Matches,
        sizes: tuple[int, int],
        ram: bool = False,
        comparisons: int = 1,
    ) -> None:
        self.layout = layout
        self.matches = matches
        self.sizes = sizes
        self.ram = ram
        self.comparisons = comparisons
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
        m.submodules.r = r = form(slot=self.layout.r.shape, size=self.sizes[R], at_once=self.comparisons)
        m.submodules.s = s = form(slot=self.layout.s.shape, size=self.sizes[S], at_once=self.comparisons)
        m.submodules.pairs = pairs = Comparisons(layout=self.layout, matches=self.matches, pairs=self.comparisons)
        new_r = Signal(self.layout.r.shape)  # input buffer register of R
        new_s = Signal(self.layout.s.shape)  # input buffer register of S
        most = max(r.groups, s.groups)
        at = Signal(index_shape(most))  # the group of the scanned segment that is compared now

        scans_s, scans_r = Signal(), Signal()  # STATE5: the new R tuple scans S; STATE7: the new S tuple scans R
        last = Signal()  # the group is the last one of the scan
        connect(m, pairs.results, flipped(self.results))
        m.d.comb += [
            r.entering.eq(new_r),
            s.entering.eq(new_s),
            self.r_out.eq(r.leaving),
            self.s_out.eq(s.leaving),
            pairs.suspend.eq(self.suspend),
            pairs.compared.eq((scans_r | scans_s).replicate(self.comparisons)),
            last.eq(at == Mux(scans_r, r.groups - 1, s.groups - 1)),
        ]
        for k in range(self.comparisons):
            m.d.comb += [
                pairs.r[k].eq(Mux(scans_r, r.read[k], new_r)),
                pairs.s[k].eq(Mux(scans_r, new_s, s.read[k])),
            ]

        # The segments read one cycle ahead, so they are told where `at` will be.
        ahead = Signal(range(most + 1))
        m.d.comb += [ahead.eq(0), r.index.eq(ahead), s.index.eq(ahead)]
        m.d.sync += at.eq(ahead)
        with m.If(scans_r | scans_s):
            m.d.comb += ahead.eq(Mux(pairs.done & ~last, at + 1, at))

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
                with m.If(pairs.done & last):
                    m.next = "STATE6"
            with m.State("STATE6"), m.If(go):
                m.d.comb += s.shift.eq(self.s_shift)
                with m.If(self.s_shift):
                    m.next = "STATE7"
                with m.Else():
                    m.next = "STATE1"
            with m.State("STATE7"):
                m.d.comb += scans_r.eq(1)
                with m.If(pairs.done & last):
                    m.next = "STATE1"
        return m
