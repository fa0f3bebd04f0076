"""The design of a line of stages with a stash: what travels in it, what its stages check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Module

from handfast.engines.hardware.options import HardwareOptions
from handfast.engines.hardware.predicate import predicate
from handfast.engines.hardware.stashed.conditions import LineConditions, Step, steps_at
from handfast.engines.hardware.stashed.layout import LineLayout
from handfast.engines.hardware.stashed.line import LineCircuit
from handfast.engines.hardware.stashed.shape import LineShape
from handfast.spec.join import BoundJoin
from handfast.spec.window import CountWindow


@dataclass(frozen=True)
class LineDesign:
    """A line of stages on paper; the fields are those of `RingDesign`."""

    join: BoundJoin
    options: HardwareOptions
    rows: tuple[int, ...]
    held: tuple[int, ...]
    sizes: tuple[int, ...]

    @cached_property
    def shape(self) -> LineShape:
        """What the circuit does in which cycle."""
        options = self.options
        windows = [stream.window for stream in self.join.spec.streams]
        return LineShape(
            sizes=self.sizes,
            counted=tuple(window.rows if isinstance(window, CountWindow) else None for window in windows),
            stash=options.stash_size,
            comparisons=options.comparisons,
            in_flight=options.in_flight,
            buffer=options.stage_buffer,
            network_buffer=options.network_buffer,
            margin=options.margin,
        )

    @cached_property
    def conditions(self) -> LineConditions:
        """What is checked at which stage."""
        return LineConditions.of(self.join.predicate, len(self.sizes))

    @cached_property
    def layout(self) -> LineLayout:
        """The bits of tuples, items and results."""
        shape = self.shape
        timed = frozenset(stream for stream, rows in enumerate(shape.counted) if rows is None)
        return LineLayout(self.rows, self.sizes, timed, shape.in_flight, shape.comparisons, self.conditions)

    @property
    def step_every(self) -> int:
        """A tuple comes every so many cycles; 0: as soon as the circuit takes it."""
        return self.options.step_every or 0

    def build(self) -> LineCircuit:
        """The circuit."""
        return self.shape.build(self.layout, self._matches)

    def _matches(self, m: Module, stage: int, members: Mapping[int, Any], is_taken: Callable[[Step], Any]) -> Any:
        """The logic of all conditions of a stage."""
        inputs: dict[Any, Any] = {}
        for stream, member in members.items():
            whole = stage == 0 or stream == stage + 1
            inputs |= (self.layout.slot(stream) if whole else self.layout.member(stage, stream)).values(member)
        steps = frozenset(steps_at(stage, self.layout.streams))
        holds: Any = 1
        for check in self.conditions.checks[stage]:
            value, null = predicate(m, check.condition, inputs, self.join.spec.names)
            others = [is_taken(step) for step in sorted(steps - check.steps, key=repr)]
            holds &= (value & ~null) | (sum(others) != 0 if others else 0)
        return holds
