"""The whole circuit: chain, merging network and admission control between the steps that enter and the results."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.admission import DELAY, Suspend
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.nested_loop import NestedLoop


class JoinCircuit(wiring.Component):
    """The handshake join of [OGE Fig. 3.2.1]; with an adaptive network, that of [OGE Fig. 6.1.1].

    Args:
        chain: The join cores, or the two units of the nested-loop join.
        network: Any merging network with an input for each core.
        buffers: The FIFO behind each core; empty where the cores give their results to the network directly
            [OGE §6.2.1].
        delay: Flip-flops between the flags of the FIFOs and the cores; see `Suspend`.

    Attributes:
        fifos: All FIFOs, those of the cores first.

    Ports:
        steps: What enters the chain.
        results: What comes out of it.
        idle: No step is being worked on and no result is under way: every match of the steps so far has come out.
    """

    def __init__(self, *, chain: Handshake | NestedLoop, network: Any, buffers: list[Fifo], delay: int = DELAY) -> None:
        self.chain = chain
        self.network = network
        self.buffers = buffers
        self.delay = delay
        self.fifos: list[Fifo] = [*buffers, *network.fifos]
        self.layout = chain.layout
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(self.layout.step.size))),
                "results": Out(stream.Signature(unsigned(self.layout.result_width))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.chain = chain = self.chain
        m.submodules.network = network = self.network
        m.submodules.admission = admission = Suspend(n=len(self.buffers) + 1, delay=self.delay)
        connect(m, flipped(self.steps), chain.steps)
        connect(m, network.output, flipped(self.results))
        for core, (found, entry) in enumerate(zip(chain.results, network.inputs, strict=True)):
            if self.buffers:
                m.submodules[f"buffer_{core}"] = buffer = self.buffers[core]
                connect(m, found, buffer.write)
                connect(m, buffer.read, entry)
            else:
                connect(m, found, entry)
        m.d.comb += [
            admission.almost_full.eq(Cat(network.almost_full, *(buffer.almost_full for buffer in self.buffers))),
            chain.suspend.eq(admission.suspend),
        ]

        most = (
            1 + sum(fifo.depth + 4 for fifo in self.fifos) + 8 * len(chain.results)
        )  # a result is in a FIFO or beside it
        new = Signal(range(len(chain.results) + 1))  # how many results left the cores in the last cycle
        under_way = Signal(range(2 * most))  # how many results are in buffers and network; it may wrap for one cycle
        m.d.sync += [
            new.eq(sum(found.valid & found.ready for found in chain.results)),
            under_way.eq(under_way + new - (self.results.valid & self.results.ready)),
        ]
        m.d.comb += self.idle.eq(chain.ready & (new == 0) & (under_way == 0))
        return m
