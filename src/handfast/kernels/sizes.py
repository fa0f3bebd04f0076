"""How much kernels do at a time, and for which CPU: values that change how fast a join is, never what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field

from handfast.errors import SpecError
from handfast.kernels.target import Target, host

_LANE = 4  # bytes of the values that are compared most
_MANY = 16  # lanes of the widest vectors that there are
_FEW = 2  # outer tuples that meet a vector where there are not registers for more


@dataclass(frozen=True, slots=True)
class Vectors:
    """How a scan goes through the inner tuples.

    Attributes:
        lanes: Tuples of a vector.
        group: Vectors that are tested together: one branch, seldom taken, for all their pairs.
        block: Outer tuples that meet each vector that is read.
    """

    lanes: int = 8
    group: int = 2
    block: int = 2

    def __post_init__(self) -> None:
        if self.pairs not in (1, 2, 4, 8, 16, 32, 64):
            raise SpecError(
                f"Vectors must test a power of two of pairs together, at most 64, not {self.pairs}; "
                "choose other lanes or another group"
            )

    @staticmethod
    def of(target: Target) -> Vectors:
        """As many lanes as a CPU's vectors have for the values that are compared most."""
        lanes = target.width // _LANE
        # AVX-512 has registers enough for what four outer tuples bring along
        return Vectors(lanes, group=1, block=4) if lanes == _MANY else Vectors(lanes)

    @property
    def pairs(self) -> int:
        """Pairs that an outer tuple is in and that are tested together: a bit of a word for each."""
        return self.lanes * self.group


@dataclass(frozen=True, slots=True)
class KernelSizes:
    """The sizes of one join's kernels.

    Attributes:
        vectors: How a scan goes through the inner tuples: by default as it is best for this machine.
        target: The CPU that they are for: by default this machine.
        tile: Bytes of inner tuples that a block of outer ones passes over: they stay in a core's own caches.
        pairs: Pairs that a scan finds before they are handed on.
        sample: Pairs that it finds before it knows how many there are to be found.
        rare: A pair in so many, or fewer, is rare.
        candidates: Pairs that an index proposes before they are handed on: so few that their arrays are used again.
    """

    vectors: Vectors = field(default_factory=lambda: Vectors.of(host()))
    target: Target = field(default_factory=host)
    tile: int = field(default_factory=lambda: _tile(host()))
    pairs: int = 1 << 18
    sample: int = 1 << 14
    rare: int = 200
    candidates: int = 1 << 15

    @staticmethod
    def of(target: Target) -> KernelSizes:
        """What is best for a CPU."""
        return KernelSizes(Vectors.of(target), target, _tile(target))


def _tile(target: Target) -> int:
    """The bytes of a tile: where four outer tuples meet each vector, the second cache is fast enough for it."""
    return 1 << 17 if Vectors.of(target).block > _FEW else 1 << 15


USUAL = KernelSizes()
