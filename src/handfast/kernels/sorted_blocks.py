"""Sorted basic blocks: the merge join of a band [000 §5].

The tuples of a basic block are sorted by their key, and so are the tuples that probe: a sweep over both finds all
candidates. Small blocks are merged into larger ones, so that there are few to sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.keys import Keys
from handfast.kernels.pairs import Positions

_BASIC = 128  # tuples of a basic block
_FAN = 8  # so many neighbouring blocks of one size become one
_CAPACITY = 1 << 18

Numbers = NDArray[Any]  # of one type, integers or doubles


class SortedBlocks:
    """The sorted blocks of one segment: positions go up, `oldest` is the lowest that still counts."""

    def __init__(self) -> None:
        from handfast.kernels import merging

        self._loops = merging
        self.oldest = 0
        self._count = 0
        self._blocks: list[tuple[Numbers, Positions]] = []  # keys and positions, by key

    def insert(self, keys: Keys) -> None:
        """Take in the next tuples; one that is not present can never match, or is kept elsewhere."""
        assert keys.line is not None, "the plan asks for a merge join where there is a band"
        positions = self._count + np.flatnonzero(keys.present)
        self._count += len(keys.present)
        if len(positions):
            self._blocks.append(_sorted(keys.line.keys[keys.present], positions))
            self._merge()

    def probe(self, keys: Keys) -> Iterator[tuple[Positions, Positions]]:
        """The candidates of each probing tuple, as (probe, position) pairs, piece by piece."""
        self._expire()
        probes = np.flatnonzero(keys.present)
        if keys.line is None or not len(probes):
            return
        probes = probes[np.argsort(keys.line.low[probes], kind="stable")]
        low, high = keys.line.low[probes], keys.line.high[probes]
        for stored, positions in self._blocks:
            state = np.array([0, 0, -1], np.int64)
            while state[0] < len(low):
                at, found = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
                n = self._loops.sweep(low, high, probes, stored, positions, self.oldest, at, found, state)
                if n:
                    yield at[:n], found[:n]

    def _expire(self) -> None:
        self._blocks = [block for block in self._blocks if int(block[1].max()) >= self.oldest]

    def _merge(self) -> None:
        """Merge neighbours of one size; what has expired falls out."""
        while len(self._blocks) >= _FAN and len({_size(len(keys)) for keys, _ in self._blocks[-_FAN:]}) == 1:
            keys = np.concatenate([keys for keys, _ in self._blocks[-_FAN:]])
            positions = np.concatenate([positions for _, positions in self._blocks[-_FAN:]])
            live = positions >= self.oldest
            self._blocks[-_FAN:] = [_sorted(keys[live], positions[live])] if live.any() else []


def _sorted(keys: Numbers, positions: Positions) -> tuple[Numbers, Positions]:
    order = np.argsort(keys, kind="stable")
    return keys[order], positions[order]


def _size(count: int) -> int:
    """A block's size on a scale of powers of the fan."""
    size, limit = 0, _BASIC
    while count > limit:
        size, limit = size + 1, limit * _FAN
    return size
