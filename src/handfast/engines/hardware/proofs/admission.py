"""What is proven of admission control: cores that obey find room, and a throttle counts what it discards."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from handfast.engines.hardware.admission import Suspend, Throttle
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.proofs.fifo import keeps_count
from handfast.engines.hardware.proofs.offer import count_while, in_words, stands


class SuspendProof(wiring.Component):
    """Cores that find a match when they like, each with its FIFO, which anything may empty; all obey one control.

    Args:
        control: With a flag for each FIFO.
        fifos: One for each core.
        suspended_within: For how many cycles in a row the cores stand still at most while all FIFOs are being read.
    """

    def __init__(self, control: Suspend, fifos: list[Fifo], *, suspended_within: int) -> None:
        self.control = control
        self.fifos = fifos
        self.suspended_within = suspended_within
        super().__init__({"found": In(len(fifos)), "drains": In(len(fifos))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.control = control = self.control
        m.d.comb += control.almost_full.eq(Cat(fifo.almost_full for fifo in self.fifos))
        for core, fifo in enumerate(self.fifos):
            m.submodules[f"fifo_{core}"] = fifo
            waiting = Signal(name=f"waiting_{core}")  # a result was offered in the cycle before and not taken
            m.d.sync += waiting.eq(fifo.write.valid & ~fifo.write.ready)
            m.d.comb += [
                fifo.write.valid.eq(self.found[core] & (~control.suspend | waiting)),
                fifo.read.ready.eq(self.drains[core]),
                Assert(~fifo.write.valid | fifo.write.ready, "no core finds its FIFO full"),
            ]
            keeps_count(m, fifo)
        suspended = count_while(m, control.suspend & self.drains.all(), self.suspended_within, name="suspended")
        m.d.comb += Assert(
            suspended <= self.suspended_within,
            f"cores stand still for at most {in_words(self.suspended_within)} in a row in which all FIFOs are read",
        )
        return m


class ThrottleProof(wiring.Component):
    """Tuples that come when they like, flags that rise when they like, a join that takes tuples at will."""

    def __init__(self, throttle: Throttle) -> None:
        self.throttle = throttle
        super().__init__({"flags": In(throttle.n), "valid": In(1), "word": In(throttle.width), "ready": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.throttle = throttle = self.throttle
        entry, output = throttle.input, throttle.output
        m.d.comb += [
            throttle.throttle.eq(self.flags),
            entry.valid.eq(self.valid),
            entry.payload.eq(self.word),
            output.ready.eq(self.ready),
        ]
        came = Signal()  # a tuple came in the cycle before and was neither admitted nor discarded
        before = Signal(throttle.width)  # that tuple
        m.d.sync += [came.eq(entry.valid & ~entry.ready), before.eq(entry.payload)]
        with m.If(came):
            m.d.comb += Assume(entry.valid & (entry.payload == before))

        count = Signal(throttle.count_bits)  # discarded tuples
        m.d.sync += count.eq(Mux(throttle.discard & ~count.all(), count + 1, count))
        admitted = output.valid & output.ready
        m.d.comb += [
            Assert(
                admitted + throttle.discard == (entry.valid & entry.ready),
                "a tuple that is taken is either admitted or discarded",
            ),
            Assert(~admitted | (output.payload == entry.payload), "a tuple is admitted unchanged"),
            Assert(~throttle.discard | self.flags.any(), "a tuple is discarded only while a core throttles"),
            Assert(
                output.valid | ~entry.valid | self.flags.any(), "a tuple is offered at once while no core throttles"
            ),
            Assert(throttle.discarded == count, "discarded tuples are counted, as far as the count goes"),
        ]
        stands(m, output)
        return m
