"""The nested-loop join that the thesis compares with: one join unit for each direction [OGE §2.2.2, after Terada]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.comparisons import Comparisons, Matches
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.segment import RamSegment, Segment, index_shape
from handfast.flow.topology import R, S

UNITS = 2


class NestedLoop(wiring.Component):
    """Two whole windows and two join units, which work at the same time: new R tuples scan S, new S tuples scan R.

    Cycle by cycle, where a suspended circuit stays in its state, but for what was offered already:

    - WAIT: `ready`. A step that is offered is loaded, if nothing is suspended, and INSERT_R follows.
    - INSERT_R: the slot of R goes into its window, if the step brings one.
    - SCAN: each unit compares its new tuple, if the step brings one, with the other window, `comparisons` slots at a
      time. A group takes one cycle, or as many as it has matches, and longer where they are not taken; a unit that is
      through waits. In the cycle after both are through, be it suspended or not, the slot of S goes into its window, if
      the step brings one, and WAIT follows.

    Where both streams bring a tuple and no result waits, a step takes 3 cycles and one for each group of the longer
    window. A tuple of S meets the tuple of R that came with it, and not the other way round too. Nothing moves but by
    new tuples, so there is nothing to flush.

    It has the ports of `Handshake`, and takes its place in a circuit.

    Args:
        layout: The bits of tuples and results.
        matches: The predicate's logic.
        sizes: The slots of the R and of the S window.
        ram: Whether the windows are in RAM, not in registers.
        comparisons: How many slots a unit compares its new tuple with at a time.
    """

    def __init__(
        self,
        *,
        layout: JoinLayout,
        matches: Matches,
        sizes: tuple[int, int],
        ram: bool = True,
        comparisons: int = 1,
    ) -> None:
        self.layout = layout
        self.matches = matches
        self.sizes = sizes
        self.ram = ram
        self.comparisons = comparisons
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
        m.submodules.r = r = form(slot=self.layout.r.shape, size=self.sizes[R], at_once=self.comparisons)
        m.submodules.s = s = form(slot=self.layout.s.shape, size=self.sizes[S], at_once=self.comparisons)
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
        """A join unit: it compares a new tuple with one group of the other window after the other."""
        pairs = Comparisons(layout=self.layout, matches=self.matches, pairs=self.comparisons)
        m.submodules[f"pairs_{number}"] = pairs
        connect(m, pairs.results, flipped(self.results[number]))
        at = Signal(index_shape(window.groups), name=f"at_{number}")  # the group that is compared now
        works, advance, last = (Signal(name=f"{name}_{number}") for name in ("works", "advance", "last"))
        m.d.comb += [
            works.eq(active & ~done),
            pairs.suspend.eq(self.suspend),
            pairs.compared.eq(works.replicate(self.comparisons)),
            advance.eq(works & pairs.done),
            last.eq(at == window.groups - 1),
            window.index.eq(Mux(works, Mux(advance & ~last, at + 1, at), 0)),  # read one cycle ahead
        ]
        for k, read in enumerate(window.read):
            one_r, one_s = pair(read)
            m.d.comb += [pairs.r[k].eq(one_r), pairs.s[k].eq(one_s)]
        m.d.sync += at.eq(window.index)
        with m.If(advance & last):
            m.d.sync += done.eq(1)
