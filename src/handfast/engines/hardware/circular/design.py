"""The design of a ring: how long its windows are, what travels in it, what its stages check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Module

from handfast.engines.hardware.circular.conditions import Check, RingConditions
from handfast.engines.hardware.circular.layout import RingLayout
from handfast.engines.hardware.circular.ring import RingCircuit
from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.options import DROP, STASHED, HardwareOptions
from handfast.engines.hardware.predicate import predicate
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.errors import UnsupportedError
from handfast.spec.join import BoundJoin
from handfast.spec.window import CountWindow


@dataclass(frozen=True)
class RingDesign:
    """A ring on paper.

    Attributes:
        rows: How many tuples each stream has.
        held: How many of them its window holds at most.
        sizes: How many there is room for.
    """

    join: BoundJoin
    options: HardwareOptions
    rows: tuple[int, ...]
    held: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def shape(self) -> RingShape:
        """What the circuit does in which cycle."""
        options = self.options
        windows = [stream.window for stream in self.join.spec.streams]
        return RingShape(
            sizes=self.sizes,
            counted=tuple(window.rows if isinstance(window, CountWindow) else None for window in windows),
            comparisons=options.comparisons,
            in_flight=options.in_flight,
            buffer=options.stage_buffer,
            turn=options.turn,
            network_buffer=options.network_buffer,
            margin=options.margin,
            drops=options.admission == DROP,
        )

    @cached_property
    def conditions(self) -> RingConditions:
        """What is checked at which stage."""
        return RingConditions.of(self.join.predicate, len(self.held))

    @cached_property
    def layout(self) -> RingLayout:
        """The bits of tuples, items and results."""
        shape = self.shape
        timed = frozenset(stream for stream, rows in enumerate(shape.counted) if rows is None)
        return RingLayout(self.rows, self.sizes, timed, shape.in_flight, shape.comparisons, self.conditions)

    @property
    def step_every(self) -> int:
        """A tuple comes every so many cycles; 0: as soon as the circuit takes it."""
        return self.options.step_every or 0

    def build(self) -> RingCircuit:
        """The circuit."""
        return self.shape.build(self.layout, self._matches)

    def _matches(self, m: Module, stage: int, hop: Any, item: Any, slot: Any) -> Any:
        """The logic of all conditions of a stage."""
        inputs = self.layout.slot(stage).values(slot)
        for stream in range(self.layout.streams):
            if stream != stage:
                inputs |= self.layout.member(stage, stream).values(item[f"of_{stream}"].member)
        holds: Any = 1
        for check in self.conditions.checks[stage]:
            value, null = predicate(m, check.condition, inputs, self.join.spec.names)
            holds &= (value & ~null) | self._is_early(check, hop)
        return holds

    def _is_early(self, check: Check, hop: Any) -> Any:
        """Whether a condition is not to be checked at a hop."""
        others = [hop == h for h in range(self.layout.hops) if h not in check.hops]
        return sum(others) != 0 if others else 0


def design_stages(
    join: BoundJoin, options: HardwareOptions, rows: Sequence[int], held: Sequence[int]
) -> RingDesign | LineDesign:
    """The ring for bounded inputs, or the line.

    Args:
        join: The join.
        options: What the user asks of the circuit.
        rows: How many tuples each stream has.
        held: How many tuples of each stream its window holds at most.
    """
    options.check_ring()
    kind = LineDesign if options.algorithm == STASHED else RingDesign
    sizes = [options.segment or most for most in held]
    for stream, size, most in zip(join.spec.streams, sizes, held, strict=True):
        if size < most:
            raise UnsupportedError(
                f"The window of stream {stream.name!r} holds up to {most:,} tuples, and with segment={size} there is "
                f"room for {size:,}; it takes segment={most}"
            )
    return kind(join, options, tuple(rows), tuple(held), tuple(sizes))
