"""The band index: panes of tuples that lie side by side by cell, so that a tuple tries its candidates in vectors.

What is inserted becomes a small pane. Neighbouring panes of one size are merged into a larger one, a little with every
insertion; until that is done, the small ones are searched. So panes are few and large, and no insertion takes long. No
pane grows longer than a part of the window, so that it expires in time.

Beside the tuples lie those of their columns that the condition reads: it is decided where they are found. What cannot
be decided there (the order of strings, what no kernel can compute) is left for those that are found.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.bands import FINE
from handfast.kernels.index.deciding import Deciding, Room, decided
from handfast.kernels.index.keys import ConditionKeys, KeyMaker, Numbers
from handfast.kernels.index.pane import FAN, Pane, Source, at_once, building
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.index.wild import WildTuples
from handfast.spec.expression import Expr

_BASIC = 1 << 8  # tuples that a pane may always have
_PART = 6  # and otherwise at most this part of what a probing tuple reaches,
_PART_AT_FIRST = 2  # or this one until something expires: then no pane is in the way of a later one
_PATIENCE = 16  # so many probes or more go by before panes become much shorter
_PACE = 4  # tuples that every merge goes on by for each that is inserted
_LEAST = 1 << 12  # and by so many at the least
_RUNS = 1 << 15  # that are sought at a time
_FEW_RUNS = 1 << 12  # for which a call of a kernel of their own takes longer than a look at their ranges
_IN_CACHE = 1 << 14  # tuples, of which it does not matter in which order they are tried
_FEW = 64  # probing tuples whose pairs are put in order: people read matches from the oldest to the newest
_STEP = 0x9E3779B1  # between stripes where equalities spread them: odd, so that no two of them coincide
_HALF = np.uint64(0xFFFFFFFF)

Merge = tuple[list[Pane], Generator[int, None, Pane]]


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class PaneKeys:
    """Where tuples lie, and where partners can lie: in `stripes` stripes from `stripe` on, from `low` to `high`."""

    plain: ConditionKeys
    codes: Numbers
    stripe: Numbers
    stripes: Positions
    low: Positions
    high: Positions
    columns: Columns

    @property
    def dead(self) -> NDArray[np.bool_]:
        return self.plain.dead

    @property
    def some_unplaced(self) -> bool:
        return bool(np.count_nonzero(self.plain.wild))


class PaneIndex:
    """An `Index` by bands, or by equalities and bands. More than two bands are conditions like any other."""

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        from handfast.kernels.index import pane_loops

        self._loops = pane_loops
        self._side = side
        self._maker = KeyMaker(conditions, side)
        self._wild = WildTuples()
        self._capacity = capacity
        self._deciding = Deciding(conditions, side)
        self._rooms: list[Room] = []  # of searches that are over; one may begin while another is under way
        (first, *others) = self._maker.scales
        self._striped = bool(others)
        self._away, self._per_key = first.away(side), first.per_key(FINE)
        self._term = None if others or conditions.equalities else first.only_term(side)
        self._step = np.uint64(_STEP if conditions.equalities else 1)
        self._panes: list[Pane] = []
        self._merges: dict[int, Merge] = {}  # by the size of what is merged
        self._reach: int | None = None  # how many tuples a probing tuple reaches, as far as is known
        self._shift = 0  # the number of position 0
        self._oldest = 0
        self._stop = 0

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return bool(conditions.bands)

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        known = set(decided(conditions))
        return tuple(part for part in conditions.parts if part not in known)

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        equalities, bands = len(conditions.equalities), min(2, len(conditions.bands))
        parts = [f"hash on {equalities} equalit{'y' if equalities == 1 else 'ies'}"] if equalities else []
        parts += [f"buckets on {bands} band{'' if bands == 1 else 's'}"]
        return " and ".join(parts), "it proposes candidates; the whole predicate is checked on each, as written"

    def keys(self, columns: Columns) -> PaneKeys:
        if self._term is not None and (quick := self._integer_keys(*self._term, columns)) is not None:
            return quick
        plain = self._maker.make(columns)
        return self._striped_keys(plain, columns) if self._striped else self._keys(plain, columns)

    def _integer_keys(self, position: int, factor: int, limit: int, columns: Columns) -> PaneKeys | None:
        """Where there is one band and the key one integer: the usual keys in one go, unless some tuple has none."""
        values = columns.values[position]
        if columns.statuses[position] is not None or values.dtype.kind == "V":
            return None
        count = len(columns)
        none, groups = np.zeros(count, np.bool_), np.zeros(count, np.uint64)
        places = _places(count)
        values = values.astype(np.int64, copy=False)
        if not self._loops.integer_cells(values, factor, limit, groups, *self._away, self._per_key, *places):
            return None
        return PaneKeys(ConditionKeys(groups, (), ~none, none, none), *places, columns)

    def _keys(self, plain: ConditionKeys, columns: Columns) -> PaneKeys:
        """Where there is one band."""
        places = _places(len(columns))
        self._loops.cells(plain.groups, plain.bands[0].keys, *self._away, self._per_key, *places)
        return PaneKeys(plain, *places, columns)

    def _striped_keys(self, plain: ConditionKeys, columns: Columns) -> PaneKeys:
        """Where there are two bands: the first says the stripe, the other one the column."""
        (first, second, *_), (across, along, *_) = self._maker.scales, plain.bands
        groups, (low, high) = plain.groups >> np.uint64(32), first.bounds(self._side, across)
        begin = first.cells(low)
        stripes = first.cells(high) - begin + 1
        stripe = groups + begin.view(np.uint64) * self._step
        at = groups + first.cells(across.keys).view(np.uint64) * self._step
        columns_at = second.cells(along.keys, FINE).view(np.uint64)
        codes = (at << np.uint64(32)) | (columns_at & _HALF)
        low, high = (second.cells(bound, FINE) for bound in second.bounds(self._side, along))
        return PaneKeys(plain, codes, stripe, stripes, low, high, columns)

    def reserve(self, count: int) -> None:
        pass  # a pane has the room of its own tuples

    def insert(self, keys: PaneKeys) -> None:
        present, columns = keys.plain.present, keys.columns
        count = len(present)
        self._wild.insert(keys.plain)
        every = np.count_nonzero(present) == count
        positions = np.arange(count) if every else np.flatnonzero(present)
        if len(positions):
            some = slice(None) if every else positions
            source = Source(self._stop, keys.codes[some], positions, *self._deciding.read(columns, some))
            self._panes += self._pieces(source, self._stop + count)
        self._stop += count
        self._go_on(max(_LEAST, _PACE * count))

    def expire(self, oldest: int) -> None:
        self._oldest = oldest + self._shift
        self._panes = [pane for pane in self._panes if pane.end > self._oldest]
        self._settle()

    def drop(self, count: int) -> None:
        self._shift += count
        self._wild.drop(count)

    def candidates(self, keys: PaneKeys, ranges: Ranges) -> Iterator[Pairs]:
        order: Positions = np.empty(len(ranges.starts), np.int64)
        count, reached = self._loops.probing(keys.plain.present, ranges.starts, ranges.stops, order)
        if not count or not self._panes:
            return
        order = order[:count]
        self._fit(reached // count)
        live = self._stop - self._oldest
        if len(order) > _FEW and self._longest * _PART > live > _IN_CACHE:  # neighbours try the same cells
            order = order[np.argsort((keys.stripe[order] << np.uint64(32)) | (keys.low[order].view(np.uint64) & _HALF))]
        search = _Search(self, keys, Ranges(ranges.starts + self._shift, ranges.stops + self._shift, ranges.exact))
        room = self._rooms.pop() if self._rooms else Room(self._capacity, 2 * _RUNS)
        for places, numbers in search.pairs(order, room):
            numbers -= self._shift
            if len(order) <= _FEW:
                by_place = np.lexsort((numbers, places))
                places, numbers = places[by_place], numbers[by_place]
            yield places, numbers
        self._rooms.append(room)

    def unplaced(self, keys: PaneKeys, ranges: Ranges) -> Iterator[Pairs]:
        return self._wild.candidates(keys.plain, ranges)

    # -- how long panes are ------------------------------------------------------------------------

    @property
    def _longest(self) -> int:
        """How many tuples a pane may have."""
        live = self._stop - self._oldest
        reach = live if self._reach is None else min(live, self._reach)
        return max(_BASIC, reach // (_PART_AT_FIRST if self._oldest == 0 else _PART))

    def _pieces(self, source: Source, end: int) -> Iterator[Pane]:
        """Panes of neighbouring tuples, none longer than it may be."""
        first, longest = source.first, self._longest if self._reach is not None else end - source.first
        if end - first <= longest:
            yield at_once(self._loops, source, first, end)
            return
        for start in range(first, end, longest):
            stop = min(start + longest, end)
            a, z = np.searchsorted(source.positions, [start - first, stop - first])
            if a < z:
                yield at_once(self._loops, source.part(int(a), int(z)), start, stop)

    def _fit(self, size: int) -> None:
        """Cut panes that are much longer than what probing tuples reach."""
        before = self._reach or 0
        # it falls slowly: one push that reaches little must not cut what the next ones search
        self._reach = max(size, before - before // _PATIENCE - 1)
        most = FAN * self._longest
        cut = {id(pane) for pane in self._panes if pane.end - pane.first > most and pane.codes is not None}
        if cut:
            self._merges = {size: own for size, own in self._merges.items() if not cut & {id(p) for p in own[0]}}
            self._panes = [
                piece
                for pane in self._panes
                for piece in (self._pieces(pane.source, pane.end) if id(pane) in cut else [pane])
            ]

    def _settle(self) -> None:
        """Settle the panes that are so long that they are not merged any more.

        Should they turn out longer than they may be, they are searched as they are until they expire. Nothing is
        settled before something has expired: until then panes become ever longer.
        """
        if self._reach is None or not self._oldest:
            return
        least, most = self._longest // 2, FAN * self._longest
        merged = {id(pane) for panes, _ in self._merges.values() for pane in panes}
        self._panes = [
            pane.settled
            if pane.codes is not None and least < pane.end - pane.first <= most and id(pane) not in merged
            else pane
            for pane in self._panes
        ]

    # -- merging -----------------------------------------------------------------------------------

    def _go_on(self, amount: int) -> None:
        """Go on with every merge by so many tuples, then begin those that are due."""
        for size, (merged, work) in list(self._merges.items()):
            done = 0
            try:
                while done < amount:
                    done += next(work)
            except StopIteration as end:
                del self._merges[size]
                self._replace(merged, end.value)
        while (due := self._due()) is not None:
            size, panes = due
            work = building(self._loops, [pane.unsorted for pane in panes], panes[0].first, panes[-1].end)
            self._merges[size] = panes, work

    def _replace(self, merged: list[Pane], by: Pane) -> None:
        """Put the merged pane in the place of those that are still there; the oldest may have expired meanwhile."""
        gone = {id(pane) for pane in merged}
        at = next((k for k, pane in enumerate(self._panes) if id(pane) in gone), None)
        if at is not None:
            kept = [pane for pane in self._panes if id(pane) not in gone]
            self._panes = [*kept[:at], by, *kept[at:]]

    def _due(self) -> tuple[int, list[Pane]] | None:
        """The newest panes of one size that are to be merged, if none of that size are being merged.

        They are so many that they come to the next size, or as many as come to about the length that panes may have.
        """
        panes, longest, end = self._panes, self._longest, len(self._panes)
        while end > 1:
            size = panes[end - 1].size
            start = end - 1
            while start and end - start < FAN and panes[start - 1].size == size:
                start -= 1
            long = panes[end - 1].end - panes[start].first
            whole = end - start == FAN or (end - start > 1 and 2 * long > longest)
            settled = any(pane.codes is None for pane in panes[start:end])
            if whole and size not in self._merges and long <= longest and not settled:
                return size, panes[start:end]
            end -= 1
        return None


class _Search:
    """One probe of the panes of an index."""

    def __init__(self, index: PaneIndex, keys: PaneKeys, ranges: Ranges) -> None:
        self._keys, self._ranges = keys, ranges
        self._loops, self._step, self._deciding = index._loops, index._step, index._deciding
        self._panes = list(index._panes)
        self._cells = np.array([pane.cell_words for pane in self._panes], np.int64)
        self._step_of_probes = max(64, _RUNS // (2 * len(self._panes)))

    def pairs(self, order: Positions, room: Room) -> Iterator[Pairs]:
        """What is found for probing tuples: their places, and the numbers of stored ones."""
        runs = self._runs(order, room)
        return self._deciding.pairs(self._keys.columns, self._ranges, self._panes, room, runs)

    def _runs(self, order: Positions, room: Room) -> Iterator[tuple[int, int]]:
        """The runs that some of the probing tuples try, and again: those in panes that lie in all ranges come first."""
        keys, ranges = self._keys, self._ranges
        cut = np.zeros(1, np.int64)
        first = 0
        while first < len(order):
            stop = min(first + self._step_of_probes, len(order))
            count = self._loops.runs(
                self._cells, order, first, stop, keys.stripe, keys.stripes, self._step, keys.low, keys.high,
                ranges.starts, ranges.stops, *room.runs, cut,
            )  # fmt: skip
            if count < 0:
                room.grow()
            else:
                first = stop
                yield int(cut[0]) if count > _FEW_RUNS else 0, count  # all by one call, and each looked at in its range


def _places(count: int) -> tuple[Numbers, Numbers, Positions, Positions, Positions]:
    """Room for what is said of where so many tuples lie: codes, stripe, stripes, low, high."""
    codes, stripe = np.empty((2, count), np.uint64)
    stripes, low, high = np.empty((3, count), np.int64)
    return codes, stripe, stripes, low, high
