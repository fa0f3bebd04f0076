"""Sorted basic blocks: the merge join of a band [000 §5].

The tuples of a basic block are sorted by their equality keys and then by the key of the band, and so are the tuples
that probe: a sweep over both finds all candidates. Small blocks are merged into larger ones, so that there are few to
sweep, but none grows longer than the windows that are probed: a tuple meets only the blocks that its own reaches into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.keys import ConditionKeys, KeyMaker, Numbers
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.index.wild import WildTuples
from handfast.spec.expression import Expr

_BASIC = 128  # tuples of a basic block
_FAN = 8  # so many neighbouring blocks of one size become one
_PATIENCE = 16  # so many pushes or more go by before blocks become much shorter

BandNumbers = NDArray[Any]  # keys of a band: all integers, or all doubles


@dataclass(frozen=True, slots=True)
class SortKeys:
    """What tuples are sorted by, and between which keys of the first band, `low` and `high`, their partners are."""

    plain: ConditionKeys
    low: BandNumbers
    high: BandNumbers

    @property
    def dead(self) -> NDArray[np.bool_]:
        return self.plain.dead

    @property
    def some_unplaced(self) -> bool:
        return bool(self.plain.wild.any())


@dataclass(frozen=True, slots=True)
class _Block:
    """Tuples in the order of their keys, and the first and the last of their positions."""

    groups: Numbers
    keys: BandNumbers
    positions: Positions
    first: int
    last: int

    @staticmethod
    def of(groups: Numbers, keys: BandNumbers, positions: Positions) -> _Block:
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
    """An `Index` by a band, or by equalities and a band; of a second band it makes no use."""

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        from handfast.kernels.index import merging

        self._loops = merging
        self._side = side
        self._maker = KeyMaker(conditions, side)
        self._wild = WildTuples()
        self._capacity = capacity
        self._oldest = 0
        self._count = 0
        self._longest = _BASIC  # how many tuples a block may have: about as many as a probe reaches
        self._blocks: list[_Block] = []

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return bool(conditions.bands)

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        return conditions.parts

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        by = "the equalities and the first band" if conditions.equalities else "the first band"
        return f"merge of blocks sorted by {by}", "it was asked for"

    def keys(self, columns: Columns) -> SortKeys:
        plain = self._maker.make(columns)
        return SortKeys(plain, *self._maker.scales[0].bounds(self._side, plain.bands[0]))

    def insert(self, keys: SortKeys) -> None:
        plain, present = keys.plain, keys.plain.present
        positions = self._count + np.flatnonzero(present)
        self._count += len(present)
        self._wild.insert(plain)
        if len(positions):
            self._blocks.append(_Block.of(plain.groups[present], plain.bands[0].keys[present], positions))
            self._merge()

    def expire(self, oldest: int) -> None:
        self._oldest = oldest
        self._blocks = [block for block in self._blocks if block.last >= oldest]

    def drop(self, count: int) -> None:
        self._blocks = [
            replace(block, positions=block.positions - count, first=block.first - count, last=block.last - count)
            for block in self._blocks
        ]
        self._oldest, self._count = self._oldest - count, self._count - count
        self._wild.drop(count)

    def candidates(self, keys: SortKeys, ranges: Ranges) -> Iterator[Pairs]:
        return self._in_blocks(keys, ranges)

    def unplaced(self, keys: SortKeys, ranges: Ranges) -> Iterator[Pairs]:
        return self._wild.candidates(keys.plain, ranges)

    def _in_blocks(self, keys: SortKeys, ranges: Ranges) -> Iterator[Pairs]:
        groups, low, high = keys.plain.groups, keys.low, keys.high
        probes = np.flatnonzero(keys.plain.present & (ranges.starts < ranges.stops))
        if not len(probes):
            return
        self._fit(ranges.sizes[probes])
        probes = probes[_by_keys(groups[probes], low[probes])]
        # which probes reach into a block: those between two places in the order of their ranges
        by_range = np.lexsort((ranges.stops[probes], ranges.starts[probes]))
        starts = np.minimum.accumulate(ranges.starts[probes][by_range][::-1])[::-1]
        stops = np.maximum.accumulate(ranges.stops[probes][by_range])
        at, found = self._room()
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
                    groups,
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
                at, found = self._room()
                n = 0
        if n:
            yield at[:n], found[:n]

    def _room(self) -> Pairs:
        return np.empty(self._capacity, np.int64), np.empty(self._capacity, np.int64)

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


def _by_keys(groups: Numbers, keys: BandNumbers) -> Positions:
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
