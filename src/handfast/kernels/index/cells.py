"""A chained index over cells: equal keys and neighbouring bands share cells.

A tuple lies in one cell, a number made of its equality keys and of the buckets of its band keys. Chains run from the
newest tuple to the oldest, so the first one before its window ends a walk. What is found are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.course import Ranges
from handfast.kernels.index.keys import Cells, Keys
from handfast.kernels.pairs import Positions

_CAPACITY = 1 << 18


class CellIndex:
    """The index of one segment: positions go up with every tuple that is taken in."""

    def __init__(self, capacity: int = 1024) -> None:
        from handfast.kernels.index import chains

        self._loops = chains
        self._count = 0
        self._turn = 0
        self._pieces: tuple[Positions, Positions] | None = None
        self._stored: Cells = np.empty(capacity, np.uint64)
        self._links: Positions = np.empty(capacity, np.int64)
        self._present: NDArray[np.bool_] = np.empty(capacity, np.bool_)
        self._make_heads(capacity)

    def insert(self, keys: Keys) -> None:
        """Take in the next tuples; one that is not present can never match, or is kept elsewhere."""
        cells, present = keys.cells, keys.present
        start, stop = self._count, self._count + len(cells)
        if stop > len(self._links):
            self._grow(stop)
        self._present[start:stop] = present
        self._loops.insert(cells, present, start, self._heads, self._links, self._stored)
        self._count = stop

    def expire(self, oldest: int) -> None:
        """Nothing to forget: no range reaches so far back, and a walk ends where its range does."""

    def probe(self, keys: Keys, ranges: Ranges) -> Iterator[tuple[Positions, Positions]]:
        """The candidates of each probing tuple within its range, as (probe, position) pairs, piece by piece.

        A piece is overwritten by the next one. New memory for each would have the threads wait for each other: the
        system gives it to one at a time.
        """
        order = _by_stop(np.flatnonzero(keys.present), ranges)
        none = np.zeros(len(keys.base), np.int64)
        first, second = [*keys.ranges, (none, none), (none, none)][:2]
        self._turn += 1
        state = np.array([0, 0, 0, self._loops.NOT_STARTED], np.int64)
        while state[0] < len(order):
            probes, found = self._room
            n = self._loops.probe(
                keys.base,
                *first,
                *second,
                order,
                ranges.starts,
                ranges.stops,
                self._heads,
                self._links,
                self._stored,
                self._cursors,
                self._turns,
                self._turn,
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
        self._make_heads(capacity)
        self._loops.insert(stored, present, 0, self._heads, self._links, self._stored)

    def _make_heads(self, capacity: int) -> None:
        slots = _power_of_two(capacity)
        self._heads: Positions = np.full(slots, -1, np.int64)
        self._cursors: Positions = np.empty(slots, np.int64)  # where walks begin, in the slots of this turn
        self._turns: Positions = np.zeros(slots, np.int64)


def _by_stop(places: Positions, ranges: Ranges) -> Positions:
    """The probing tuples whose ranges hold anything, the one whose range stops last first."""
    places = places[ranges.starts[places] < ranges.stops[places]]
    stops = ranges.stops[places]
    return places[::-1] if goes_up(stops) else places[np.argsort(-stops, kind="stable")]


def _power_of_two(n: int) -> int:
    return 1 << max(10, (n - 1).bit_length())
