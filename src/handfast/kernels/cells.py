"""A chained index over cells: equal keys and neighbouring bands share cells.

A tuple lies in one cell, a number made of its equality keys and of the buckets of its band keys. Chains run from the
newest tuple to the oldest, so the first expired one ends a walk. What is found are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.keys import Cells, Keys
from handfast.kernels.pairs import Positions

_CAPACITY = 1 << 18


class CellIndex:
    """The index of one segment: positions go up, `oldest` is the lowest that still counts."""

    def __init__(self, capacity: int = 1024) -> None:
        from handfast.kernels import chains

        self._loops = chains
        self.oldest = 0
        self._count = 0
        self._pieces: tuple[Positions, Positions] | None = None
        self._stored: Cells = np.empty(capacity, np.uint64)
        self._links: Positions = np.empty(capacity, np.int64)
        self._present: NDArray[np.bool_] = np.empty(capacity, np.bool_)
        self._heads: Positions = np.full(_power_of_two(capacity), -1, np.int64)

    def insert(self, keys: Keys) -> None:
        """Take in the next tuples; one that is not present can never match, or is kept elsewhere."""
        cells, present = keys.cells, keys.present
        start, stop = self._count, self._count + len(cells)
        if stop > len(self._links):
            self._grow(stop)
        self._present[start:stop] = present
        self._loops.insert(cells, present, start, self._heads, self._links, self._stored)
        self._count = stop

    def probe(self, keys: Keys) -> Iterator[tuple[Positions, Positions]]:
        """The candidates of each probing tuple, as (probe, position) pairs, piece by piece.

        A piece is overwritten by the next one. New memory for each would have the threads wait for each other: the
        system gives it to one at a time.
        """
        base, present = keys.base, keys.present
        none = np.zeros(len(base), np.int64)
        first, second = [*keys.ranges, (none, none), (none, none)][:2]
        state = np.array([0, 0, 0, self._loops.NOT_STARTED], np.int64)
        while state[0] < len(base):
            probes, found = self._room
            n = self._loops.probe(
                base,
                *first,
                *second,
                present,
                self.oldest,
                self._heads,
                self._links,
                self._stored,
                probes,
                found,
                state,
            )
            if n:
                yield probes[:n], found[:n]

    @property
    def _room(self) -> tuple[Positions, Positions]:
        """Where pieces are written."""
        if self._pieces is None or len(self._pieces[0]) != _CAPACITY:
            self._pieces = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
        return self._pieces

    def _grow(self, needed: int) -> None:
        capacity = max(2 * len(self._links), needed)
        stored, present = self._stored[: self._count], self._present[: self._count]
        self._stored, self._links = np.empty(capacity, np.uint64), np.empty(capacity, np.int64)
        self._present = np.empty(capacity, np.bool_)
        self._present[: self._count] = present
        self._heads = np.full(_power_of_two(capacity), -1, np.int64)
        self._loops.insert(stored, present, 0, self._heads, self._links, self._stored)


def _power_of_two(n: int) -> int:
    return 1 << max(10, (n - 1).bit_length())
