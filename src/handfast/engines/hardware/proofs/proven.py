"""The list of what is proven: every part with its harness, in which shape, and for how many cycles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handfast.engines.hardware import assertions
from handfast.engines.hardware.adaptive import AdaptiveNetwork, RingNode
from handfast.engines.hardware.admission import Suspend, Throttle
from handfast.engines.hardware.check import Verdict, check
from handfast.engines.hardware.circuit import elaborate
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.merger import BufferlessMerger, Merger, RegisterMerger, RoundRobinMerger
from handfast.engines.hardware.options import ADAPTIVE, EAGER, HIGHEST, IMMEDIATE, PIPELINED, TREE
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.proofs.admission import SuspendProof, ThrottleProof
from handfast.engines.hardware.proofs.circuit import CircuitProof
from handfast.engines.hardware.proofs.fifo import FifoProof
from handfast.engines.hardware.proofs.merging import OrderProof, TurnProof
from handfast.engines.hardware.proofs.ring import NodeProof, RingProof
from handfast.engines.hardware.proofs.stages import RangeProof, StandstillProof, StashProof, stash_layout
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.stashed.stash import Stash
from handfast.engines.hardware.tree import BufferlessTree, TreeNetwork


@dataclass(frozen=True, slots=True)
class Proof:
    """Claims about a part, and how they are shown.

    Attributes:
        part: What they are about.
        shape: Which parameters it has; words are as narrow as they can be, for no part looks into them.
        harness: Makes the part with all that may happen around it, and with the claims.
        depth: For how many cycles they are checked.
        for_ever: Whether they hold for ever, by induction over as many cycles.
        slow: Whether it takes minutes.
    """

    part: str
    shape: str
    harness: Callable[[], Any]
    depth: int
    for_ever: bool = False
    slow: bool = False

    def claims(self) -> list[str]:
        """What is claimed, in the words of the assertions."""
        return assertions.claims(elaborate(self.harness()).rtlil)

    def check(self) -> Verdict:
        """Check the claims."""
        return check(self.harness(), depth=self.depth, induction=self.for_ever)


def _merger() -> OrderProof:
    merger = Merger(width=2, depth=2, margin=1)
    return OrderProof(merger, room=1, within=4, unrefused=[merger.fifo])


def _suspended(*, depth: int, margin: int, delay: int, within: int) -> SuspendProof:
    fifos = [Fifo(width=1, depth=depth, margin=margin) for _ in range(2)]
    return SuspendProof(Suspend(n=2, delay=delay), fifos, suspended_within=within)


def _network(**shape: Any) -> AdaptiveNetwork:
    return AdaptiveNetwork(width=1, hop_bits=2, **shape)


def _circuit(*, network: str, scan: str, within: int, idle_within: int | None = None) -> CircuitProof:
    slots, margin = (3, 2) if network == ADAPTIVE else (2, 1)
    sizes: dict[str, Any] = {"sizes": (1, 1), "core_buffer": slots, "network_buffer": slots, "margin": margin}
    shape = CircuitShape(cores=2, network=network, scan=scan, **sizes)
    return CircuitProof(shape, unrefused=True, within=within, idle_within=idle_within)


PROOFS: tuple[Proof, ...] = (
    Proof(
        "FIFO",
        "3 slots, latency 2",
        lambda: FifoProof(Fifo(width=1, depth=3, margin=1, latency=2)),
        depth=13,
    ),
    Proof(
        "FIFO",
        "2 slots, latency 1",
        lambda: FifoProof(Fifo(width=1, depth=2, margin=1, latency=1)),
        depth=12,
    ),
    Proof(
        "FIFO",
        "2 slots, latency 0",
        lambda: FifoProof(Fifo(width=1, depth=2, margin=1, latency=0)),
        depth=12,
    ),
    Proof(
        "FIFO",
        "4 slots, latency 2",
        lambda: FifoProof(Fifo(width=1, depth=4, margin=2, latency=2)),
        depth=18,
        slow=True,
    ),
    Proof("merger of three states", "2 slots", _merger, depth=14),
    Proof(
        "merger of three states",
        "2 slots, a loop of 4 cycles",
        lambda: TurnProof(Merger(width=1, depth=2, margin=1, cycles=4, writes=(1, 3)), within=8),
        depth=10,
        for_ever=True,
    ),
    Proof(
        "merger of three states",
        "2 slots",
        lambda: TurnProof(Merger(width=1, depth=2, margin=1), within=5),
        depth=16,
    ),
    Proof(
        "merger with an arbiter and a FIFO",
        "3 inputs, 2 slots",
        lambda: OrderProof(
            RoundRobinMerger(width=3, fan_in=3, depth=2, margin=1, latency=1),
            room=2,
            within=2,
        ),
        depth=10,
    ),
    Proof(
        "merger with an arbiter and a FIFO",
        "4 inputs, 2 slots",
        lambda: TurnProof(RoundRobinMerger(width=1, fan_in=4, depth=2, margin=1), within=5),
        depth=8,
        for_ever=True,
    ),
    Proof(
        "arbiter before a register",
        "3 inputs",
        lambda: OrderProof(RegisterMerger(width=3, fan_in=3), room=1, within=1),
        depth=12,
    ),
    Proof(
        "arbiter before a register",
        "8 inputs",
        lambda: TurnProof(RegisterMerger(width=1, fan_in=8), within=7, one_of=True),
        depth=9,
        for_ever=True,
    ),
    Proof(
        "merger without a buffer",
        "2 inputs",
        lambda: OrderProof(BufferlessMerger(width=2), room=2, within=3),
        depth=12,
    ),
    Proof(
        "merger without a buffer",
        "2 inputs",
        lambda: TurnProof(BufferlessMerger(width=1), within=1),
        depth=4,
        for_ever=True,
    ),
    Proof("ring node", "2 slots", lambda: NodeProof(RingNode(width=1, depth=2, hop_bits=2)), depth=4, for_ever=True),
    Proof(
        "ring and FIFOs of the adaptive network",
        "2 nodes, 2 slots",
        lambda: RingProof(_network(n=2, depth=2, margin=1, latency=1), gone_within=7, taken_within=2),
        depth=9,
        for_ever=True,
    ),
    Proof(
        "ring and FIFOs under admission control",
        "2 nodes, 3 slots, margin 2, delay 1",
        lambda: RingProof(
            _network(n=2, depth=3, margin=2, latency=1),
            gone_within=9,
            control=Suspend(n=1),
            circles_within=8,
        ),
        depth=11,
        for_ever=True,
    ),
    Proof(
        "ring and FIFOs of the adaptive network",
        "3 nodes, 1 slot",
        lambda: RingProof(_network(n=3, depth=1, margin=0, latency=1), gone_within=14, taken_within=5),
        depth=14,
        for_ever=True,
        slow=True,
    ),
    Proof(
        "ring and FIFOs of the adaptive network",
        "3 nodes, 2 slots",
        lambda: RingProof(_network(n=3, depth=2, margin=1, latency=1), gone_within=14, taken_within=5),
        depth=18,
        for_ever=True,
        slow=True,
    ),
    Proof(
        "ring and FIFOs under admission control",
        "3 nodes, 3 slots, margin 2, delay 1",
        lambda: RingProof(
            _network(n=3, depth=3, margin=2, latency=1),
            gone_within=20,
            control=Suspend(n=1),
            circles_within=15,
        ),
        depth=22,
        for_ever=True,
        slow=True,
    ),
    Proof(
        "tree of mergers",
        "3 inputs, mergers of three states, 2 slots",
        lambda: OrderProof(TreeNetwork(n=3, width=3, depth=2, margin=1), room=3, within=13),
        depth=17,
        slow=True,
    ),
    Proof(
        "tree of mergers without buffers",
        "3 inputs",
        lambda: OrderProof(BufferlessTree(n=3, width=3), room=4, within=7),
        depth=11,
        slow=True,
    ),
    Proof(
        "pipelined network",
        "2 inputs, 2 slots",
        lambda: OrderProof(PipelinedNetwork(n=2, width=2, depth=2, margin=1, fan_in=2), room=3, within=5),
        depth=9,
    ),
    Proof(
        "pipelined network",
        "4 inputs, 2 slots, mergers of 2",
        lambda: TurnProof(PipelinedNetwork(n=4, width=1, depth=2, margin=1, fan_in=2), within=4),
        depth=8,
        for_ever=True,
    ),
    Proof(
        "suspension before FIFOs",
        "2 cores, 2 slots, margin 1, delay 1",
        lambda: _suspended(depth=2, margin=1, delay=1, within=3),
        depth=7,
        for_ever=True,
    ),
    Proof(
        "suspension before FIFOs",
        "2 cores, 3 slots, margin 2, delay 2",
        lambda: _suspended(depth=3, margin=2, delay=2, within=5),
        depth=9,
        for_ever=True,
    ),
    Proof("throttle", "2 flags", lambda: ThrottleProof(Throttle(n=2, width=1, count_bits=2)), depth=3, for_ever=True),
    Proof(
        "whole circuit, tree",
        "2 cores, eager scan, 2 slots, margin 1",
        lambda: _circuit(network=TREE, scan=EAGER, within=10),
        depth=14,
    ),
    Proof(
        "whole circuit, pipelined network",
        "2 cores, eager scan, 2 slots, margin 1",
        lambda: _circuit(network=PIPELINED, scan=EAGER, within=10),
        depth=14,
    ),
    Proof(
        "whole circuit, tree",
        "2 cores, immediate scan, 2 slots, margin 1",
        lambda: _circuit(network=TREE, scan=IMMEDIATE, within=16, idle_within=22),
        depth=28,
        slow=True,
    ),
    Proof(
        "whole circuit, pipelined network",
        "2 cores, immediate scan, 2 slots, margin 1",
        lambda: _circuit(network=PIPELINED, scan=IMMEDIATE, within=10, idle_within=15),
        depth=28,
        slow=True,
    ),
    Proof(
        "whole circuit, adaptive network",
        "2 cores, eager scan, 3 slots, margin 2",
        lambda: _circuit(network=ADAPTIVE, scan=EAGER, within=10, idle_within=12),
        depth=20,
        slow=True,
    ),
    Proof(
        "ring of stages",
        "3 stages, room for 1 at each hop",
        lambda: StandstillProof(streams=3, buffer=1),
        depth=3,
        for_ever=True,
    ),
    Proof(
        "ring of stages",
        "3 stages, room for 2 at each hop, the highest hop first",
        lambda: StandstillProof(streams=3, buffer=2, turn=HIGHEST),
        depth=24,
    ),
    Proof(
        "ring of stages",
        "4 stages, room for 1 at each hop",
        lambda: StandstillProof(streams=4, buffer=1),
        depth=14,
        slow=True,
    ),
    Proof(
        "ranges in a ring",
        "3 streams, windows of 1, 3 tuples under way",
        lambda: RangeProof(streams=3, rows=1, in_flight=3, stream=1),
        depth=16,
    ),
    Proof(
        "ranges in a ring",
        "3 streams, windows of 2, 3 tuples under way",
        lambda: RangeProof(streams=3, rows=2, in_flight=3, stream=0),
        depth=20,
        slow=True,
    ),
    Proof("stash", "1 pair", lambda: StashProof(Stash(layout=stash_layout(), size=1)), depth=10),
    Proof("stash", "2 pairs", lambda: StashProof(Stash(layout=stash_layout(), size=2)), depth=10),
)
