"""The hash index: tuples of equal keys are in one linked list, from the newest to the oldest.

Nothing is taken out of a list: a search ends at the first tuple that lies before its range, and the nodes of tuples
that no range reaches any more are used again for new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.keys import Numbers, equal_keys
from handfast.kernels.index.protocol import PairConditions
from handfast.spec.expression import Call, Expr, Op
from handfast.spec.types import Kind

_ROOM = 1024  # tuples that an empty index has room for
_TOGETHER = 64  # probing tuples whose lists are searched side by side
_FAR = 1 << 30  # numbers are counted from a later base when they are as far from it: they must fit in 32 bits
# values of these types are equal if and only if the numbers are that they are kept as
_PLAIN = {
    *(Kind.BOOLEAN, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.STRING, Kind.BINARY),
    *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ),
}


@dataclass(frozen=True, slots=True)
class HashKeys:
    """A number of each tuple's equality keys, and which tuples have none (NULL or an error)."""

    numbers: Numbers
    dead: NDArray[np.bool_]
    alive: bool  # whether all have keys
    some_unplaced: bool = False


class _Room:
    """What one probe writes: its pairs, and where its searches are."""

    def __init__(self, capacity: int) -> None:
        self.places, self.found = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        together = min(_TOGETHER, capacity)
        self.lanes, self.at = np.empty(together, np.int64), np.empty(together, np.int64)
        self.cursors = np.empty(0, np.int32)  # by list, where to begin, if its mark is that of this probe
        self.marks = np.empty(0, np.int32)
        self.mark = 0

    def begin(self, lists: int) -> None:
        """Forget where the last probe began in the lists, of which there are so many now."""
        self.mark += 1
        if lists != len(self.marks) or self.mark == np.iinfo(np.int32).max:
            self.cursors, self.marks = np.empty(lists, np.int32), np.zeros(lists, np.int32)
            self.mark = 1


