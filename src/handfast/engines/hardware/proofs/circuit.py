"""What is proven of a whole circuit: cores find room, idle means that all results are out, and no step waits long."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.layout import JoinLayout, TupleLayout
from handfast.engines.hardware.proofs.offer import count_while, in_words, stands
from handfast.engines.hardware.shape import CircuitShape

LAYOUT = JoinLayout(TupleLayout((), 1), TupleLayout((), 1))
"""Slots with nothing but a valid flag and one bit; steps bring what they like, so any two slots match or do not."""


class CircuitProof(wiring.Component):
    """A circuit into which any steps come and in which all that is valid matches; its results are taken at will.

    Args:
        shape: Of the circuit.
        unrefused: Whether its margin is meant to spare the cores every wait.
        within: For how many cycles in a row, all with results taken, a step waits at most.
        idle_within: After how many cycles in a row without a step, all with results taken, the circuit is idle; None
            claims nothing.
    """

    def __init__(self, shape: CircuitShape, *, unrefused: bool, within: int, idle_within: int | None = None) -> None:
        self.circuit = shape.build(LAYOUT, lambda m, r, s: Const(1))
        self.unrefused = unrefused
        self.within = within
        self.idle_within = idle_within
        super().__init__({"valid": In(1), "step": In(LAYOUT.step.size), "ready": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.circuit = circuit = self.circuit
        found = circuit.chain.results
        m.d.comb += [
            circuit.steps.valid.eq(self.valid),
            circuit.steps.payload.eq(self.step),
            circuit.results.ready.eq(self.ready),
        ]
        starts = circuit.steps.valid & circuit.steps.ready
        room = sum(fifo.depth + 4 for fifo in circuit.fifos) + 8 * len(found)  # more than there is
        inside = Signal(range(room))  # results that have left the cores and not the circuit
        m.d.sync += inside.eq(
            inside + sum(each.valid & each.ready for each in found) - (circuit.results.valid & self.ready)
        )
        rests = Signal()  # the circuit was idle in the cycle before, and no step came
        m.d.sync += rests.eq(circuit.idle & ~starts)
        waited = count_while(m, self.valid & ~starts & self.ready, self.within, name="waited")
        m.d.comb += [
            Assert(~circuit.idle | (inside == 0), "an idle circuit has given all results"),
            Assert(~rests | circuit.idle, "a circuit stays idle until a step comes"),
            Assert(
                waited <= self.within, f"a step waits for at most {in_words(self.within)} in a row with results taken"
            ),
        ]
        if self.idle_within is not None:
            quiet = count_while(m, ~self.valid & self.ready, self.idle_within, name="quiet")
            m.d.comb += Assert(
                (quiet <= self.idle_within) | circuit.idle,
                f"without steps it is idle after {in_words(self.idle_within)} in a row with results taken",
            )
        if self.unrefused:
            for each in found:
                m.d.comb += Assert(~each.valid | each.ready, "no core waits for room for a result")
        stands(m, circuit.results)
        return m
