"""The design of a circuit: how long its chain is, what travels in it, what collects its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module

from handfast.engines.hardware.layout import JoinLayout, lay_out
from handfast.engines.hardware.options import HANDSHAKE, NESTED_LOOP, THROTTLE, HardwareOptions
from handfast.engines.hardware.predicate import predicate
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.top import JoinCircuit
from handfast.errors import UnsupportedError
from handfast.flow.topology import STREAMS
from handfast.spec.join import BoundJoin
from handfast.spec.window import CountWindow


@dataclass(frozen=True, slots=True)
class Design:
    """A circuit on paper.

    Attributes:
        held: How many tuples of each stream its window holds at most.
        sizes: The slots of the R and of the S segment of each core.
        layout: The bits of tuples, steps and results.
    """

    join: BoundJoin
    options: HardwareOptions
    held: tuple[int, int]
    sizes: tuple[int, int]
    layout: JoinLayout

    @property
    def shape(self) -> CircuitShape:
        """What the circuit does in which cycle."""
        options = self.options
        return CircuitShape(
            cores=options.chain_length,
            sizes=self.sizes,
            algorithm=options.algorithm or HANDSHAKE,
            ram=options.in_ram(max(self.sizes)),
            comparisons=options.comparisons,
            scan=options.scan,
            network=options.network,
            core_buffer=options.core_buffer,
            network_buffer=options.network_buffer,
            margin=options.margin,
            admission=options.admission,
            merge_clock=options.merge_clock,
        )

    @property
    def step_every(self) -> int:
        """A step comes every so many cycles; 0: as soon as the circuit takes it."""
        asked = self.options.step_every
        return asked or (self.shape.cycles_per_step if self.options.admission == THROTTLE else 0)

    def build(self) -> JoinCircuit:
        """The circuit."""
        return self.shape.build(self.layout, self._matches)

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
    cores = options.chain_length
    sizes = [options.segment or -(-most // cores) for most in held]
    for stream, size, most in zip(join.spec.streams, sizes, held, strict=True):
        if size * cores < most:
            more = "" if options.algorithm == NESTED_LOOP else ", or more cores"
            raise UnsupportedError(
                f"The window of stream {stream.name!r} holds up to {most:,} tuples, and with segment={size} there is "
                f"room for {size * cores:,}; it takes segment={-(-most // cores)}{more}"
            )
    inexact = [k for k in STREAMS if not _is_exact(join, k, sizes[k] * cores, rows[k])]
    if inexact and options.admission == THROTTLE:
        stream, slots = join.spec.streams[inexact[0]], sizes[inexact[0]] * cores
        raise UnsupportedError(
            "HardwareOptions(admission='throttle') discards tuples that have their stamps already, so windows must be "
            f"as long as the chain, in rows; that of stream {stream.name!r} is {stream.window}, and the chain has "
            f"{slots:,} slots; use admission='suspend', or a window of {slots:,} rows"
        )
    layout = lay_out(join.predicate, (rows[0], rows[1]), compares_stamps=bool(inexact))
    return Design(join, options, (held[0], held[1]), (sizes[0], sizes[1]), layout)


def _is_exact(join: BoundJoin, stream: int, slots: int, rows: int) -> bool:
    """Whether a chain of so many slots holds just what the window of a stream of so many rows holds."""
    window = join.spec.streams[stream].window
    return isinstance(window, CountWindow) and (window.rows == slots or window.rows >= rows)
