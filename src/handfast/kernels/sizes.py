"""How much kernels do at a time: values that change how fast a join is, never what it finds."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.errors import SpecError


@dataclass(frozen=True, slots=True)
class Vectors:
    """How a scan goes through the inner tuples.

    Attributes:
        lanes: Tuples of a vector.
        group: Vectors that are tested together: one branch, seldom taken, for all their pairs.
    """

    lanes: int = 8
    group: int = 4

    def __post_init__(self) -> None:
        if self.pairs not in (1, 2, 4, 8, 16, 32, 64):
            raise SpecError(
                f"Vectors must test a power of two of pairs together, at most 64, not {self.pairs}; "
                "choose other lanes or another group"
            )

    @property
    def pairs(self) -> int:
        """Pairs that are tested together: a bit of a word for each."""
        return self.lanes * self.group


@dataclass(frozen=True, slots=True)
class KernelSizes:
    """The sizes of one join's kernels.

    Attributes:
        vectors: How a scan goes through the inner tuples.
        run: Inner tuples scanned at a time: their columns stay in the cache, and most runs lie in all windows.
        long_run: The same where all of them lie in all windows.
        pairs: Pairs that a scan finds before they are handed on: at least a long run.
        candidates: Pairs that an index proposes before they are handed on: so few that their arrays are used again.
    """

    vectors: Vectors = Vectors()
    run: int = 1 << 13
    long_run: int = 1 << 16
    pairs: int = 1 << 18
    candidates: int = 1 << 15


USUAL = KernelSizes()
