"""An offer: a word that stands at a stream until it is taken, and how long it waits."""

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


def count_while(m: Module, lasts: Any, happens: Any, most: int, *, name: str) -> Signal:
    """In how many cycles something has happened while something else lasted; it stops counting one beyond `most`."""
    times = Signal(range(most + 2), name=name)  # the cycles before this one
    with m.If(~lasts):
        m.d.sync += times.eq(0)
    with m.Elif(happens & (times <= most)):
        m.d.sync += times.eq(times + 1)
    return times
