"""Arrays that grow at their end, as the columns and stamps of stored tuples do."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from handfast.flow.block import Seen
from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.course import STEP, Course, Courses, Stamped
from handfast.kernels.pages import PAGE, Pages

_SPARE = 2  # one in so many more than are needed are made room for
_LEAST = 1 << 16  # bytes of the smallest room, and that are given back at the least
_ALONE = 2  # references to the base of an array that nobody else refers to: its own, and that of who asks


class Growing:
    """An array that grows at its end and is dropped from its start.

    It lies in pages of its own. What it has room for takes no memory before it is used, what is dropped takes none any
    more, and nothing is copied to make room: no append takes longer because the array is long.
    """

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype
        self._pages: Pages | None = None
        self._array = np.empty(0, dtype)
        self._start = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[np.generic]:
        """They may be moved by an append, unless somebody still refers to them: then they are copied."""
        return self._array[self._start : self._start + self._count]

    def append(self, values: NDArray[np.generic]) -> None:
        """Add values at the end."""
        if self._start + self._count + len(values) > len(self._array):
            self._make_room(self._count + len(values))
        stop = self._start + self._count
        self._array[stop : stop + len(values)] = values
        self._count += len(values)

    def cut(self, count: int) -> None:
        """Take values away at the end."""
        self._count -= count

    def drop(self, count: int) -> None:
        """Take values away at the start."""
        self._start += count
        self._count -= count
        if self._start * self._dtype.itemsize >= _LEAST and self._is_alone:
            self._give_back()

    @property
    def _is_alone(self) -> bool:
        """Whether nobody refers to the values: what was made of them has the same base, and keeps it alive."""
        return self._pages is not None and sys.getrefcount(self._array.base) == _ALONE

    def _give_back(self) -> None:
        """Give back the pages before the first value."""
        assert self._pages is not None, "only what lies in pages is given back"
        before = self._start * self._dtype.itemsize // PAGE * PAGE
        if before:
            self._pages.cut(before)
            self._start -= before // self._dtype.itemsize
            self._array = self._pages.array(self._dtype)

    def _make_room(self, needed: int) -> None:
        size = max((needed + needed // _SPARE) * self._dtype.itemsize + PAGE, _LEAST)
        if self._pages is not None and self._is_alone:
            self._give_back()
            self._pages.resize(size)
            self._array = self._pages.array(self._dtype)
        else:
            pages = Pages(size)
            array = pages.array(self._dtype)
            array[: self._count] = self.values
            self._pages, self._array, self._start = pages, array, 0


class GrowingStamps:
    """Stamps of one kind; and their course, in steps of several positions, as soon as one stamp is out of order."""

    def __init__(self) -> None:
        self._stamps = Growing(np.dtype(np.int64))
        self._bounds: tuple[Growing, Growing] | None = None
        self._shift = 0  # positions of the first step that have been dropped

    def __len__(self) -> int:
        return len(self._stamps)

    @property
    def values(self) -> Stamped:
        return self._stamps.values  # type: ignore[return-value]

    @property
    def course(self) -> Course:
        if self._bounds is None:
            return Course(stamps := self.values, stamps, len(stamps))
        highest, lowest = (bound.values for bound in self._bounds)
        return Course(highest, lowest, len(self), STEP, self._shift)  # type: ignore[arg-type]

    def append(self, stamps: Stamped) -> None:
        """Add stamps at the end."""
        in_order = goes_up(stamps) and (not len(self) or not len(stamps) or stamps[0] >= self.values[-1])
        start = len(self)
        self._stamps.append(stamps)
        if self._bounds is not None:
            self._extend(*self._bounds, start)
        elif not in_order:
            self._bounds, self._shift = (Growing(self.values.dtype), Growing(self.values.dtype)), 0
            self._extend(*self._bounds, 0)

    def drop(self, count: int) -> None:
        """Take stamps away at the start."""
        self._stamps.drop(count)
        if self._bounds is None:
            return
        steps, self._shift = divmod(self._shift + count, STEP)
        for bound in self._bounds:
            bound.drop(steps)
        highest, lowest = (bound.values for bound in self._bounds)
        # the steps tell first, which are few: all stamps are looked at when they are in order again, and hardly before
        if (highest[:-1] <= lowest[1:]).all() and goes_up(self.values):  # type: ignore[operator]
            self._bounds = None

    def _extend(self, highest: Growing, lowest: Growing, start: int) -> None:
        """Go on with the course from a position that was the end; the step that it lies in is made again."""
        whole = (start + self._shift) // STEP
        for bound in (highest, lowest):
            bound.cut(len(bound) - whole)
        first = max(0, whole * STEP - self._shift)
        stamps = self.values[first:]
        if not len(stamps):
            return
        steps = np.arange((whole + 1) * STEP - self._shift - first, len(stamps), STEP)
        steps = np.concatenate([[0], steps])
        high = np.maximum.accumulate(np.maximum.reduceat(stamps, steps))
        low = np.minimum.accumulate(np.minimum.reduceat(stamps, steps)[::-1])[::-1]
        if whole:
            np.maximum(high, highest.values[-1], out=high)
            before = lowest.values
            before[np.searchsorted(before, low[0], side="right") :] = low[0]
            del before  # whoever refers to values keeps them where they are
        highest.append(high)
        lowest.append(low)


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
