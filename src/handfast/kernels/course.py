"""Between which positions of a segment a tuple's partners can lie, from how the stamps run along the positions.

Tuples come almost in order, so their times and counts almost always go up. For each position, two numbers are known:
the highest stamp up to it, and the lowest stamp from it on. Both columns never go down, so a binary search finds where
a window begins and where it ends. Where the stamps themselves never go down, both columns are the stamps, and the range
is the window. Where tuples come out of order the range is wider, by as many tuples as are out of place; there the
columns have one number for several positions, for they would take twice as much as the stamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.compiler.gathering import place_kernel
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.values import address

if TYPE_CHECKING:
    from handfast.kernels.columns import Columns

Stamped = NDArray[np.int64]
Positions = NDArray[np.int64]
Pairs = tuple[Positions, Positions]

STEP = 16  # positions of a step, where stamps are out of order: ranges are wider by less than two of them

_MOST_PAIRS = 1 << 20  # made at a time where ranges are written out


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class Course:
    """Stamps of one kind: `highest` up to the end of each step, `lowest` from the start of each step on.

    A step is so many neighbouring positions; of the first one, `shift` are not there any more.
    """

    highest: Stamped
    lowest: Stamped
    count: int
    step: int = 1
    shift: int = 0

    @staticmethod
    def of(stamps: Stamped) -> Course:
        if goes_up(stamps):
            return Course(stamps, stamps, len(stamps))
        return Course(np.maximum.accumulate(stamps), np.minimum.accumulate(stamps[::-1])[::-1], len(stamps))

    @property
    def goes_up(self) -> bool:
        return self.highest is self.lowest

    def before(self, stop: int) -> Course:
        """The course of the positions before one; it still knows of those behind it, so ranges may be wider."""
        steps = -(-(stop + self.shift) // self.step)
        highest = self.highest[:steps]
        lowest = highest if self.goes_up else self.lowest[:steps]
        return Course(highest, lowest, stop, self.step, self.shift)

    def starts(self, stamps: Stamped, shift: int, oldest: int, *, right: bool) -> Positions:
        """A position before which nothing is above a stamp with the shift added, or as high unless `right`.

        It is `oldest` at the least.
        """
        if self.step == 1:
            return _places(self.highest, stamps, shift, oldest, right=right)
        return np.maximum(self._positions(_places(self.highest, stamps, shift, 0, right=right)), oldest)

    def stops(self, stamps: Stamped, shift: int, *, right: bool) -> Positions:
        """A position from which on nothing is below a stamp with the shift added, or as low if `right`."""
        return self._positions(_places(self.lowest, stamps, shift, 0, right=right))

    def _positions(self, steps: Positions) -> Positions:
        return steps if self.step == 1 else np.clip(steps * self.step - self.shift, 0, self.count)


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class Courses:
    """The course of the times and, where windows count tuples, of every stream's counts."""

    times: Course
    seen: tuple[Course, ...] = ()

    @staticmethod
    def of(columns: Columns) -> Courses:
        """The courses of a run of tuples."""
        return Courses(Course.of(columns.times), tuple(map(Course.of, columns.seen)))

    def before(self, stop: int) -> Courses:
        """The courses of the positions before one."""
        return Courses(self.times.before(stop), tuple(own.before(stop) for own in self.seen))


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class Ranges:
    """For each probing tuple, the positions from `starts` up to `stops` that its partners can lie in.

    Where they are `exact`, all that lie there are in a window with it.
    """

    starts: Positions
    stops: Positions
    exact: bool

    @property
    def sizes(self) -> Positions:
        sizes: Positions = np.maximum(self.stops - self.starts, 0)
        return sizes

    def take(self, rows: Positions) -> Ranges:
        """The ranges of the probing tuples at these places."""
        return Ranges(self.starts[rows], self.stops[rows], self.exact)

    def every_pair(self, most: int = _MOST_PAIRS) -> Iterator[Pairs]:
        """Every probing tuple's place with every position in its range.

        They come in pieces of at most so many pairs, or of one probing tuple where it alone has more.
        """
        sizes = self.sizes
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
            own = sizes[first:last]
            if count := int(own.sum()):
                shifts = self.starts[first:last] - (ends[first:last] - own - before)
                yield np.repeat(np.arange(first, last), own), np.repeat(shifts, own) + np.arange(count)
            first = last


def reach(rule: WindowRule, side: int, probing: Columns, courses: Courses, oldest: int) -> Ranges:
    """Where, from `oldest` on, partners of tuples on one side of a pair can lie among the other side's.

    A partner that came before is in its own stream's window, one that came after has the probing tuple in its window:
    the first says where the range starts, the second where it stops.
    """
    own, other = side, 1 - side
    back, ahead = -rule.lengths[other], rule.lengths[own]
    if rule.counted[other]:
        low = courses.seen[other]
        starts = low.starts(probing.seen[other], back, oldest, right=False)
    else:
        low = courses.times
        starts = low.starts(probing.times, back, oldest, right=True)
    if rule.counted[own]:
        high = courses.seen[own]
        stops = high.stops(probing.seen[own], ahead, right=True)
    else:
        high = courses.times
        stops = high.stops(probing.times, ahead, right=False)
    return Ranges(starts, stops, low.goes_up and high.goes_up)


def _places(course: Stamped, stamps: Stamped, shift: int, oldest: int, *, right: bool) -> Stamped:
    """Where stamps, each with a shift added, belong in a column that never goes down; `oldest` at the least."""
    course, stamps = np.ascontiguousarray(course), np.ascontiguousarray(stamps)
    places: Stamped = np.empty(len(stamps), np.int64)
    place_kernel(right)(address(course), len(course), address(stamps), len(stamps), shift, oldest, address(places))
    return places
