"""Sorted basic blocks: the merge join of a band [000 §5].

The tuples of a basic block are sorted by their equality keys and then by the key of the band, and so are the tuples
that probe: a sweep over both finds all candidates. Small blocks are merged into larger ones, so that there are few to
sweep, but none grows longer than the windows that are probed: a tuple meets only the blocks that its own reaches into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.course import Ranges
from handfast.kernels.index.keys import Cells, Keys
from handfast.kernels.pairs import Positions

_BASIC = 128  # tuples of a basic block
_FAN = 8  # so many neighbouring blocks of one size become one
_PATIENCE = 16  # so many pushes or more go by before blocks become much shorter
_CAPACITY = 1 << 18

Numbers = NDArray[Any]  # of one type, integers or doubles


@dataclass(frozen=True, slots=True)
class _Block:
    """Tuples in the order of their keys, and the first and the last of their positions."""

    groups: Cells
    keys: Numbers
    positions: Positions
    first: int
    last: int

    @staticmethod
    def of(groups: Cells, keys: Numbers, positions: Positions) -> _Block:
        order = _by_keys(groups, keys)
        return _Block(groups[order], keys[order], positions[order], int(positions.min()), int(positions.max()))

    def __len__(self) -> int:
        return len(self.positions)

    def pieces(self, length: int) -> Iterator[_Block]:
        """The block cut into shorter ones of neighbouring positions."""
        numbers = (self.positions - self.first) // length
        order = np.argsort(numbers, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            positions = self.positions[own]
            yield _Block(self.groups[own], self.keys[own], positions, int(positions.min()), int(positions.max()))


class SortedBlocks:
    """The sorted blocks of one segment: positions go up with every tuple that is taken in."""

    def __init__(self) -> None:
        from handfast.kernels.index import merging

        self._loops = merging
        self._oldest = 0
        self._count = 0
        self._longest = _BASIC  # how many tuples a block may have: about as many as a probe reaches
        self._blocks: list[_Block] = []

    def insert(self, keys: Keys) -> None:
        """Take in the next tuples; one that is not present can never match, or is kept elsewhere."""
        assert keys.line is not None, "the plan asks for a merge join where there is a band"
        positions = self._count + np.flatnonzero(keys.present)
        self._count += len(keys.present)
        if len(positions):
            self._blocks.append(_Block.of(keys.base[keys.present], keys.line.keys[keys.present], positions))
            self._merge()

    def expire(self, oldest: int) -> None:
        """Forget the tuples before this position."""
        self._oldest = oldest
        self._blocks = [block for block in self._blocks if block.last >= oldest]

    def probe(self, keys: Keys, ranges: Ranges) -> Iterator[tuple[Positions, Positions]]:
        """The candidates of each probing tuple within its range, as (probe, position) pairs, piece by piece."""
        probes = np.flatnonzero(keys.present & (ranges.starts < ranges.stops))
        if keys.line is None or not len(probes):
            return
        self._fit(ranges.sizes[probes])
        low, high = keys.line.low, keys.line.high
        probes = probes[_by_keys(keys.base[probes], low[probes])]
        # which probes reach into a block: those between two places in the order of their ranges
        by_range = np.lexsort((ranges.stops[probes], ranges.starts[probes]))
        starts = np.minimum.accumulate(ranges.starts[probes][by_range][::-1])[::-1]
        stops = np.maximum.accumulate(ranges.stops[probes][by_range])
        at, found = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
        n = 0
        for block in self._blocks:
            first = int(np.searchsorted(stops, block.first, side="right"))
            end = int(np.searchsorted(starts, block.last, side="right"))
            if first >= end:
                continue
            some = probes if end - first == len(probes) else probes[np.sort(by_range[first:end])]
            state = np.array([0, 0, -1], np.int64)
            while True:
                n = self._loops.sweep(
                    some,
                    keys.base,
                    low,
                    high,
                    ranges.starts,
                    ranges.stops,
                    block.groups,
                    block.keys,
                    block.positions,
                    at,
                    found,
                    n,
                    state,
                )
                if state[0] == len(some):
                    break
                yield at, found
                at, found = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
                n = 0
        if n:
            yield at[:n], found[:n]

    def _fit(self, sizes: Positions) -> None:
        """Cut blocks that are much longer than what the probes reach; how far they do also limits what is merged."""
        # it falls slowly: one push that reaches little must not cut what the next ones sweep
        self._longest = max(_BASIC, int(sizes.mean()), self._longest - self._longest // _PATIENCE)
        if any(len(block) > _FAN * self._longest for block in self._blocks):
            self._blocks = [
                piece
                for block in self._blocks
                for piece in (block.pieces(self._longest) if len(block) > _FAN * self._longest else [block])
            ]

    def _merge(self) -> None:
        """Merge neighbours of one size; what has expired falls out."""
        while len(self._blocks) >= _FAN and len({_size(len(block)) for block in self._blocks[-_FAN:]}) == 1:
            run = self._blocks[-_FAN:]
            if sum(map(len, run)) > _FAN * self._longest:
                return
            groups = np.concatenate([block.groups for block in run])
            keys = np.concatenate([block.keys for block in run])
            positions = np.concatenate([block.positions for block in run])
            live = positions >= self._oldest
            merged = [_Block.of(groups[live], keys[live], positions[live])] if live.any() else []
            self._blocks[-_FAN:] = merged


def _by_keys(groups: Cells, keys: Numbers) -> Positions:
    """The order of the groups, and in a group of the keys; where there are no equalities, there is one group."""
    if len(groups) and (groups == groups[0]).all():
        return np.argsort(keys, kind="stable")
    return np.lexsort((keys, groups))


def _size(count: int) -> int:
    """A block's size on a scale of powers of the fan."""
    size, limit = 0, _BASIC
    while count > limit:
        size, limit = size + 1, limit * _FAN
    return size
