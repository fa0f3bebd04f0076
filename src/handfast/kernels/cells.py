"""A chained index over cells: equal keys and neighbouring bands share cells.

A tuple lies in one cell, a number made of its equality keys and of the buckets of its band keys. Chains run from the
newest tuple to the oldest, so the first expired one ends a walk. What is found are candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from handfast.kernels.pairs import Positions

# odd multipliers: cells of neighbouring buckets of one key never coincide, so no probe meets a tuple twice
FIRST_STRIDE = 0x9E3779B97F4A7C15
SECOND_STRIDE = 0xC2B2AE3D27D4EB4F
_SLOT = 0xD6E8FEB86659FD93
_NOT_STARTED = -2
_CAPACITY = 1 << 18

Cells = NDArray[np.uint64]
Buckets = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _slot(cell, mask):  # type: ignore[no-untyped-def]
    cell = (cell ^ (cell >> np.uint64(32))) * np.uint64(_SLOT)
    return np.int64((cell ^ (cell >> np.uint64(29))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def _insert(cells, present, start, heads, links, stored):  # type: ignore[no-untyped-def]
    mask = heads.shape[0] - 1
    for k in range(cells.shape[0]):
        at = start + k
        stored[at] = cells[k]
        links[at] = -1
        if present[k]:
            slot = _slot(cells[k], mask)
            links[at] = heads[slot]
            heads[slot] = at


@njit(cache=True, nogil=True)
def _probe(base, low, high, low2, high2, present, oldest, heads, links, stored, probes, found, state):  # type: ignore[no-untyped-def]
    mask = heads.shape[0] - 1
    capacity = probes.shape[0]
    n = 0
    i, b, c, at = state[0], state[1], state[2], state[3]
    count = base.shape[0]
    while i < count:
        if not present[i]:
            i += 1
            at = _NOT_STARTED
            continue
        if at == _NOT_STARTED:
            b = low[i]
            c = low2[i]
        while b <= high[i]:
            while c <= high2[i]:
                cell = base[i] + np.uint64(b) * np.uint64(FIRST_STRIDE) + np.uint64(c) * np.uint64(SECOND_STRIDE)
                if at == _NOT_STARTED:
                    at = heads[_slot(cell, mask)]
                while at >= oldest:
                    if stored[at] == cell:
                        if n == capacity:
                            state[0], state[1], state[2], state[3] = i, b, c, at
                            return n
                        probes[n] = i
                        found[n] = at
                        n += 1
                    at = links[at]
                at = _NOT_STARTED
                c += 1
            c = low2[i]
            b += 1
        i += 1
    state[0], state[1], state[2], state[3] = i, 0, 0, _NOT_STARTED
    return n


class CellIndex:
    """The index of one segment: positions go up, `oldest` is the lowest that still counts."""

    def __init__(self, capacity: int = 1024) -> None:
        self.oldest = 0
        self._count = 0
        self._stored: Cells = np.empty(capacity, np.uint64)
        self._links: Positions = np.empty(capacity, np.int64)
        self._present: NDArray[np.bool_] = np.empty(capacity, np.bool_)
        self._heads: Positions = np.full(_power_of_two(capacity), -1, np.int64)

    def insert(self, cells: Cells, present: NDArray[np.bool_]) -> None:
        """Take in the next tuples; one that is not present can never match, or is kept elsewhere."""
        start, stop = self._count, self._count + len(cells)
        if stop > len(self._links):
            self._grow(stop)
        self._present[start:stop] = present
        _insert(cells, present, start, self._heads, self._links, self._stored)
        self._count = stop

    def probe(
        self, base: Cells, ranges: list[tuple[Buckets, Buckets]], present: NDArray[np.bool_]
    ) -> Iterator[tuple[Positions, Positions]]:
        """The candidates of each probing tuple, as (probe, position) pairs, piece by piece."""
        none = np.zeros(len(base), np.int64)
        first, second = [*ranges, (none, none), (none, none)][:2]
        state = np.array([0, 0, 0, _NOT_STARTED], np.int64)
        while state[0] < len(base):
            probes, found = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
            n = _probe(
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

    def _grow(self, needed: int) -> None:
        capacity = max(2 * len(self._links), needed)
        stored, present = self._stored[: self._count], self._present[: self._count]
        self._stored, self._links = np.empty(capacity, np.uint64), np.empty(capacity, np.int64)
        self._present = np.empty(capacity, np.bool_)
        self._present[: self._count] = present
        self._heads = np.full(_power_of_two(capacity), -1, np.int64)
        _insert(stored, present, 0, self._heads, self._links, self._stored)


def _power_of_two(n: int) -> int:
    return 1 << max(10, (n - 1).bit_length())
