"""The grid of a hypercube: which keys are its dimensions, how large each of them is, and what a tuple costs in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from handfast.plan import Keys

Cells = NDArray[np.int64]
Sizes = tuple[int, ...]

MOST_TRIES = 20_000  # four streams over 1000 cores need fewer; as many take a fraction of a second


@dataclass(frozen=True, slots=True)
class Dimension:
    """So many places, to which the keys of some streams are hashed; the other streams have no keys here."""

    size: int
    keys: Keys


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells, numbered as the cores are, with a place in every dimension."""

    dimensions: tuple[Dimension, ...]

    def __str__(self) -> str:
        return " x ".join(map(str, self._shape))

    @property
    def cells(self) -> int:
        return math.prod(self._shape)

    @property
    def copies(self) -> tuple[int, ...]:
        """By stream, to how many cells a tuple goes: all those along the dimensions that it has no keys for."""
        by_dimension = ([1 if own else dimension.size for own in dimension.keys] for dimension in self.dimensions)
        return tuple(map(math.prod, zip(*by_dimension, strict=True)))

    def places(self, cells: Cells) -> list[Cells]:
        """By dimension, where these cells are."""
        return list(np.unravel_index(cells, self._shape))

    def cells_at(self, places: Sequence[Cells]) -> Cells:
        """The cells that are at these places, given by dimension."""
        return np.ravel_multi_index(tuple(places), self._shape)

    @property
    def _shape(self) -> Sizes:
        return tuple(dimension.size for dimension in self.dimensions)


@lru_cache(maxsize=32)
def grid_of(classes: tuple[Keys, ...], cores: int) -> Grid:
    """The grid, of at most so many cells, in which a cell gets the least, if all streams have as many tuples.

    Of several the one that makes fewer copies, then the one of fewer dimensions, then the one that is larger in the
    first of them. A dimension of size 1 is none. Where tuples go depends on it: with another grid comes another
    `HypercubeRouting.rule`.
    """
    reach = {keys: frozenset(stream for stream, own in enumerate(keys) if own) for keys in classes}
    # what divides only some of the streams that another divides is never the better dimension of the two
    useful = [keys for keys in classes if not any(reach[keys] < other for other in reach.values())]
    if not useful:
        return Grid(())
    sizes = Search([reach[keys] for keys in useful], len(useful[0]), cores).sizes()
    return Grid(tuple(Dimension(size, keys) for size, keys in zip(sizes, useful, strict=True) if size > 1))


class Search:
    """Tries all sizes of dimensions but those that cannot become the best, and at most `MOST_TRIES`.

    Attributes:
        tried: How many were tried: sizes of all dimensions, or of the first few.
    """

    def __init__(self, reach: Sequence[frozenset[int]], streams: int, cores: int) -> None:
        """`reach` has the streams that each of the dimensions divides."""
        self.tried = 0
        self._reach = reach
        self._streams = range(streams)
        self._cores = cores
        alone = (tuple(cores if k == at else 1 for k in range(len(reach))) for at in range(len(reach)))
        self._best = min(self._greedy(), *map(self._priced, alone))  # never worse than hash routing

    def sizes(self) -> Sizes:
        """The best sizes, in the order of the dimensions."""
        self._try((), [1] * len(self._streams), self._cores)
        return self._best[-1]

    def _greedy(self) -> tuple[Fraction, int, int, Sizes, Sizes]:
        """Where to begin: always the dimension larger by one that makes a cell's share the smallest."""
        best = self._priced((1,) * len(self._reach))
        while True:
            larger = (tuple(size + (k == at) for k, size in enumerate(best[-1])) for at in range(len(self._reach)))
            found = min([best, *(self._priced(sizes) for sizes in larger if math.prod(sizes) <= self._cores)])
            if found == best:
                return best
            best = found

    def _try(self, sizes: Sizes, parts: Sequence[int], room: int) -> None:
        """Try these sizes with all of the other dimensions that have room; they cut the streams into so many parts."""
        if self.tried == MOST_TRIES:
            return
        self.tried += 1
        rest = self._reach[len(sizes) :]
        if not rest:
            self._best = min(self._best, self._priced(sizes))
            return
        divisible = frozenset().union(*rest)
        least = sum(1 / (own * (room if k in divisible else 1)) for k, own in enumerate(parts))
        if least > float(self._best[0]) + 1e-9:
            return
        smallest = 1 if len(rest) > 1 else room  # the last dimension is best as large as it can be
        for size in range(room, smallest - 1, -1):
            cut = [own * size if k in rest[0] else own for k, own in enumerate(parts)]
            self._try((*sizes, size), cut, room // size)

    def _priced(self, sizes: Sizes) -> tuple[Fraction, int, int, Sizes, Sizes]:
        """What is compared, the best being the least; behind it the sizes."""
        cells = math.prod(sizes)
        given = list(zip(sizes, self._reach, strict=True))
        copies = sum(math.prod(size for size, streams in given if k not in streams) for k in self._streams)
        dimensions = sum(size > 1 for size in sizes)
        return Fraction(copies, cells), copies, dimensions, tuple(-size for size in sizes), sizes
