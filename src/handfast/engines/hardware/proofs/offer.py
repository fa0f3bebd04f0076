"""An offer: a word that stands at a stream until it is taken, and for how long."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Module, Signal


def stands(m: Module, output: Any) -> None:
    """Claim that a word which is offered and not taken is offered again, unchanged."""
    waited = Signal()  # the word of the cycle before was not taken
    before = Signal.like(output.payload)  # that word
    m.d.sync += [waited.eq(output.valid & ~output.ready), before.eq(output.payload)]
    with m.If(waited):
        m.d.comb += Assert(output.valid & (output.payload == before), "a word that is offered stays until it is taken")


def count_while(m: Module, lasts: Any, most: int, *, name: str) -> Signal:
    """For how many cycles in a row something has lasted up to the cycle before; one beyond `most` it stops counting.

    What is claimed of such a count can be shown by induction: as many cycles are all that it depends on.
    """
    cycles = Signal(range(most + 2), name=name)  # the count
    with m.If(~lasts):
        m.d.sync += cycles.eq(0)
    with m.Elif(cycles <= most):
        m.d.sync += cycles.eq(cycles + 1)
    return cycles


def in_words(cycles: int) -> str:
    """So many cycles, as a claim says it."""
    return "1 cycle" if cycles == 1 else f"{cycles} cycles"
