"""The chain as a value: a row of cores, the ends at which streams enter, and when a core forwards [HSJ §3, §4].

It holds no data and no threads, so that every chain is built from the same value: that of threads in the local engine,
the model of the benchmarks, and a circuit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from handfast.errors import SpecError

R, S = STREAMS = (0, 1)  # the two streams of a chain, by their position in the spec

Policy = Callable[[float, float], bool]


class Side(Enum):
    """A core's side, and an end of the chain."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def opposite(self) -> Side:
        """The other side."""
        return Side.RIGHT if self is Side.LEFT else Side.LEFT


def by_size(own: float, following: float) -> bool:
    """Forward while a core's own window is larger than that of the core that follows [HSJ §4.3, Fig. 11].

    New tuples push from one end, and expiry makes room at the other: like water in a pipe, the windows level out.
    """
    return own > following


@dataclass(frozen=True, slots=True)
class ChainTopology:
    """A row of cores that two streams pass in opposite directions.

    R enters at the left end and leaves at the right, S the other way round. A driver stands at both ends.

    Attributes:
        cores: How many there are. They are numbered from the left, from 0.
        policy: When a core forwards its oldest tuples, by the size of its own window and that of the core that follows.
            It only decides where tuples are, never what they match.
    """

    cores: int
    policy: Policy = by_size

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise SpecError(f"The number of cores must be at least 1, not {self.cores!r}")

    def neighbour(self, core: int, side: Side) -> int | None:
        """The core next to this one; None where the driver stands."""
        beside = core - 1 if side is Side.LEFT else core + 1
        return beside if 0 <= beside < self.cores else None

    def core_at(self, end: Side) -> int:
        """The core at one end of the chain."""
        return 0 if end is Side.LEFT else self.cores - 1

    @property
    def links(self) -> list[tuple[int | None, int | None]]:
        """Every two that are next to each other, from the left: cores, and with None the driver at both ends."""
        return list(pairwise([None, *range(self.cores), None]))

    def entry(self, stream: int) -> Side:
        """The end at which the driver feeds a stream's tuples."""
        return Side.LEFT if stream == R else Side.RIGHT

    def exit(self, stream: int) -> Side:
        """The end at which the driver takes a stream's expired tuples out [HSJ §4.4, Fig. 12]."""
        return self.entry(stream).opposite

    def first(self, stream: int) -> int:
        """The core that a stream's tuples come to first."""
        return self.core_at(self.entry(stream))

    def last(self, stream: int) -> int:
        """The core that a stream's tuples come to last."""
        return self.core_at(self.exit(stream))

    def following(self, core: int, stream: int) -> int | None:
        """The core to which this one forwards a stream's tuples; the last one has none."""
        return self.neighbour(core, self.exit(stream))

    def path(self, stream: int) -> Iterator[int]:
        """All cores, in the order in which a stream's tuples come to them."""
        core: int | None = self.first(stream)
        while core is not None:
            yield core
            core = self.following(core, stream)
