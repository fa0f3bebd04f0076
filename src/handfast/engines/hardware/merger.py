"""Mergers: the thesis' three states, up to eight inputs with an arbiter, and two without a buffer [OGE §4.2, §6.2]."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.fifo import LATENCY, MARGIN, Fifo
from handfast.errors import SpecError

CYCLES = 3
"""The length of the merger's loop: STATE1, STATE2, STATE3 [OGE Fig. 4.2.1]."""

WRITES = (1, 2)
"""In which cycles of the loop the words of the first and the second port are written: STATE2 and STATE3. The printed
cycle counts of the thesis fit a loop of 4 cycles with writes in 1 and 3 best, which its text does not explain."""

FAN_IN = range(2, 9)
"""The numbers of inputs that are built in [000 A.4]."""


class Merger(wiring.Component):
    """Two in, one out, as in the thesis: both ports are read at once, then written to the FIFO one after the other.

    STATE1 reads the two input ports into registers, unless the FIFO is almost full [OGE §4.4]; STATE2 writes the word
    of the first port and STATE3 that of the second, if they are valid; and so on for ever. With a margin of at least 1
    a write always finds room; with a margin of 0 it may have to wait in its state.

    Attributes:
        depth, margin, latency: Of the FIFO.
        cycles: The length of the loop.
        writes: The cycles in which the two words are written; 0 is the cycle that reads the ports.
        fifo: The output buffer.
        inputs: The two ports.
        output: What the FIFO gives.
        almost_full: The FIFO's flag.
    """

    def __init__(
        self,
        *,
        width: int,
        depth: int,
        margin: int = MARGIN,
        latency: int = LATENCY,
        cycles: int = CYCLES,
        writes: tuple[int, int] = WRITES,
    ) -> None:
        if not 0 < writes[0] < writes[1] < cycles:
            raise SpecError(
                f"A merger with a loop of {cycles} cycles writes in two of the cycles from 1 to {cycles - 1}, "
                f"one after the other, not in {writes!r}"
            )
        self.width = width
        self.cycles = cycles
        self.writes = writes
        self.depth = depth
        self.margin = margin
        self.latency = latency
        self.fifo = Fifo(width=width, depth=depth, margin=margin, latency=latency)
        super().__init__(_signature(width, fan_in=2))

    def elaborate(self, platform: Any) -> Module:
        """A counter of states, and for each port a register with its valid flag."""
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        connect(m, flipped(self.output), fifo.read)
        m.d.comb += self.almost_full.eq(fifo.almost_full)

        state = Signal(range(self.cycles))  # 0 is STATE1
        words = [Signal(self.width, name=f"word{port}") for port in range(2)]  # what was read from the ports
        valid = [Signal(name=f"valid{port}") for port in range(2)]  # whether there was a word, not yet written
        waits = Signal()  # the FIFO has no room for the word of this state
        m.d.comb += waits.eq(fifo.write.valid & ~fifo.write.ready)

        with m.If(~waits):
            m.d.sync += state.eq(Mux(state == self.cycles - 1, 0, state + 1))
        with m.If((state == 0) & ~fifo.almost_full):
            for port in range(2):
                m.d.comb += self.inputs[port].ready.eq(1)
                m.d.sync += [words[port].eq(self.inputs[port].payload), valid[port].eq(self.inputs[port].valid)]
        for port, write in enumerate(self.writes):
            with m.If(state == write):
                m.d.comb += [fifo.write.valid.eq(valid[port]), fifo.write.payload.eq(words[port])]
                with m.If(~waits):
                    m.d.sync += valid[port].eq(0)
        return m


class RoundRobinMerger(wiring.Component):
    """Two to eight in, one out: a round-robin arbiter lets one word into the FIFO in every cycle [000 A.4].

    The token lies with one input. The first valid input from there on is let in, and the token moves on to the one
    after it: a word waits for at most `fan_in` - 1 others.

    Attributes:
        depth, margin, latency: Of the FIFO.
        fan_in: How many inputs there are.
        fifo: The output buffer.
        inputs: The inputs.
        output: What the FIFO gives.
        almost_full: The FIFO's flag.
    """

    def __init__(
        self, *, width: int, depth: int, fan_in: int = 2, margin: int = MARGIN, latency: int = LATENCY
    ) -> None:
        if fan_in not in FAN_IN:
            raise SpecError(f"A merger has from {FAN_IN[0]} to {FAN_IN[-1]} inputs, not {fan_in!r}")
        self.width = width
        self.fan_in = fan_in
        self.depth = depth
        self.margin = margin
        self.latency = latency
        self.fifo = Fifo(width=width, depth=depth, margin=margin, latency=latency)
        super().__init__(_signature(width, fan_in))

    def elaborate(self, platform: Any) -> Module:
        """The arbiter before the FIFO."""
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        connect(m, flipped(self.output), fifo.read)
        m.d.comb += self.almost_full.eq(fifo.almost_full)
        _arbitrate(m, list(self.inputs), fifo.write)
        return m


