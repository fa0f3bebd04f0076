"""The merging network as a tree of mergers: the results of all cores as one stream [OGE §4.3, 000 A.4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.fifo import LATENCY, MARGIN, Fifo
from handfast.engines.hardware.merger import CYCLES, FAN_IN, WRITES, BufferlessMerger, Merger, RoundRobinMerger
from handfast.errors import SpecError

MergerKind = Literal["states", "round_robin"]
AnyMerger = Merger | RoundRobinMerger | BufferlessMerger


class TreeNetwork(wiring.Component):
    """n streams of results as one, through mergers with a FIFO each.

    The inputs are taken in groups of `fan_in`, a merger for each; the outputs of these mergers likewise, until one is
    left, the root. Where the inputs do not fill the last group of a level, its merger has an input that nothing comes
    from. One input alone needs no merger.

    Attributes:
        n: How many inputs there are.
        depth: Slots of every FIFO, or one number for each level from the root on [OGE Table 5.1].
        margin: A FIFO is almost full while at most so many slots are free.
        latency: Cycles from a write into a FIFO until the word can be read.
        merger: "states", the thesis' merger of two inputs [OGE §4.2], or "round_robin" [000 A.4].
        fan_in: Inputs of a merger; 2 where the merger is the thesis'.
        cycles, writes: The loop of the thesis' merger.
        cycles_per_result: The least number of cycles from one result to the next in the output channel. The thesis
            names its bandwidth as a limit but gives no number; its printed cycle counts force 4.
        mergers: Every merger, by level from the root on, in each level from the first input on.
        fifos: Their FIFOs, in the same order.
        inputs: A stream of results from each core.
        output: The root's output.
        almost_full: Whether any FIFO is almost full.
    """

    def __init__(
        self,
        *,
        n: int,
        width: int,
        depth: int | Sequence[int],
        margin: int = MARGIN,
        latency: int = LATENCY,
        merger: MergerKind = "states",
        fan_in: int = 2,
        cycles: int = CYCLES,
        writes: tuple[int, int] = WRITES,
        cycles_per_result: int = 1,
    ) -> None:
        if merger == "states" and fan_in != 2:
            raise SpecError(f"The merger of three states has 2 inputs, not {fan_in!r}; take merger='round_robin'")
        if merger not in ("states", "round_robin"):
            raise SpecError(f"The merger of a tree is 'states' or 'round_robin', not {merger!r}")
        levels = level_sizes(n, fan_in)
        depths = [depth] * len(levels) if isinstance(depth, int) else list(depth)
        if len(depths) != len(levels):
            raise SpecError(f"A tree over {n} inputs has {len(levels)} levels of FIFOs, not {len(depths)}")
        self.n = n
        self.width = width
        self.depth = depth
        self.margin = margin
        self.latency = latency
        self.merger = merger
        self.fan_in = fan_in
        self.cycles = cycles
        self.writes = writes
        self.cycles_per_result = cycles_per_result

        def make(level: int) -> AnyMerger:
            shape = {"width": width, "depth": depths[level], "margin": margin, "latency": latency}
            if merger == "states":
                return Merger(**shape, cycles=cycles, writes=writes)
            return RoundRobinMerger(**shape, fan_in=fan_in)

        self._levels = [[make(level) for _ in range(size)] for level, size in enumerate(levels)]
        self._channel = OutputChannel(width=width, cycles_per_result=cycles_per_result)
        self.mergers: list[Any] = [each for level in self._levels for each in level]
        self.fifos: list[Fifo] = [each.fifo for each in self.mergers]
        super().__init__(network_signature(n, width))

    def elaborate(self, platform: Any) -> Module:
        """The mergers and their connections, and the output channel behind the root."""
        m = Module()
        m.submodules.channel = self._channel
        root = connect_levels(m, [flipped(each) for each in self.inputs], self._levels)
        connect(m, root, self._channel.input)
        connect(m, self._channel.output, flipped(self.output))
        if self.fifos:
            m.d.comb += self.almost_full.eq(Cat(fifo.almost_full for fifo in self.fifos).any())
        return m


class BufferlessTree(wiring.Component):
    """n streams as one through mergers without a FIFO: it only merges and stores nothing [OGE §6.2.2].

    Attributes:
        n: How many inputs there are.
        inputs: The streams.
        output: The root's output.
    """

    def __init__(self, *, n: int, width: int) -> None:
        self.n = n
        self.width = width
        self._levels = [[BufferlessMerger(width=width) for _ in range(size)] for size in level_sizes(n, 2)]
        entry = stream.Signature(unsigned(width))
        super().__init__({"inputs": In(entry).array(n), "output": Out(entry)})

    def elaborate(self, platform: Any) -> Module:
        """The mergers and their connections."""
        m = Module()
        root = connect_levels(m, [flipped(each) for each in self.inputs], self._levels)
        connect(m, root, flipped(self.output))
        return m


class OutputChannel(wiring.Component):
    """A channel that takes one result every `cycles_per_result` cycles at most [OGE §4.4].

    Attributes:
        cycles_per_result: 1 lets everything pass as it comes.
        input: What the merging network gives.
        output: What leaves the chip.
    """

    def __init__(self, *, width: int, cycles_per_result: int) -> None:
        if cycles_per_result < 1:
            raise SpecError(f"The cycles that a result takes must be at least 1, not {cycles_per_result!r}")
        self.cycles_per_result = cycles_per_result
        entry = stream.Signature(unsigned(width))
        super().__init__({"input": In(entry), "output": Out(entry)})

    def elaborate(self, platform: Any) -> Module:
        """A countdown after each result, where there is something to wait for."""
        m = Module()
        if self.cycles_per_result == 1:
            connect(m, flipped(self.input), flipped(self.output))
            return m
        countdown = Signal(range(self.cycles_per_result))  # cycles until the next result may pass
        m.d.comb += [
            self.output.valid.eq(self.input.valid & (countdown == 0)),
            self.output.payload.eq(self.input.payload),
            self.input.ready.eq(self.output.ready & (countdown == 0)),
        ]
        with m.If(countdown != 0):
            m.d.sync += countdown.eq(countdown - 1)
        with m.Elif(self.output.valid & self.output.ready):
            m.d.sync += countdown.eq(self.cycles_per_result - 1)
        return m


def network_signature(n: int, width: int) -> dict[str, Any]:
    """The ports of every merging network, whatever is inside."""
    entry = stream.Signature(unsigned(width))
    return {"inputs": In(entry).array(n), "output": Out(entry), "almost_full": Out(1)}


def level_sizes(n: int, fan_in: int) -> list[int]:
    """How many mergers each level of a tree over n inputs has, from the root on."""
    if n < 1:
        raise SpecError(f"The number of inputs of a merging network must be at least 1, not {n!r}")
    if fan_in not in FAN_IN:
        raise SpecError(f"A merger has from {FAN_IN[0]} to {FAN_IN[-1]} inputs, not {fan_in!r}")
    sizes: list[int] = []
    while n > 1:
        n = -(-n // fan_in)
        sizes.insert(0, n)
    return sizes


def connect_levels(m: Module, streams: list[Any], levels: Sequence[Sequence[Any]]) -> Any:
    """Connect streams to the mergers of the last level, those to the level above, and return the root's output."""
    for number in reversed(range(len(levels))):
        for place, merger in enumerate(levels[number]):
            m.submodules[f"merger{number}_{place}"] = merger
            fan_in = len(merger.inputs)
            # An input that is left out keeps its valid flag low.
            for source, port in zip(streams[place * fan_in : (place + 1) * fan_in], merger.inputs, strict=False):
                connect(m, source, port)
        streams = [merger.output for merger in levels[number]]
    return streams[0]
