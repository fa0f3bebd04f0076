"""What an index is: it makes its own keys, stores the tuples of one stream, and proposes partners for the other's.

A new index is a class with these methods in a file of its own, and a line in `choice.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.program import Program
from handfast.kernels.course import Pairs, Ranges
from handfast.spec.classify import Band, Equality
from handfast.spec.expression import Expr


@dataclass(frozen=True, slots=True)
class PairConditions:
    """What the predicate offers an index over two streams; the program says where each expression's values are.

    `parts` are all of the conditions on a pair that a kernel can compute.
    """

    program: Program
    equalities: tuple[Equality, ...]
    bands: tuple[Band, ...]
    parts: tuple[Expr, ...] = ()


class Keys(Protocol):
    """What an index makes of a run of tuples. The rest is known only to indexes of the same class."""

    @property
    def dead(self) -> NDArray[np.bool_]:
        """Which tuples can never match anything, whatever is still to come."""
        ...

    @property
    def some_unplaced(self) -> bool:
        """Whether the index can place some of the tuples nowhere, and nothing of the condition is known of these."""
        ...


K = TypeVar("K")


class Index(Protocol[K]):
    """The tuples of one stream at one core, in which tuples of another stream find their partners.

    Two streams have two indexes of the same class, one over the tuples of each: the keys that one makes of its own
    tuples are what the other is probed with. A tuple's position is its place in the order of insertion.

    An index only proposes: the windows, and whatever of the predicate it does not decide itself, are checked on every
    candidate. It may propose too many, but never too few, and no pair twice.
    """

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        """An empty index over the tuples of stream `side` of the two; it proposes about `capacity` pairs at a time."""
        ...

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        """Whether these conditions are of the kind that the index goes by."""
        ...

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        """The parts of the condition that `candidates` need not fulfil: they are left to be checked."""
        ...

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        """What `hf.explain` says of the index over these conditions, and why it was chosen."""
        ...

    def keys(self, columns: Columns) -> K:
        """The keys of tuples of the index's own stream."""
        ...

    def reserve(self, count: int) -> None:
        """Make room for so many tuples at once, if that saves anything; there may be more."""
        ...

    def insert(self, keys: K) -> None:
        """Store the next tuples. Dead ones have a position as well, but need not be proposed."""
        ...

    def expire(self, oldest: int) -> None:
        """Forget the tuples before this position, if that saves anything: no range begins before it any more."""
        ...

    def drop(self, count: int) -> None:
        """Forget the first so many positions, no range begins in them: all others are lower by so many from now on."""
        ...

    def candidates(self, keys: K, ranges: Ranges) -> Iterator[Pairs]:
        """Pairs of a probing tuple's place and a stored tuple's position within its range, piece by piece.

        The keys are those that the other stream's index made. A piece may be overwritten: by whoever takes it, and by
        the index as soon as the next one is asked for.
        """
        ...

    def unplaced(self, keys: K, ranges: Ranges) -> Iterator[Pairs]:
        """Pairs with tuples that no key can place: of these, nothing of the condition is known."""
        ...