class HashIndex:
    """An `Index` by equalities alone.

    Where there is one equality of integers, times, dates or strings, the number is the key: what is proposed is equal.
    """

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        from handfast.kernels.index import hash_loops

        self._loops = hash_loops
        self._positions = [conditions.program.position(equality.sides[side]) for equality in conditions.equalities]
        self._plain = is_plain(conditions)
        self._capacity = capacity
        self._rooms: list[_Room] = []  # of probes that are over; a probe may begin while another one is under way
        # in numbers, counted from the base: a position is a number from `shift` on
        self._shift = 0
        self._oldest = 0
        self._stop = 0
        self._heads = np.full(_ROOM, -1, np.int32)
        self._nodes = np.empty(hash_loops.WORDS * _ROOM, np.uint32)

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return bool(conditions.equalities) and not conditions.bands

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        if not is_plain(conditions):
            return conditions.parts
        (equality,) = conditions.equalities
        sides = {conditions.program.column(side) for side in equality.sides}
        return tuple(part for part in conditions.parts if not (_is_equality(part) and set(part.args) == sides))

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        count = len(conditions.equalities)
        return (
            f"hash on {count} equalit{'y' if count == 1 else 'ies'}",
            "it proposes candidates; the whole predicate is checked on each, as written",
        )

    def keys(self, columns: Columns) -> HashKeys:
        if not self._plain:
            numbers, dead = equal_keys(columns, self._positions)
            return HashKeys(numbers, dead, not dead.any())
        (position,) = self._positions
        status = columns.statuses[position]
        dead = status != 0 if status is not None else np.zeros(len(columns), np.bool_)
        numbers = columns.values[position].astype(np.int64, copy=False).view(np.uint64)
        return HashKeys(numbers, dead, status is None)

    def reserve(self, count: int) -> None:
        if count > len(self._heads):
            self._move(count)

    def insert(self, keys: HashKeys) -> None:
        count = len(keys.numbers)
        if self._stop + count > _FAR:
            self._rebase()
        if self._stop + count - self._oldest > len(self._heads):
            self._grow(count)
        self._loops.insert(keys.numbers, ~keys.dead, self._stop, self._heads, self._nodes, self._ring)
        self._stop += count

    def expire(self, oldest: int) -> None:
        self._oldest = oldest + self._shift

    def drop(self, count: int) -> None:
        self._shift += count

    def candidates(self, keys: HashKeys, ranges: Ranges) -> Iterator[Pairs]:
        some = ranges.starts < ranges.stops
        (order,) = (some if keys.alive else some & ~keys.dead).nonzero()
        if not len(order):
            return
        room = self._rooms.pop() if self._rooms else _Room(self._capacity)
        behind = self._stop - self._shift - int(ranges.stops.min())  # stored tuples that are walked past in vain
        if len(order) > _TOGETHER and (behind <= 0 or behind * len(ranges.stops) <= int(ranges.sizes.sum())):
            yield from self._together(keys.numbers, order, ranges, ranges.stops if behind > 0 else None, room)
        else:
            yield from self._in_turn(keys.numbers, order, ranges, room)
        self._rooms.append(room)

    def unplaced(self, keys: HashKeys, ranges: Ranges) -> Iterator[Pairs]:
        return iter(())  # a tuple has a key, or is dead

    def _together(
        self, numbers: Numbers, order: Positions, ranges: Ranges, stops: Positions | None, room: _Room
    ) -> Iterator[Pairs]:
        state = np.array([0, -1], np.int64)
        while state[0] < len(order):
            n = self._loops.probe_together(
                numbers, order, ranges.starts, stops, self._shift, self._heads, self._nodes, self._ring,
                room.lanes, room.at, room.places, room.found, state,
            )  # fmt: skip
            if n:
                yield room.places[:n], room.found[:n]

    def _in_turn(self, numbers: Numbers, order: Positions, ranges: Ranges, room: _Room) -> Iterator[Pairs]:
        stops = ranges.stops[order]
        order = order[::-1] if goes_up(stops) else order[np.argsort(-stops, kind="stable")]
        room.begin(len(self._heads))
        state = np.array([0, -1], np.int64)
        while state[0] < len(order):
            n = self._loops.probe_in_turn(
                numbers, order, ranges.starts, ranges.stops, self._shift, self._heads, self._nodes, self._ring,
                room.cursors, room.marks, room.mark, room.places, room.found, state,
            )  # fmt: skip
            if n:
                yield room.places[:n], room.found[:n]

    @property
    def _ring(self) -> int:
        """The multiple of the ring's room at or before the oldest number."""
        return self._oldest - self._oldest % len(self._heads)

    def _grow(self, new: int) -> None:
        """Make room for so many more, and for an eighth more than that; for half more as long as none expires."""
        needed = self._stop - self._oldest + new
        self._move(max(needed + needed // (8 if self._oldest else 2), _ROOM))

    def _move(self, room: int) -> None:
        """Move all to a ring of another size."""
        heads, nodes = np.full(room, -1, np.int32), np.empty(self._loops.WORDS * room, np.uint32)
        ring = self._oldest - self._oldest % room
        self._loops.moved(self._oldest, self._stop, self._nodes, self._ring, nodes, ring, heads)
        self._heads, self._nodes = heads, nodes

    def _rebase(self) -> None:
        """Count the numbers from about the oldest; the nodes stay where they are."""
        amount = self._ring
        self._loops.rebase(amount, self._heads, self._nodes)
        self._shift, self._oldest, self._stop = self._shift - amount, self._oldest - amount, self._stop - amount


def is_plain(conditions: PairConditions) -> bool:
    """Whether tuples match by the equality if and only if their numbers are equal."""
    types = [side.type for equality in conditions.equalities for side in equality.sides]
    return len(types) == 2 and types[0] == types[1] and types[0].kind in _PLAIN


def _is_equality(part: Expr) -> TypeGuard[Call]:
    return isinstance(part, Call) and part.op is Op.EQ
