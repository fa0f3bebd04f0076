"""Admission control: suspend the cores, discard new tuples at the entrance, or drop results [OGE §4.4, 000 A.3]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.errors import SpecError

DELAY = 1
"""Flip-flops between the flags and the cores: "the result is stored in a one-bit flip-flop" [OGE §4.4]."""

COUNT_BITS = 32
"""Bits of the count of what is discarded or dropped."""


class Suspend(wiring.Component):
    """While any FIFO is almost full, all join cores stand still, and no new tuple is taken [OGE §4.4].

    Attributes:
        n: How many flags there are.
        delay: Flip-flops in a row; each lets the cores write for one cycle longer after a flag has risen.
        almost_full: The flags of all FIFOs.
        suspend: What every join core is told.
    """

    def __init__(self, *, n: int, delay: int = DELAY) -> None:
        if delay < 1:
            raise SpecError(f"The delay of a suspension must be at least 1 flip-flop, not {delay!r}")
        self.n = n
        self.delay = delay
        super().__init__({"almost_full": In(n), "suspend": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        """All flags together, behind the flip-flops."""
        m = Module()
        seen = self.almost_full.any()
        for step in range(self.delay):
            known = Signal(name=f"known{step}")  # whether any FIFO was almost full so many cycles ago
            m.d.sync += known.eq(seen)
            seen = known
        m.d.comb += self.suspend.eq(seen)
        return m


class Throttle(wiring.Component):
    """At the entrance of one stream: while a core throttles, new tuples are discarded and counted [000 A.3].

    It stands before the tuples are stamped, so a discarded tuple was never part of the join. A tuple that was already
    offered to the join stays offered: only what comes later is discarded.

    Attributes:
        n: How many flags there are.
        count_bits: Bits of the count, which stays at its highest value when it gets there.
        throttle: A flag from each core whose FIFO is close to full.
        input: New tuples from outside.
        output: Those that are admitted.
        discard: High in a cycle in which the tuple at `input` is discarded.
        discarded: How many were.
    """

    def __init__(self, *, n: int, width: int, count_bits: int = COUNT_BITS) -> None:
        self.n = n
        self.width = width
        self.count_bits = count_bits
        entry = stream.Signature(unsigned(width))
        super().__init__(
            {
                "throttle": In(n),
                "input": In(entry),
                "output": Out(entry),
                "discard": Out(1),
                "discarded": Out(count_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The tuple goes on, or nowhere."""
        m = Module()
        offered = Signal()  # the tuple at the input was offered to the join in the cycle before, and not taken
        count = Signal(self.count_bits)  # tuples discarded so far
        closed = Signal()
        m.d.comb += [
            closed.eq(self._closed(offered)),
            self.output.valid.eq(self.input.valid & ~closed),
            self.output.payload.eq(self.input.payload),
            self.input.ready.eq(closed | self.output.ready),
            self.discard.eq(self.input.valid & closed),
            self.discarded.eq(count),
        ]
        m.d.sync += offered.eq(self.output.valid & ~self.output.ready)
        with m.If(self.discard & ~count.all()):
            m.d.sync += count.eq(count + 1)
        return m

    def _closed(self, offered: Value) -> Value:
        return self.throttle.any() & ~offered


class Drop(wiring.Component):
    """Behind the FIFOs of the cores: results that wait there are dropped and counted, to make room [000 A.3].

    The oldest result of a FIFO is dropped in a cycle in which the FIFO is crowded and the network does not take it. It
    was offered to the network then, and another one is offered in its place: no merger remembers what it did not take.

    Attributes:
        n: How many FIFOs there are.
        count_bits: Bits of the count, which stays at its highest value when it gets there.
        crowded: By FIFO: it is close to full, and its core has another result for it.
        inputs: The oldest result of each FIFO.
        outputs: The same, to the network.
        drops: How many are dropped in this cycle.
        dropped: How many were.
    """

    def __init__(self, *, n: int, width: int, count_bits: int = COUNT_BITS) -> None:
        self.n = n
        self.width = width
        self.count_bits = count_bits
        entry = stream.Signature(unsigned(width))
        super().__init__(
            {
                "crowded": In(n),
                "inputs": In(entry).array(n),
                "outputs": Out(entry).array(n),
                "drops": Out(range(n + 1)),
                "dropped": Out(count_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A result goes on, or nowhere."""
        m = Module()
        dropped = Signal(self.n)  # by FIFO: its oldest result is dropped
        count = Signal(self.count_bits)  # results dropped so far
        total = Signal(self.count_bits + 1)
        for k, (entry, output) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            m.d.comb += [
                output.valid.eq(entry.valid),
                output.payload.eq(entry.payload),
                entry.ready.eq(output.ready | self.crowded[k]),
                dropped[k].eq(entry.valid & self.crowded[k] & ~output.ready),
            ]
        m.d.comb += [
            self.drops.eq(sum(dropped[k] for k in range(self.n))),
            self.dropped.eq(count),
            total.eq(count + self.drops),
        ]
        m.d.sync += count.eq(Mux(total[-1], (1 << self.count_bits) - 1, total))
        return m


def throttle_margin(*, r_segment: int, s_segment: int) -> int:
    """The margin of a core's FIFO whose flag throttles: it has no room for all matches of one more tuple [000 A.3].

    The flag is to rise where fewer slots are free than the longer of the two segments has tuples. This counts on one
    tuple in the core at a time; cores that take tuples of both streams together need room for both scans.
    """
    return max(r_segment, s_segment) - 1
