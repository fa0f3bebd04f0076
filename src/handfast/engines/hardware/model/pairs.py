"""Which tuples match, and for every slot of the chain the slots of the other stream that match it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints
from handfast.errors import SpecError


class Partners(NamedTuple):
    """By slot of R, then by slot of S: the slots of the other stream that match it."""

    slots: Ints  # lists of slots, each sorted; slots that have the same partners may share a list
    starts: Ints  # where the list of each slot begins
    ends: Ints  # and where it ends
    r_slots: int  # how many slots of R there are


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which tuples match: those with equal keys, or those that are listed."""

    r: Ints
    s: Ints
    rows: tuple[int, int] | None

    @classmethod
    def by_keys(cls, r: Ints, s: Ints) -> Pairs:
        """Tuples with equal keys match; the keys of R and of S, by place."""
        return cls(np.asarray(r, np.int64), np.asarray(s, np.int64), None)

    @classmethod
    def of(cls, r: Ints, s: Ints, rows: tuple[int, int]) -> Pairs:
        """The places of all pairs that match, each pair once, in streams of so many tuples."""
        return cls(np.asarray(r, np.int64), np.asarray(s, np.int64), rows)

    def partners(self, r: Ints, s: Ints) -> Partners:
        """The partners of slots that hold the tuples of these places; a negative place is an empty slot."""
        return self._listed(r, s, self.rows) if self.rows is not None else self._with_equal_keys(r, s)

    def _with_equal_keys(self, r: Ints, s: Ints) -> Partners:
        sides = [np.flatnonzero(own >= 0) for own in (r, s)]  # the slots that are not empty
        keys = np.concatenate([self.r[r[sides[0]]], self.s[s[sides[1]]]])
        groups = np.unique(keys, return_inverse=True)[1].reshape(-1)
        own_groups = groups[: len(sides[0])], groups[len(sides[0]) :]
        count = int(groups.max(initial=-1)) + 1
        lists: list[Ints] = []
        starts, ends = [], []
        for own, other, slots in ((0, 1, len(r)), (1, 0, len(s))):
            before = len(lists[0]) if lists else 0
            lists.append(sides[other][np.argsort(own_groups[other], kind="stable")])
            sizes = np.bincount(own_groups[other], minlength=count)
            stop = np.cumsum(sizes) + before
            end, start = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
            end[sides[own]] = stop[own_groups[own]]
            start[sides[own]] = (stop - sizes)[own_groups[own]]
            starts.append(start)
            ends.append(end)
        return Partners(np.concatenate(lists), np.concatenate(starts), np.concatenate(ends), len(r))

    def _listed(self, r: Ints, s: Ints, rows: tuple[int, int]) -> Partners:
        slots = [_slots(own, count) for own, count in ((r, rows[0]), (s, rows[1]))]
        pairs = [slots[0][self.r], slots[1][self.s]]
        enter = (pairs[0] >= 0) & (pairs[1] >= 0)  # those of which both tuples enter
        pairs = [own[enter] for own in pairs]
        lists: list[Ints] = []
        starts, ends = [], []
        for own, other, count in ((0, 1, len(r)), (1, 0, len(s))):
            before = len(pairs[0]) if lists else 0
            order = np.lexsort((pairs[other], pairs[own]))
            lists.append(pairs[other][order])
            bounds = np.searchsorted(pairs[own][order], np.arange(count + 1)) + before
            starts.append(bounds[:-1])
            ends.append(bounds[1:])
        return Partners(np.concatenate(lists), np.concatenate(starts), np.concatenate(ends), len(r))


def _slots(places: Ints, rows: int) -> Ints:
    """The slot of each tuple; -1 for one that does not enter."""
    entering = np.flatnonzero(places >= 0)
    if len(np.unique(places[entering])) < len(entering):
        raise SpecError("A tuple whose matches are listed enters once, and one enters twice; say which match by keys")
    slots = np.full(rows, -1, np.int64)
    slots[places[entering]] = entering
    return slots
