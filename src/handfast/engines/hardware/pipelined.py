"""The pipelined merging network: a FIFO behind each core, then a tree whose mergers are one register each."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from handfast.engines.hardware.fifo import MARGIN, Fifo
from handfast.engines.hardware.merger import RegisterMerger
from handfast.engines.hardware.tree import connect_levels, level_sizes, network_signature

STAGE_FAN_IN = 4
"""Inputs of a merger. A result takes a cycle for each level of the tree: 3 levels for 64 cores."""

PASSING = 0
"""The FIFOs' latency: a result that finds its FIFO empty goes on to the first merger in the cycle it is found."""


class PipelinedNetwork(wiring.Component):
    """n streams of results as one: where nothing is in its way, a result is out after one cycle per level of the tree.

    Results wait in the FIFO of their own core and nowhere else. The tree gives a result in every cycle in which any
    register before the root holds one, whoever it is from: one busy core alone has the whole output, and of many each
    has its turn. The results of each core stay in their order.

    Attributes:
        n: How many inputs there are.
        depth: Slots of each FIFO.
        margin: A FIFO is almost full while at most so many slots are free.
        latency: Cycles from a write into a FIFO until the word can be read.
        fan_in: Inputs of a merger.
        fifos: The FIFO behind each core.
        mergers: Every merger, by level from the root on, in each level from the first input on.
        inputs: A stream of results from each core.
        output: The root's output.
        almost_full: Whether any FIFO is almost full.
    """

    def __init__(
        self,
        *,
        n: int,
        width: int,
        depth: int,
        margin: int = MARGIN,
        latency: int = PASSING,
        fan_in: int = STAGE_FAN_IN,
    ) -> None:
        self._levels = [
            [RegisterMerger(width=width, fan_in=fan_in) for _ in range(size)] for size in level_sizes(n, fan_in)
        ]
        self.n = n
        self.width = width
        self.depth = depth
        self.margin = margin
        self.latency = latency
        self.fan_in = fan_in
        self.fifos = [Fifo(width=width, depth=depth, margin=margin, latency=latency) for _ in range(n)]
        self.mergers = [each for level in self._levels for each in level]
        super().__init__(network_signature(n, width))

    def elaborate(self, platform: Any) -> Module:
        """The FIFOs, and the tree over them."""
        m = Module()
        for k, fifo in enumerate(self.fifos):
            m.submodules[f"fifo{k}"] = fifo
            connect(m, flipped(self.inputs[k]), fifo.write)
        root = connect_levels(m, [fifo.read for fifo in self.fifos], self._levels)
        connect(m, root, flipped(self.output))
        m.d.comb += self.almost_full.eq(Cat(fifo.almost_full for fifo in self.fifos).any())
        return m
