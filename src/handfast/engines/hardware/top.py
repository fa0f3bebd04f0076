"""The whole circuit: chain, merging network and admission control between the steps that enter and the results."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from handfast.engines.hardware.admission import COUNT_BITS, DELAY, Drop, Suspend, Throttle
from handfast.engines.hardware.clocks import SlowChain
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.nested_loop import NestedLoop
from handfast.engines.hardware.options import DROP, SUSPEND, THROTTLE
from handfast.errors import SpecError


class JoinCircuit(wiring.Component):
    """The handshake join of [OGE Fig. 3.2.1]; with an adaptive network, that of [OGE Fig. 6.1.1].

    What admission control does in each cycle:

    - "suspend": all cores stand still while any FIFO was almost full so many cycles ago; see `Suspend`.
    - "throttle": no core is ever suspended. A step that brings a tuple is discarded and counted in the cycle in which
      it is first offered, if in that cycle the FIFO behind any core is almost full (the network's flag counts where
      there is no such FIFO), or if not all cores wait for a step. Else it is taken, at once or in the next cycle in
      which a slower chain works. A step without a tuple, of the flush, is never discarded, and waits. The margin that
      [000 A.3] takes is `throttle_margin`.
    - "drop": no core is ever suspended. Where a core offers a result and the FIFO behind it is almost full, the oldest
      result in that FIFO is dropped and counted, if it can be read and the network does not take it; see `Drop`.

    Either way a result that is not taken is offered again, so none is lost unless it is dropped.

    Args:
        chain: The join cores, or the two units of the nested-loop join; or either with a slower clock.
        network: Any merging network with an input for each core.
        buffers: The FIFO behind each core; empty where the cores give their results to the network directly
            [OGE §6.2.1].
        delay: Flip-flops between the flags of the FIFOs and the cores; see `Suspend`.
        admission: "suspend", "throttle" or "drop".

    Attributes:
        fifos: All FIFOs, those of the cores first.

    Ports:
        steps: What enters the chain.
        results: What comes out of it.
        idle: No step is being worked on and no result is under way: every match of the steps so far has come out, or
            was dropped.
        discarded: How many steps were discarded.
        dropped: How many results were dropped.
    """

    def __init__(
        self,
        *,
        chain: Handshake | NestedLoop | SlowChain,
        network: Any,
        buffers: list[Fifo],
        delay: int = DELAY,
        admission: str = SUSPEND,
    ) -> None:
        if admission == DROP and not buffers:
            raise SpecError("Results are dropped from the buffers behind the cores, and this circuit has none")
        self.chain = chain
        self.network = network
        self.buffers = buffers
        self.delay = delay
        self.admission = admission
        self.fifos: list[Fifo] = [*buffers, *network.fifos]
        self.layout = chain.layout
        super().__init__(
            {
                "steps": In(stream.Signature(unsigned(self.layout.step.size))),
                "results": Out(stream.Signature(unsigned(self.layout.result_width))),
                "idle": Out(1),
                "discarded": Out(COUNT_BITS),
                "dropped": Out(COUNT_BITS),
            }
        )

    @property
    def standing(self) -> Signal:
        """Whether admission control lets all cores stand still."""
        return self.chain.suspend

    @property
    def silence(self) -> int:
        """More cycles than the circuit ever works without a word that moves: than a step without a match takes."""
        ratio = self.chain.ratio if isinstance(self.chain, SlowChain) else 1
        return ratio * (1_000 + 8 * sum(self.chain.sizes))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.chain = chain = self.chain
        m.submodules.network = network = self.network
        connect(m, network.output, flipped(self.results))
        for core, buffer in enumerate(self.buffers):
            m.submodules[f"buffer_{core}"] = buffer
            connect(m, chain.results[core], buffer.write)
        found = [buffer.read for buffer in self.buffers] or list(chain.results)
        drops: Any = 0  # how many results are dropped in this cycle
        if self.admission == DROP:
            m.submodules.admission = drop = self._drop(m)
            found, drops = list(drop.outputs), drop.drops
        for words, entry in zip(found, network.inputs, strict=True):
            connect(m, words, entry)
        if self.admission == THROTTLE:
            m.submodules.admission = self._throttle(m)
        else:
            connect(m, flipped(self.steps), chain.steps)
        if self.admission == SUSPEND:
            m.submodules.admission = suspend = Suspend(n=len(self.buffers) + 1, delay=self.delay)
            flags = Cat(network.almost_full, *(buffer.almost_full for buffer in self.buffers))
            m.d.comb += [suspend.almost_full.eq(flags), chain.suspend.eq(suspend.suspend)]

        most = (
            1 + sum(fifo.depth + 4 for fifo in self.fifos) + 8 * len(chain.results)
        )  # a result is in a FIFO or beside it
        new = Signal(range(len(chain.results) + 1))  # how many results left the cores in the last cycle
        under_way = Signal(range(2 * most))  # how many results are in buffers and network; it may wrap for one cycle
        m.d.sync += [
            new.eq(sum(found.valid & found.ready for found in chain.results)),
            under_way.eq(under_way + new - (self.results.valid & self.results.ready) - drops),
        ]
        m.d.comb += self.idle.eq(chain.ready & (new == 0) & (under_way == 0))
        return m

    def _throttle(self, m: Module) -> Throttle:
        """The entrance at which steps are discarded."""
        chain = self.chain
        crowded = [buffer.almost_full for buffer in self.buffers] or [self.network.almost_full]
        throttle = Throttle(n=len(crowded) + 1, width=self.layout.step.size)
        connect(m, flipped(self.steps), throttle.input)
        connect(m, throttle.output, chain.steps)
        step = self.layout.step(self.steps.payload)
        brings = Signal()  # the step at the entrance brings a tuple
        m.d.comb += [
            brings.eq(step.r.valid | step.s.valid),
            throttle.throttle.eq(Mux(brings, Cat(~chain.ready, *crowded), 0)),
            self.discarded.eq(throttle.discarded),
        ]
        return throttle

    def _drop(self, m: Module) -> Drop:
        """What drops results between the buffers and the network."""
        drop = Drop(n=len(self.buffers), width=self.layout.result_width)
        for k, buffer in enumerate(self.buffers):
            connect(m, buffer.read, drop.inputs[k])
            m.d.comb += drop.crowded[k].eq(buffer.almost_full & self.chain.results[k].valid)
        m.d.comb += self.dropped.eq(drop.dropped)
        return drop
