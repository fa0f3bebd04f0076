"""The ring as a value: a stage for each stream, and the way of a new tuple past the stages of all others [CMJ §II]."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError


@dataclass(frozen=True, slots=True)
class RingTopology:
    """The order of the stages. A new tuple enters at the stage after its own, and goes on from stage to stage."""

    order: tuple[int, ...]  # the stream of each stage

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.order))) or len(self.order) < 2:
            raise SpecError(f"The order of a ring names every stream once, not {self.order!r}")

    def way(self, origin: int) -> tuple[int, ...]:
        """The streams whose stages a tuple passes, in order: all but its own."""
        place = self.order.index(origin)
        return self.order[place + 1 :] + self.order[:place]
