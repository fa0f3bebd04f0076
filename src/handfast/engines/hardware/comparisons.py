"""The comparisons of one cycle: predicate circuits side by side, whose matches leave one after the other [000 A.2]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.engines.hardware.layout import JoinLayout

Matches = Callable[[Module, Any, Any], Any]  # adds the predicate's logic for an R and an S slot; whether it is true


class Comparisons(wiring.Component):
    """Pairs of slots that are compared at the same time.

    In a cycle, the pairs that are to be compared either are done with, and other ones may come in the next cycle, or
    have to stay:

    - None matches: they are done with, unless the core is suspended.
    - Some match: those that have not left yet are offered one by one, in the order of the pairs. The pairs are done
      with in the cycle in which the last one is taken; so m matches take m cycles, if each is taken at once.
    - A suspended core begins to offer no match. One that was offered in the cycle before and not taken is offered
      still, and if it is taken now, it has left.

    There is no buffer here. No match is ever lost or given twice, whatever stands behind the core.

    Args:
        layout: The bits of tuples and results.
        matches: The predicate's logic, once for each pair.
        pairs: How many pairs there are.

    Ports:
        r, s: The pairs, which stay as they are until they are done with.
        compared: Which of them are to be compared; the others match nothing.
        suspend: Stand still.
        results: The matches.
        done: The pairs are done with in this cycle.
    """

    def __init__(self, *, layout: JoinLayout, matches: Matches, pairs: int) -> None:
        self.layout = layout
        self.matches = matches
        self.pairs = pairs
        super().__init__(
            {
                "r": In(layout.r.shape).array(pairs),
                "s": In(layout.s.shape).array(pairs),
                "compared": In(pairs),
                "suspend": In(1),
                "results": Out(stream.Signature(unsigned(layout.result_width))),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        waiting = Signal()  # a match was offered in the last cycle and not taken: it may not be withdrawn
        left = Signal(self.pairs)  # pairs that match and have not left yet
        first = Signal(self.pairs)  # the one of them that leaves next
        taken = Signal()
        found = [self._found(m, k) for k in range(self.pairs)]
        m.d.comb += [
            first.eq(left & -left),
            self.results.valid.eq(left.any() & (~self.suspend | waiting)),
            taken.eq(self.results.valid & self.results.ready),
            self.done.eq(Mux(left.any(), taken & (left == first), ~self.suspend)),
        ]
        m.d.sync += waiting.eq(self.results.valid & ~self.results.ready)
        for k in reversed(range(self.pairs)):
            with m.If(left[k]):
                m.d.comb += self.results.payload.eq(self.layout.result(self.r[k], self.s[k]))
        if self.pairs == 1:
            m.d.comb += left.eq(found[0])
        else:
            sent = Signal(self.pairs)  # pairs that have left already
            m.d.comb += [left[k].eq(found[k] & ~sent[k]) for k in range(self.pairs)]
            with m.If(self.done):
                m.d.sync += sent.eq(0)
            with m.Elif(taken):
                m.d.sync += sent.eq(sent | first)
        return m

    def _found(self, m: Module, k: int) -> Any:
        """Whether a pair matches."""
        r, s = self.r[k], self.s[k]
        held = (r.seq >= s.low) & (s.seq >= r.low) if self.layout.compares_stamps else 1
        return self.compared[k] & r.valid & s.valid & held & self.matches(m, r, s)
