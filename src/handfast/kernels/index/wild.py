"""Wild tuples: those that no key can place, so that each of them meets everyone in its range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.growing import Growing
from handfast.kernels.index.keys import ConditionKeys


class WildTuples:
    """The wild tuples that an index keeps apart from all others."""

    def __init__(self) -> None:
        self._positions = Growing(np.dtype(np.int64))
        self._count = 0

    def insert(self, keys: ConditionKeys) -> None:
        """Take in the wild ones of the next tuples."""
        if np.count_nonzero(keys.wild):
            self._positions.append(self._count + np.flatnonzero(keys.wild))
        self._count += len(keys.wild)

    def drop(self, count: int) -> None:
        """Forget the first so many positions: all others are lower by so many."""
        positions: Positions = self._positions.values  # type: ignore[assignment]
        self._positions.drop(int(np.searchsorted(positions, count)))
        self._positions.values[:] = positions[len(positions) - len(self._positions) :] - count
        self._count -= count

    def candidates(self, keys: ConditionKeys, ranges: Ranges) -> Iterator[Pairs]:
        """Wild probing tuples with all that are stored, then the other ones with the wild that are stored."""
        if np.count_nonzero(keys.wild):
            probing = np.flatnonzero(keys.wild)
            for places, found in ranges.take(probing).every_pair():
                yield probing[places], found
        if not len(self._positions):
            return
        stored: Positions = self._positions.values  # type: ignore[assignment]
        others = np.flatnonzero(keys.present)
        starts, stops = (np.searchsorted(stored, bounds[others]) for bounds in (ranges.starts, ranges.stops))
        for places, found in Ranges(starts, stops, ranges.exact).every_pair():
            yield others[places], stored[found]
