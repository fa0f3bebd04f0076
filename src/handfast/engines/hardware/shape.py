"""The shape of a circuit: all numbers and choices that say what it does in which cycle, whatever its tuples are.

The circuit is built from it, and the fast model runs by it, so that both can be held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from handfast.engines.hardware.adaptive import NORTH_LAST, PORT_TIES, AdaptiveNetwork, NorthLast, Order
from handfast.engines.hardware.admission import DELAY
from handfast.engines.hardware.clocks import SlowChain
from handfast.engines.hardware.comparisons import Matches
from handfast.engines.hardware.fifo import LATENCY, MARGIN, Fifo
from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.merger import CYCLES, WRITES
from handfast.engines.hardware.nested_loop import UNITS, NestedLoop
from handfast.engines.hardware.options import (
    ADAPTIVE,
    EAGER,
    HANDSHAKE,
    IMMEDIATE,
    NESTED_LOOP,
    PIPELINED,
    SUSPEND,
    TREE,
)
from handfast.engines.hardware.pipelined import STAGE_FAN_IN, PipelinedNetwork
from handfast.engines.hardware.segment import groups_of
from handfast.engines.hardware.steps import flush_steps
from handfast.engines.hardware.top import JoinCircuit
from handfast.engines.hardware.tree import MergerKind, TreeNetwork
from handfast.flow.topology import ChainTopology


@dataclass(frozen=True, slots=True)
class CircuitShape:
    """What a circuit is made of. Where a value has a default, it is that of the component it belongs to.

    Attributes:
        cores: Join cores of the chain; 1 for the nested-loop join.
        sizes: The slots of the R and of the S segment of each core.
        ram: Whether segments are in RAM, not in registers: it changes the order of a scan, and not its length.
        comparisons: How many slots of a segment a new tuple is compared with at a time.
        scan: How the handshake's cores scan, "immediate" (`JoinCore`) or "eager" (`EagerCore`).
        core_buffer: Slots of the FIFO behind each core, before a tree; other networks have their own.
        network_buffer: Slots of each FIFO of the network; of a tree also one number for each level from the root on.
        margin: Of every FIFO.
        latency: Of the FIFOs of a tree and of an adaptive network; those of a pipelined one let words pass.
        merger, fan_in, cycles, writes, cycles_per_result: Of a tree; see `TreeNetwork`.
        port_ties, rank_ties, north_last: Of an adaptive network; see `RingNode`.
        stage_fan_in: Inputs of the mergers of a pipelined network.
        delay: Flip-flops between the flags of the FIFOs and the cores; see `Suspend`.
        admission: "suspend", "throttle" or "drop"; see `JoinCircuit`.
        merge_clock: How many times faster than the chain everything else is clocked; see `SlowChain`. Cycles are those
            of the faster clock.
    """

    cores: int
    sizes: tuple[int, int]
    algorithm: str = HANDSHAKE
    ram: bool = False
    comparisons: int = 1
    scan: str = IMMEDIATE
    network: str = TREE
    core_buffer: int = 8
    network_buffer: int | Sequence[int] = 8
    margin: int = MARGIN
    latency: int = LATENCY
    merger: MergerKind = "states"
    fan_in: int = 2
    cycles: int = CYCLES
    writes: tuple[int, int] = WRITES
    cycles_per_result: int = 1
    port_ties: Order = PORT_TIES
    rank_ties: Literal["E", "W"] = "E"
    north_last: NorthLast = NORTH_LAST
    stage_fan_in: int = STAGE_FAN_IN
    delay: int = DELAY
    admission: str = SUSPEND
    merge_clock: int = 1

    @property
    def inputs(self) -> int:
        """How many streams of results the network merges."""
        return UNITS if self.algorithm == NESTED_LOOP else self.cores

    @property
    def flush(self) -> int:
        """How many empty steps bring the last tuples past each other."""
        return 0 if self.algorithm == NESTED_LOOP else flush_steps(self.cores, self.sizes)

    @property
    def groups(self) -> tuple[int, int]:
        """How many groups of slots a scan of the R and of the S segment compares, one after the other."""
        r, s = self.sizes
        return groups_of(r, self.comparisons), groups_of(s, self.comparisons)

    @property
    def cycles_per_step(self) -> int:
        """How many cycles a step takes that shifts both streams, where no result has to wait."""
        if self.algorithm == NESTED_LOOP:
            cycles = 3 + max(self.groups)
        else:
            cycles = 1 + max(self.groups) if self.scan == EAGER else 5 + sum(self.groups)
        return cycles * self.merge_clock

    def build(self, layout: JoinLayout, matches: Matches) -> JoinCircuit:
        """The circuit, for tuples that lie so in bits and match by this logic."""
        chain = self._chain(layout, matches)
        network, buffers = self._network(layout.result_width)
        return JoinCircuit(
            chain=chain if self.merge_clock == 1 else SlowChain(chain, ratio=self.merge_clock),
            network=network,
            buffers=buffers,
            delay=self.delay,
            admission=self.admission,
        )

    def _chain(self, layout: JoinLayout, matches: Matches) -> Handshake | NestedLoop:
        cores: dict[str, Any] = {"sizes": self.sizes, "ram": self.ram, "comparisons": self.comparisons}
        if self.algorithm == NESTED_LOOP:
            return NestedLoop(layout=layout, matches=matches, **cores)
        topology = ChainTopology(self.cores)
        return Handshake(topology=topology, layout=layout, matches=matches, scan=self.scan, **cores)

    def _network(self, width: int) -> tuple[Any, list[Fifo]]:
        """The merging network, and the FIFOs behind the cores where it has none of its own there."""
        fifos: dict[str, Any] = {"width": width, "margin": self.margin}
        if self.network == PIPELINED:
            return PipelinedNetwork(n=self.inputs, depth=self._depth, fan_in=self.stage_fan_in, **fifos), []
        fifos["latency"] = self.latency
        if self.network == ADAPTIVE:
            ring = AdaptiveNetwork(
                n=self.inputs,
                depth=self._depth,
                port_ties=self.port_ties,
                rank_ties=self.rank_ties,
                north_last=self.north_last,
                **fifos,
            )
            return ring, []
        tree = TreeNetwork(
            n=self.inputs,
            depth=self.network_buffer,
            merger=self.merger,
            fan_in=self.fan_in,
            cycles=self.cycles,
            writes=self.writes,
            cycles_per_result=self.cycles_per_result,
            **fifos,
        )
        return tree, [Fifo(depth=self.core_buffer, **fifos) for _ in range(self.inputs)]

    @property
    def _depth(self) -> int:
        """The slots of each FIFO of a network that is no tree."""
        assert isinstance(self.network_buffer, int)
        return self.network_buffer