class RegisterMerger(wiring.Component):
    """Two to eight in, one out: a round-robin arbiter before a single register.

    A register that is emptied takes its next word in the same cycle, so a word passes in every cycle, after one cycle.

    Attributes:
        fan_in: How many inputs there are.
        inputs: The inputs.
        output: What the register holds.
    """

    def __init__(self, *, width: int, fan_in: int = 2) -> None:
        if fan_in not in FAN_IN:
            raise SpecError(f"A merger has from {FAN_IN[0]} to {FAN_IN[-1]} inputs, not {fan_in!r}")
        self.width = width
        self.fan_in = fan_in
        entry = stream.Signature(unsigned(width))
        super().__init__({"inputs": In(entry).array(fan_in), "output": Out(entry)})

    def elaborate(self, platform: Any) -> Module:
        """The arbiter before the register."""
        m = Module()
        word = Signal(self.width)  # the register
        valid = Signal()  # whether it holds a word
        entry = stream.Signature(unsigned(self.width)).create()  # what the arbiter lets in
        m.d.comb += [self.output.valid.eq(valid), self.output.payload.eq(word), entry.ready.eq(self._free(valid))]
        with m.If(entry.ready):
            m.d.sync += [word.eq(entry.payload), valid.eq(entry.valid)]
        _arbitrate(m, list(self.inputs), entry)
        return m

    def _free(self, valid: Signal) -> Value:
        return ~valid | self.output.ready


class BufferlessMerger(wiring.Component):
    """Two in, one out, without a FIFO: two input registers and one output register [OGE §6.2.2].

    Where both input registers hold a word they take turns; the thesis does not say which goes first. A register that is
    emptied takes its next word in the same cycle, so a word passes in every cycle, after two cycles.

    Attributes:
        inputs: The two ports.
        output: What the output register holds.
    """

    def __init__(self, *, width: int) -> None:
        self.width = width
        entry = stream.Signature(unsigned(width))
        super().__init__({"inputs": In(entry).array(2), "output": Out(entry)})

    def elaborate(self, platform: Any) -> Module:
        """Registers with valid flags, and whose turn it is."""
        m = Module()
        words = [Signal(self.width, name=f"word{port}") for port in range(2)]  # input registers
        valid = [Signal(name=f"valid{port}") for port in range(2)]  # whether they hold a word
        result = Signal(self.width)  # output register
        result_valid = Signal()  # whether it holds a word
        turn = Signal()  # 1: the second port goes first where both have a word
        free, second = Signal(), Signal()
        m.d.comb += [
            self.output.valid.eq(result_valid),
            self.output.payload.eq(result),
            free.eq(~result_valid | self.output.ready),
            second.eq(self._second_goes(turn, valid)),
        ]
        with m.If(free):
            m.d.sync += [result.eq(Mux(second, words[1], words[0])), result_valid.eq(valid[0] | valid[1])]
            with m.If(valid[0] | valid[1]):
                m.d.sync += turn.eq(~second)
        for port in range(2):
            entry = self.inputs[port]
            leaves = free & (second if port else ~second)
            m.d.comb += entry.ready.eq(~valid[port] | leaves)
            with m.If(entry.ready):
                m.d.sync += [words[port].eq(entry.payload), valid[port].eq(entry.valid)]
        return m

    def _second_goes(self, turn: Signal, valid: list[Signal]) -> Value:
        return valid[1] & (turn | ~valid[0])


def _arbitrate(m: Module, inputs: list[Any], entry: Any) -> None:
    """Let one valid input after the other into `entry`, a word in every cycle.

    A token lies with one input. The first valid input from there on is let in, and the token moves to the one after it.
    """
    fan_in = len(inputs)
    token = Signal(range(fan_in))  # the input that goes first
    first = Signal(range(fan_in))  # the first valid input from the token on
    with m.Switch(token):
        for place in range(fan_in):
            with m.Case(place):
                # Where several apply, the last assignment counts.
                for number in [(place + step) % fan_in for step in reversed(range(fan_in))]:
                    with m.If(inputs[number].valid):
                        m.d.comb += first.eq(number)
    with m.Switch(first):
        for number, each in enumerate(inputs):
            with m.Case(number):
                m.d.comb += [
                    entry.valid.eq(each.valid),
                    entry.payload.eq(each.payload),
                    each.ready.eq(entry.ready),
                ]
    with m.If(entry.valid & entry.ready):
        m.d.sync += token.eq(_behind(first, fan_in))


def _behind(place: Signal, fan_in: int) -> Value:
    return Mux(place == fan_in - 1, 0, place + 1)


def _signature(width: int, fan_in: int) -> dict[str, Any]:
    entry = stream.Signature(unsigned(width))
    return {"inputs": In(entry).array(fan_in), "output": Out(entry), "almost_full": Out(1)}
