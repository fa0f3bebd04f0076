"""How much kernels do at a time, and for which CPU: values that change how fast a join is, never what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from handfast.errors import SpecError
from handfast.kernels.target import Target, host

_LANE = 4  # bytes of the values that are compared most


@dataclass(frozen=True, slots=True)
class Vectors:
    """How a scan goes through the inner tuples.

    Attributes:
        lanes: Tuples of a vector.
        group: Vectors that are tested together: one branch, seldom taken, for all their pairs.
        block: Outer tuples that meet each vector that is read.
    """

    lanes: int = 8
    group: int = 4
    block: int = 1

    def __post_init__(self) -> None:
        if self.pairs not in (1, 2, 4, 8, 16, 32, 64):
            raise SpecError(
                f"Vectors must test a power of two of pairs together, at most 64, not {self.pairs}; "
                "choose other lanes or another group"
            )

    @property
    def pairs(self) -> int:
        """Pairs that an outer tuple is in and that are tested together: a bit of a word for each."""
        return self.lanes * self.group


@dataclass(frozen=True)
class KernelSizes:
    """The sizes of one join's kernels.

    Attributes:
        made_for: The CPU that they run on; without it, this machine.
        lanes: How a scan goes through the inner tuples; without it, as the CPU's vectors are wide.
        tile: Bytes of inner tuples that a block of outer ones passes over: they stay in the innermost cache.
        pairs: Pairs that a scan finds before they are handed on.
        sample: Pairs that it finds before it knows how many there are to be found.
        rare: A pair in so many, or fewer, is rare.
        candidates: Pairs that an index proposes before they are handed on: so few that their arrays are used again.
    """

    made_for: Target | None = None
    lanes: Vectors | None = None
    tile: int = 1 << 15
    pairs: int = 1 << 18
    sample: int = 1 << 14
    rare: int = 200
    candidates: int = 1 << 15

    @cached_property
    def target(self) -> Target:
        return self.made_for or host()

    @cached_property
    def vectors(self) -> Vectors:
        return self.lanes or Vectors(self.target.width // _LANE)


USUAL = KernelSizes()
