"""The cell index: tuples of equal keys and of one bucket in every band share a cell, and cells are linked lists.

A cell is a number made of a tuple's equality keys and of its buckets. The lists run from the newest tuple to the
oldest, so a search ends at the first tuple that lies before its range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.bands import BucketRange
from handfast.kernels.index.keys import ConditionKeys, KeyMaker, Numbers
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.index.wild import WildTuples

_ROOM = 1024  # tuples that an empty index has room for


@dataclass(frozen=True, slots=True)
class CellKeys:
    """The cell of each tuple, and in each band the buckets that its partners can lie in."""

    plain: ConditionKeys
    cells: Numbers
    partners: tuple[BucketRange, ...]

    @property
    def dead(self) -> NDArray[np.bool_]:
        return self.plain.dead


class CellIndex:
    """An `Index` by equalities, by one or two bands, or by both."""

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        from handfast.kernels.index import chains

        self._loops = chains
        self._side = side
        self._maker = KeyMaker(conditions, side)
        self._wild = WildTuples()
        self._capacity = capacity
        # Where searches that are over wrote their pieces, one over the other, and where the next ones will: new memory
        # for each would have the threads wait for each other, as the system gives it to one at a time.
        self._rooms: list[Pairs] = []
        self._count = 0
        self._probes = 0  # how often the index was probed so far
        self._stored: Numbers = np.empty(_ROOM, np.uint64)
        self._links: Positions = np.empty(_ROOM, np.int64)
        self._present: NDArray[np.bool_] = np.empty(_ROOM, np.bool_)
        self._make_heads(_ROOM)

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return bool(conditions.bands)

    @staticmethod
    def certain(conditions: PairConditions) -> bool:
        return False

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        equalities, bands = len(conditions.equalities), len(conditions.bands)
        parts = [f"hash on {equalities} equalit{'y' if equalities == 1 else 'ies'}"] if equalities else []
        parts += [f"buckets on {bands} band{'' if bands == 1 else 's'}"] if bands else []
        return " and ".join(parts), "it proposes candidates; the whole predicate is checked on each, as written"

    def keys(self, columns: Columns) -> CellKeys:
        plain = self._maker.make(columns)
        cells = plain.groups.copy()
        strides = np.uint64(self._loops.FIRST_STRIDE), np.uint64(self._loops.SECOND_STRIDE)
        for scale, own, stride in zip(self._maker.scales, plain.bands, strides, strict=False):
            cells += scale.buckets(own).astype(np.uint64) * stride
        partners = (scale.partners(self._side, own) for scale, own in zip(self._maker.scales, plain.bands, strict=True))
        return CellKeys(plain, cells, tuple(partners))

    def insert(self, keys: CellKeys) -> None:
        start, stop = self._count, self._count + len(keys.cells)
        if stop > len(self._links):
            self._grow(stop)
        present = keys.plain.present
        self._present[start:stop] = present
        self._loops.insert(keys.cells, present, start, self._heads, self._links, self._stored)
        self._count = stop
        self._wild.insert(keys.plain)

    def expire(self, oldest: int) -> None:
        pass  # a search ends where its range begins, so what has expired is never reached

    def drop(self, count: int) -> None:
        stored, present = self._stored[count : self._count].copy(), self._present[count : self._count].copy()
        self._count -= count
        self._wild.drop(count)
        self._heads[:] = -1
        self._present[: self._count] = present
        self._loops.insert(stored, present, 0, self._heads, self._links, self._stored)

    def candidates(self, keys: CellKeys, ranges: Ranges) -> Iterator[Pairs]:
        yield from self._in_cells(keys, ranges)
        yield from self._wild.candidates(keys.plain, ranges)

    def _in_cells(self, keys: CellKeys, ranges: Ranges) -> Iterator[Pairs]:
        base = keys.plain.groups
        order = _by_stop(np.flatnonzero(keys.plain.present), ranges)
        none = np.zeros(len(base), np.int64)
        first, second = [*keys.partners, (none, none), (none, none)][:2]
        self._probes += 1
        this_probe = self._probes
        places, found = self._rooms.pop() if self._rooms else _new_room(self._capacity)
        state = np.array([0, 0, 0, self._loops.NOT_STARTED], np.int64)
        while state[0] < len(order):
            n = self._loops.probe(
                base,
                *first,
                *second,
                order,
                ranges.starts,
                ranges.stops,
                self._heads,
                self._links,
                self._stored,
                self._cursors,
                self._cursors_of,
                this_probe,
                places,
                found,
                state,
            )
            if n:
                yield places[:n], found[:n]
        self._rooms.append((places, found))

    def _grow(self, needed: int) -> None:
        room = max(2 * len(self._links), needed)
        stored, present = self._stored[: self._count], self._present[: self._count]
        self._stored, self._links = np.empty(room, np.uint64), np.empty(room, np.int64)
        self._present = np.empty(room, np.bool_)
        self._present[: self._count] = present
        self._make_heads(room)
        self._loops.insert(stored, present, 0, self._heads, self._links, self._stored)

    def _make_heads(self, room: int) -> None:
        slots = _power_of_two(room)
        self._heads: Positions = np.full(slots, -1, np.int64)
        self._cursors: Positions = np.empty(slots, np.int64)  # by slot, where to begin in its list
        self._cursors_of: Positions = np.zeros(slots, np.int64)  # the probe that a slot's cursor was set by


def _new_room(capacity: int) -> Pairs:
    return np.empty(capacity, np.int64), np.empty(capacity, np.int64)


def _by_stop(places: Positions, ranges: Ranges) -> Positions:
    """The probing tuples whose ranges hold anything, the one whose range stops last first."""
    places = places[ranges.starts[places] < ranges.stops[places]]
    stops = ranges.stops[places]
    return places[::-1] if goes_up(stops) else places[np.argsort(-stops, kind="stable")]


def _power_of_two(n: int) -> int:
    return 1 << max(10, (n - 1).bit_length())
