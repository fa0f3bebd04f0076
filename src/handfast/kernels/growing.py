"""Arrays that grow at their end, as the columns and stamps of stored tuples do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handfast.flow.block import Seen
from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.course import Course, Courses, Stamped

_SPARE = 3  # one in so many more than are needed are made room for
_WORTH = 4  # values are moved if so many times what was dropped are more than they are


class Growing:
    """An array that grows at its end and is dropped from its start, in place as long as there is room."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._array = np.empty(0, dtype)
        self._start = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[np.generic]:
        return self._array[self._start : self._start + self._count]

    def append(self, values: NDArray[np.generic]) -> None:
        """Add values at the end."""
        if self._start + self._count + len(values) > len(self._array):
            self._make_room(self._count + len(values))
        stop = self._start + self._count
        self._array[stop : stop + len(values)] = values
        self._count += len(values)

    def drop(self, count: int) -> None:
        """Take values away at the start."""
        self._start += count
        self._count -= count

    def _make_room(self, needed: int) -> None:
        """Move the values to the start of the array; to a larger one if too few were dropped to make that worth it."""
        if self._start * _WORTH < self._count or needed + needed // _WORTH > len(self._array):
            grown = np.empty(needed + needed // _SPARE, self._array.dtype)
            grown[: self._count] = self.values
            self._array = grown
        else:
            # piece by piece, each no longer than the way it goes: it must not be written over itself
            for first in range(0, self._count, self._start):
                piece = self._array[self._start + first : self._start + min(first + self._start, self._count)]
                self._array[first : first + len(piece)] = piece
        self._start = 0


class GrowingStamps:
    """Stamps of one kind and their course, which is kept separately as soon as one stamp is out of order."""

    def __init__(self) -> None:
        self._stamps = Growing(np.dtype(np.int64))
        self._bounds: tuple[Growing, Growing] | None = None

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def values(self) -> Stamped:
        return self._stamps.values  # type: ignore[return-value]

    @property
    def course(self) -> Course:
        if self._bounds is None:
            return Course(stamps := self.values, stamps)
        highest, lowest = self._bounds
        return Course(highest.values, lowest.values)  # type: ignore[arg-type]

    def append(self, stamps: Stamped) -> None:
        """Add stamps at the end."""
        known = self.values
        rises = goes_up(stamps) and not (len(known) and stamps[0] < known[-1])  # asked first: adding may move values
        self._stamps.append(stamps)
        if self._bounds is not None:
            self._extend(*self._bounds, Course.of(stamps))
        elif not rises:
            course = Course.of(self.values)
            self._bounds = Growing(stamps.dtype), Growing(stamps.dtype)
            for bound, values in zip(self._bounds, (course.highest, course.lowest), strict=True):
                bound.append(values)

    def drop(self, count: int) -> None:
        """Take stamps away at the start."""
        self._stamps.drop(count)
        if self._bounds is None:
            return
        for bound in self._bounds:
            bound.drop(count)
        if goes_up(self.values):
            self._bounds = None

    def _extend(self, highest: Growing, lowest: Growing, new: Course) -> None:
        highest.append(np.maximum(new.highest, highest.values[-1]))
        least, before = new.lowest[0], lowest.values
        before[np.searchsorted(before, least, side="right") :] = least
        lowest.append(new.lowest)


class GrowingColumns:
    """The columns of stored tuples, in the order in which they came; a position is a place in that order."""

    def __init__(self) -> None:
        self._values: list[Growing] = []
        self._statuses: list[Growing | None] = []
        self._times = GrowingStamps()
        self._seen: list[GrowingStamps] = []

    def __len__(self) -> int:
        return len(self._times)

    @property
    def times(self) -> Stamped:
        return self._times.values

    @property
    def seen(self) -> Seen:
        return tuple(known.values for known in self._seen)

    def append(self, columns: Columns) -> None:
        """Add tuples at the end."""
        start = len(self)
        if not start:
            self._values = [Growing(value.dtype) for value in columns.values]
            self._statuses = [None for _ in columns.values]
            self._seen = [GrowingStamps() for _ in columns.seen]
        for k, (value, status) in enumerate(zip(columns.values, columns.statuses, strict=True)):
            self._values[k].append(value)
            known = self._statuses[k]
            if status is not None and known is None:
                known = self._statuses[k] = Growing(np.dtype(np.uint8))
                known.append(np.zeros(start, np.uint8))
            if known is not None:
                known.append(status if status is not None else np.zeros(len(columns), np.uint8))
        self._times.append(columns.times)
        for stamps, seen in zip(self._seen, columns.seen, strict=True):
            stamps.append(seen)

    def drop(self, count: int) -> None:
        """Take tuples away at the start: the positions of all others are lower by so many."""
        for column in (*self._values, *self._statuses, self._times, *self._seen):
            if column is not None:
                column.drop(count)

    def all(self) -> Columns:
        """The columns of every position so far."""
        statuses = [status.values if status is not None else None for status in self._statuses]
        courses = Courses(self._times.course, tuple(known.course for known in self._seen))
        values = [column.values for column in self._values]
        return Columns(values, statuses, self.times, self.seen, courses=courses)  # type: ignore[arg-type]
