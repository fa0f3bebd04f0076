"""A FIFO in block RAM, with a count of what it holds and a flag that it is almost full [OGE §4.1]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from handfast.errors import SpecError

MARGIN = 3
"""How many free slots or fewer raise the flag. The thesis says "only few locations left" [OGE §4.1]; its printed cycle
counts fit 3 best."""

LATENCY = 2
"""Cycles from a write until the word can be read. The thesis gives no number: block RAM read through its own register
takes 2, 1 is possible with a bypass from the write port to the read port, and 0 where a word passes an empty FIFO."""


class Fifo(wiring.Component):
    """A circular buffer of `depth` words: one write and one read in every cycle.

    A word that is written while the FIFO has no room stays with the writer (`write.ready` is low). Writers that cannot
    wait watch `almost_full` instead: after it rises, `margin` more words still find room.

    Attributes:
        width: Bits of a word.
        depth: How many words there is room for.
        margin: `almost_full` is high while at most so many slots are free; 0: only when it is full.
        latency: A word written in cycle t is offered at `read` from cycle t + latency on; 0, 1 or 2. With 0 a word that
            finds the FIFO empty passes it.
        write: Where words enter.
        read: Where they leave, oldest first.
        level: How many words are stored, those included that cannot be read yet.
        almost_full: The thesis' full flag, "set whenever the FIFO buffer is full or almost full".
    """

    def __init__(self, *, width: int, depth: int, margin: int = MARGIN, latency: int = LATENCY) -> None:
        if depth < 1:
            raise SpecError(f"The depth of a FIFO must be at least 1, not {depth!r}")
        if not 0 <= margin < depth:
            raise SpecError(
                f"The margin of a FIFO of depth {depth} must be from 0 to {depth - 1}, not {margin!r}: "
                "with no slot beyond the margin it would be almost full while empty"
            )
        if latency not in (0, 1, 2):
            raise SpecError(f"The latency of a FIFO must be 0, 1 or 2 cycles, not {latency!r}")
        self.width = width
        self.depth = depth
        self.margin = margin
        self.latency = latency
        super().__init__(
            {
                "write": In(stream.Signature(unsigned(width))),
                "read": Out(stream.Signature(unsigned(width))),
                "level": Out(range(depth + 1)),
                "almost_full": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Two address registers around a RAM with one port to write and one to read."""
        m = Module()
        m.submodules.storage = storage = memory.Memory(shape=unsigned(self.width), depth=self.depth, init=[])
        write_port = storage.write_port()
        # With a latency below 2 a word that is just being written passes by the RAM.
        read_port = storage.read_port(transparent_for=(write_port,) if self.latency < 2 else ())

        level = Signal(range(self.depth + 1))  # words stored
        write_address = Signal(range(self.depth))  # the slot that takes the next word
        read_address = Signal(range(self.depth))  # the slot of the oldest word
        next_read_address = Signal(range(self.depth))
        written, taken = Signal(), Signal()

        m.d.comb += [
            self.level.eq(level),
            self.almost_full.eq(level >= self.depth - self.margin),
            self.write.ready.eq(level != self.depth),
            written.eq(self.write.valid & self.write.ready),
            taken.eq(self._taken()),
            write_port.addr.eq(write_address),
            write_port.data.eq(self.write.payload),
            write_port.en.eq(written),
            # The RAM is asked for the word that is the oldest in the next cycle.
            next_read_address.eq(Mux(taken, self._after(read_address), read_address)),
            read_port.addr.eq(next_read_address),
            read_port.en.eq(1),
            self.read.payload.eq(read_port.data),
        ]
        m.d.sync += [level.eq(level + written - taken), read_address.eq(next_read_address)]
        with m.If(written):
            m.d.sync += write_address.eq(self._after(write_address))

        if self.latency == 0:
            m.d.comb += self.read.valid.eq((level != 0) | self.write.valid)
            with m.If(level == 0):  # the word is written to the RAM all the same, and counted only if it stays
                m.d.comb += self.read.payload.eq(self.write.payload)
        elif self.latency == 1:
            m.d.comb += self.read.valid.eq(level != 0)
        else:
            readable = Signal()  # the RAM's read register holds the oldest word
            m.d.sync += readable.eq(level != taken)
            m.d.comb += self.read.valid.eq(readable)
        return m

    def _taken(self) -> Value:
        return self.read.valid & self.read.ready

    def _after(self, address: Signal) -> Any:
        return Mux(address == self.depth - 1, 0, address + 1)
