"""Sorted basic blocks: the merge join of a band [000 §5].

The tuples of a basic block are sorted, once, by their equality keys and then by the key of the band, and so are the
tuples that probe: a sweep over both finds where each one's candidates lie, side by side. The columns that the condition
reads are sorted along, so it is decided there, in vectors. Small blocks are merged into larger ones, so that there are
few to sweep, but none grows longer than the windows that are probed: a tuple meets only the blocks that its own reaches
into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.deciding import Deciding, Room, decided, roomy
from handfast.kernels.index.keys import ConditionKeys, KeyMaker, Numbers
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.index.wild import WildTuples
from handfast.kernels.values import Array, Status, address
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
    columns: Columns

    @property
    def dead(self) -> NDArray[np.bool_]:
        return self.plain.dead

    @property
    def some_unplaced(self) -> bool:
        return bool(np.count_nonzero(self.plain.wild))


@dataclass(frozen=True)
class _Block:
    """Tuples in the order of their keys, with their values; the numbers of the first and the last to come.

    A tuple's number is `first` plus its position. Positions and values have room for a vector behind the last one.
    """

    groups: Numbers
    keys: BandNumbers
    first: int
    last: int
    positions: NDArray[np.int32]
    values: list[Array]
    statuses: list[Status | None]

    @staticmethod
    def of(
        groups: Numbers,
        keys: BandNumbers,
        numbers: Positions,
        values: Sequence[Array],
        statuses: Sequence[Status | None],
    ) -> _Block:
        """Tuples that are sorted already, with room behind them."""
        first = int(numbers.min())
        roomed = [None if status is None else _roomed(status) for status in statuses]
        positions = _roomed((numbers - first).astype(np.int32))
        return _Block(groups, keys, first, int(numbers.max()), positions, list(map(_roomed, values)), roomed)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def numbers(self) -> Positions:
        return self.positions[: len(self)].astype(np.int64) + self.first

    @cached_property
    def value_words(self) -> list[int]:
        return [self.first, address(self.positions), *(address(value) for value in self.values)]

    @cached_property
    def nullable(self) -> bool:
        return any(status is not None for status in self.statuses)

    def status_words(self, zeros: Status) -> list[int]:
        return [address(zeros if status is None else status) for status in self.statuses]

    def taken(self, rows: Positions) -> _Block:
        """The tuples at these places, which stay in their order."""
        statuses = [None if status is None else status[rows] for status in self.statuses]
        values = [value[rows] for value in self.values]
        return _Block.of(self.groups[rows], self.keys[rows], self.numbers[rows], values, statuses)

    def pieces(self, length: int) -> Iterator[_Block]:
        """The block cut into shorter ones of neighbouring tuples."""
        cuts = self.positions[: len(self)] // length
        order = np.argsort(cuts, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(cuts[order])) + 1):
            yield self.taken(own)


def _roomed(values: NDArray[Any]) -> Any:
    array = roomy(values.dtype, len(values))
    array[: len(values)] = values
    return array


class SortedBlocks:
    """An `Index` by a band, or by equalities and a band; a second band is a condition like any other."""

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        from handfast.kernels.index import merging

        self._loops = merging
        self._side = side
        self._maker = KeyMaker(conditions, side)
        self._deciding = Deciding(conditions, side)
        self._wild = WildTuples()
        self._capacity = capacity
        self._rooms: list[Room] = []  # of searches that are over; one may begin while another is under way
        self._shift = 0  # the number of position 0
        self._oldest = 0
        self._stop = 0
        self._longest = _BASIC  # how many tuples a block may have: about as many as a probe reaches
        self._blocks: list[_Block] = []

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return bool(conditions.bands)

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        known = set(decided(conditions))
        return tuple(part for part in conditions.parts if part not in known)

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        by = "the equalities and the first band" if conditions.equalities else "the first band"
        return f"merge of blocks sorted by {by}", "it was asked for"

    def keys(self, columns: Columns) -> SortKeys:
        plain = self._maker.make(columns)
        return SortKeys(plain, *self._maker.scales[0].bounds(self._side, plain.bands[0]), columns)

    def reserve(self, count: int) -> None:
        pass  # a block has the room of its own tuples

    def insert(self, keys: SortKeys) -> None:
        plain = keys.plain
        rows = np.flatnonzero(plain.present)
        self._wild.insert(plain)
        if len(rows):
            groups, own = plain.groups[rows], plain.bands[0].keys[rows]
            order = _by_keys(groups, own)
            rows = rows[order]
            self._blocks.append(
                _Block.of(groups[order], own[order], self._stop + rows, *self._deciding.read(keys.columns, rows))
            )
        self._stop += len(plain.present)
        self._merge()

    def expire(self, oldest: int) -> None:
        self._oldest = oldest + self._shift
        self._blocks = [block for block in self._blocks if block.last >= self._oldest]

    def drop(self, count: int) -> None:
        self._shift += count
        self._wild.drop(count)

    def candidates(self, keys: SortKeys, ranges: Ranges) -> Iterator[Pairs]:
        probes = np.flatnonzero(keys.plain.present & (ranges.starts < ranges.stops))
        if not len(probes):
            return
        self._fit(ranges.sizes[probes])
        if not self._blocks:
            return
        probes = probes[_by_keys(keys.plain.groups[probes], keys.low[probes])]
        numbered = Ranges(ranges.starts + self._shift, ranges.stops + self._shift, ranges.exact)
        blocks = list(self._blocks)
        room = self._rooms.pop() if self._rooms else Room(self._capacity)
        runs = self._runs(blocks, keys, probes, numbered, room)
        for places, numbers in self._deciding.pairs(keys.columns, numbered, blocks, room, runs):
            numbers -= self._shift
            yield places, numbers
        self._rooms.append(room)

    def unplaced(self, keys: SortKeys, ranges: Ranges) -> Iterator[Pairs]:
        return self._wild.candidates(keys.plain, ranges)

    def _runs(
        self, blocks: Sequence[_Block], keys: SortKeys, probes: Positions, ranges: Ranges, room: Room
    ) -> Iterator[tuple[int, int]]:
        """As many runs as there is room for, and again: first those in blocks that lie in all ranges, then others."""
        sweep: Any = self._loops.sweep
        least, most = int(ranges.starts[probes].max()), int(ranges.stops[probes].min())
        within = [block.first >= least and block.last < most for block in blocks]
        for wanted in (True, False):
            n = 0
            for number, block in enumerate(blocks):
                if within[number] != wanted:
                    continue
                state = np.zeros(3, np.int64)
                while state[0] < len(probes):
                    n = sweep(
                        probes, keys.plain.groups, keys.low, keys.high, ranges.starts, ranges.stops,
                        number, block.first, block.last, block.groups, block.keys, *room.runs, n, state,
                    )  # fmt: skip
                    if state[0] < len(probes):
                        yield (n if wanted else 0), n
                        n = 0
            if n:
                yield (n if wanted else 0), n

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
            live = [block.taken(np.flatnonzero(block.numbers >= self._oldest)) for block in _alive(run, self._oldest)]
            self._blocks[-_FAN:] = [self._merged(live)] if live else []

    def _merged(self, run: Sequence[_Block]) -> _Block:
        """Sorted blocks as one."""
        groups, keys = np.concatenate([own.groups for own in run]), np.concatenate([own.keys for own in run])
        order = self._loops.merged(groups, keys, np.cumsum([len(own) for own in run]))
        values = [np.concatenate([own.values[k][: len(own)] for own in run])[order] for k in range(len(run[0].values))]
        statuses: list[Status | None] = []
        for k in range(len(values)):
            known = [own.statuses[k] for own in run]
            if all(status is None for status in known):
                statuses.append(None)
                continue
            filled = [
                np.zeros(len(own), np.uint8) if status is None else status[: len(own)]
                for own, status in zip(run, known, strict=True)
            ]
            statuses.append(np.concatenate(filled)[order])
        return _Block.of(
            groups[order], keys[order], np.concatenate([own.numbers for own in run])[order], values, statuses
        )


def _alive(blocks: Sequence[_Block], oldest: int) -> list[_Block]:
    """The blocks that have tuples which have not expired."""
    return [block for block in blocks if block.last >= oldest]


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
