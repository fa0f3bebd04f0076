"""The join core that scans both segments at the same time, S for the new R tuple, R for the new S tuple [000 A.2]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import connect, flipped

from handfast.engines.hardware.comparisons import Comparisons
from handfast.engines.hardware.join_core import JoinCore
from handfast.engines.hardware.segment import RamSegment, Segment, index_shape
from handfast.flow.topology import R, S


class EagerCore(JoinCore):
    """A core in the place of a `JoinCore`, which finds the same pairs in each step, in fewer cycles.

    R shifts before the scan and S after it. So the new R tuple is compared with the tuples of S that were there before
    the step, also with the one that leaves, and the new S tuple with those of R as they are after the step: the new R
    tuple among them, and the one that left no more. That is what STATE4 to STATE7 come to, one after the other.

    Cycle by cycle:

    - WAIT: `ready`. With `start`, R shifts, if the step brings a slot of R; the slots at `r_in` and `s_in` are loaded
      into the input registers; and SCAN follows.
    - SCAN: group by group of both segments at once, the new R slot is compared with the group of S, if the step brings
      one of R, and the new S slot with the group of R, if it brings one of S. That takes one cycle, or as many as there
      are matches in both groups together (those with S leave first), and longer where they are not taken or while the
      core is suspended; see `Comparisons`. A segment that has no more groups waits for the other one. In the cycle that
      ends the last group, S shifts, if the step brings a slot of S, and WAIT follows.

    Where no result waits, a step takes one cycle, and one for each group of the longer of the segments that it scans.

    The ports are those of `JoinCore`, but `r_shift`, `s_shift`, `r_in` and `s_in` are read in the cycle of `start`.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        form = RamSegment if self.ram else Segment
        count = self.comparisons
        m.submodules.r = r = form(slot=self.layout.r.shape, size=self.sizes[R], at_once=count)
        m.submodules.s = s = form(slot=self.layout.s.shape, size=self.sizes[S], at_once=count)
        m.submodules.pairs = pairs = Comparisons(layout=self.layout, matches=self.matches, pairs=2 * count)
        new_r = Signal(self.layout.r.shape)  # input buffer register of R
        new_s = Signal(self.layout.s.shape)  # input buffer register of S
        brings_r, brings_s = Signal(), Signal()  # registers: whether the step brings a slot of R, and of S
        most = max(r.groups, s.groups)
        at = Signal(index_shape(most))  # the group of both segments that is compared now

        after = Signal(range(most + 2))  # the one after it
        scans = Signal()  # in SCAN
        last = Signal()  # the group is the last one that the step compares
        ends = Signal()  # the step ends with this cycle
        connect(m, pairs.results, flipped(self.results))
        m.d.comb += [
            r.entering.eq(self.r_in),
            r.shift.eq(self.start & self.r_shift),
            s.entering.eq(new_s),
            s.shift.eq(ends & brings_s),
            self.r_out.eq(r.leaving),
            self.s_out.eq(s.leaving),
            pairs.suspend.eq(self.suspend),
            after.eq(at + 1),
            last.eq((~brings_r | (after >= s.groups)) & (~brings_s | (after >= r.groups))),
            ends.eq(scans & pairs.done & last),
        ]
        for k in range(count):
            m.d.comb += [
                pairs.r[k].eq(new_r),
                pairs.s[k].eq(s.read[k]),
                pairs.compared[k].eq(scans & brings_r & (after <= s.groups)),
                pairs.r[count + k].eq(r.read[k]),
                pairs.s[count + k].eq(new_s),
                pairs.compared[count + k].eq(scans & brings_s & (after <= r.groups)),
            ]
        with m.If(self.start):
            m.d.sync += [new_r.eq(self.r_in), new_s.eq(self.s_in)]
            m.d.sync += [brings_r.eq(self.r_shift), brings_s.eq(self.s_shift)]

        # The segments read one cycle ahead, so they are told where `at` will be.
        ahead = Signal(range(most + 1))
        m.d.comb += [ahead.eq(0), r.index.eq(ahead), s.index.eq(ahead)]
        m.d.sync += at.eq(ahead)
        with m.If(scans):
            m.d.comb += ahead.eq(Mux(pairs.done & ~last, after, at))

        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.ready.eq(1)
                with m.If(self.start):
                    m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += scans.eq(1)
                with m.If(ends):
                    m.next = "WAIT"
        return m
