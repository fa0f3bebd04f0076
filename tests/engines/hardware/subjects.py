"""Small circuits that the tools are tried on."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """A FIFO of a few words in registers; `broken` forgets to look whether it is full."""

    def __init__(self, *, width: int, depth: int, broken: bool = False) -> None:
        self.width = width
        self.depth = depth
        self.broken = broken
        super().__init__(
            {
                "write": In(stream.Signature(unsigned(width))),
                "read": Out(stream.Signature(unsigned(width))),
                "level": Out(range(depth + 2)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        words = [Signal(self.width, name=f"word_{place}") for place in range(self.depth)]  # the oldest in place 0
        level = self.level  # how many of them hold a word
        takes, gives = Signal(), Signal()
        m.d.comb += [
            self.write.ready.eq(1 if self.broken else level < self.depth),
            self.read.valid.eq(level > 0),
            self.read.payload.eq(words[0]),
            takes.eq(self.write.valid & self.write.ready),
            gives.eq(self.read.valid & self.read.ready),
        ]
        m.d.sync += level.eq(level + takes - gives)
        with m.If(gives):
            m.d.sync += [word.eq(after) for word, after in pairwise(words)]
        with m.If(takes):
            for place, word in enumerate(words):
                with m.If(level - gives == place):
                    m.d.sync += word.eq(self.write.payload)
        m.d.comb += Assert(level <= self.depth, "the queue holds more than it has room for")
        return m


class Countdown(wiring.Component):
    """Takes a number, is busy for so many cycles, and gives nothing."""

    def __init__(self) -> None:
        super().__init__({"write": In(stream.Signature(unsigned(16))), "idle": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        left = Signal(16)  # cycles
        m.d.comb += [self.idle.eq(left == 0), self.write.ready.eq(self.idle)]
        with m.If(~self.idle):
            m.d.sync += left.eq(left - 1)
        with m.Elif(self.write.valid):
            m.d.sync += left.eq(self.write.payload)
        return m


class Row(wiring.Component):
    """Two queues, one behind the other."""

    def __init__(self, *, width: int, depth: int) -> None:
        self.queues = [Queue(width=width, depth=depth) for _ in range(2)]
        super().__init__(
            {"write": In(stream.Signature(unsigned(width))), "read": Out(stream.Signature(unsigned(width)))}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.first, m.submodules.second = first, second = self.queues
        wiring.connect(m, wiring.flipped(self.write), first.write)
        wiring.connect(m, first.read, second.write)
        wiring.connect(m, second.read, wiring.flipped(self.read))
        return m


class Scramble(wiring.Component):
    """Registers, a memory and streams, connected at random: what a simulator could get wrong, without any meaning."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        random = Random(seed)
        self.widths = [random.choice([1, 3, 8, 17, 32, 33, 64, 65, 100, 130]) for _ in range(4)]
        super().__init__(
            {
                "inputs": In(stream.Signature(unsigned(self.widths[0]))).array(2),
                "output": Out(stream.Signature(unsigned(self.widths[1]))),
                "turn": In(2),
                "wide": Out(self.widths[2]),
                "narrow": Out(signed(7)),
            }
        )
        self.registers = [
            Signal(random.choice(self.widths), init=random.getrandbits(1), name=f"r{number}") for number in range(6)
        ]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        random = Random(self.seed + 1)
        m.submodules.memory = memory = Memory(shape=unsigned(self.widths[3]), depth=8, init=[1, 0, 1])
        write, read = memory.write_port(), memory.read_port()
        sources = [
            *self.registers,
            self.turn,
            read.data,
            *(signal for each in self.inputs for signal in (each.payload, each.valid)),
            self.output.ready,
        ]

        def value(depth: int = 3) -> Value:
            if depth == 0:
                return random.choice(sources)
            a, b, c = (value(depth - 1) for _ in range(3))
            return random.choice(
                [
                    a + b,
                    a - b,
                    a & b,
                    a ^ b,
                    ~a,
                    Mux(a[0], b, c),
                    a << b[:3],
                    a >> b[:2],
                    a == b,
                    a < b,
                    Cat(a, b),
                    a.as_signed() * b[:4],
                ]
            )

        for register in self.registers:
            with m.If(value(1).any() | self.turn[0]):
                m.d.sync += register.eq((register << 1) + value() + 1)
        m.d.comb += [
            write.en.eq(value(1)[0]),
            write.addr.eq(value(2)),
            write.data.eq(value()),
            read.addr.eq(value(2)),
            self.wide.eq(value()),
            self.narrow.eq(value()),
            self.output.valid.eq(self.registers[0][0] ^ self.turn[0]),
            self.output.payload.eq(Cat(*self.registers)),
        ]
        for place, each in enumerate(self.inputs):
            m.d.comb += each.ready.eq(self.registers[place + 1][0] | self.turn[1])
        return m
