"""The design of a circuit: how long its chain is, what travels in it, what collects its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module

from handfast.engines.hardware.adaptive import AdaptiveNetwork
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.layout import JoinLayout, lay_out
from handfast.engines.hardware.options import TREE, HardwareOptions
from handfast.engines.hardware.predicate import predicate
from handfast.engines.hardware.top import HandshakeJoin
from handfast.engines.hardware.tree import TreeNetwork
from handfast.errors import UnsupportedError
from handfast.flow.topology import STREAMS, ChainTopology
from handfast.spec.join import BoundJoin
from handfast.spec.window import CountWindow


@dataclass(frozen=True, slots=True)
class Design:
    """A circuit on paper.

    Attributes:
        sizes: The slots of the R and of the S segment of each core.
        layout: The bits of tuples, steps and results.
    """

    join: BoundJoin
    options: HardwareOptions
    topology: ChainTopology
    sizes: tuple[int, int]
    layout: JoinLayout

    def build(self) -> HandshakeJoin:
        """The circuit."""
        options, width, cores = self.options, self.layout.result_width, self.topology.cores
        chain = Handshake(
            topology=self.topology,
            layout=self.layout,
            matches=self._matches,
            sizes=self.sizes,
            ram=options.in_ram(max(self.sizes)),
        )
        if options.network == TREE:
            network = TreeNetwork(n=cores, width=width, depth=options.network_buffer, margin=options.margin)
            buffers = [Fifo(width=width, depth=options.core_buffer, margin=options.margin) for _ in range(cores)]
            return HandshakeJoin(chain=chain, network=network, buffers=buffers)
        ring = AdaptiveNetwork(n=cores, width=width, depth=options.network_buffer, margin=options.margin)
        return HandshakeJoin(chain=chain, network=ring, buffers=[])

    def _matches(self, m: Module, r: Any, s: Any) -> Any:
        inputs = self.layout.r.values(r) | self.layout.s.values(s)
        value, null = predicate(m, self.join.predicate, inputs, self.join.spec.names)
        return value & ~null


def design(join: BoundJoin, options: HardwareOptions, rows: Sequence[int], held: Sequence[int]) -> Design:
    """The circuit for bounded inputs.

    Args:
        join: The join.
        options: What the user asks of the circuit.
        rows: How many tuples each stream has.
        held: How many tuples of each stream its window holds at most.
    """
    sizes = [options.segment or -(-most // options.cores) for most in held]
    for stream, size, most in zip(join.spec.streams, sizes, held, strict=True):
        room = size * options.cores
        if room < most:
            raise UnsupportedError(
                f"The window of stream {stream.name!r} holds up to {most:,} tuples, and {options.cores} cores with "
                f"segment={size} have room for {room:,}; it takes segment={-(-most // options.cores)}, or more cores"
            )
    compares = any(not _is_exact(join, k, sizes[k] * options.cores, rows[k]) for k in STREAMS)
    layout = lay_out(join.predicate, (rows[0], rows[1]), compares_stamps=compares)
    return Design(join, options, ChainTopology(options.cores), (sizes[0], sizes[1]), layout)


def _is_exact(join: BoundJoin, stream: int, slots: int, rows: int) -> bool:
    """Whether a chain of so many slots holds just what the window of a stream of so many rows holds."""
    window = join.spec.streams[stream].window
    return isinstance(window, CountWindow) and (window.rows == slots or window.rows >= rows)
