"""Partial matches and one more partner: equal members are looked up once, and what they find is fanned out again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.course import Pairs, Positions

MOST = 1 << 16  # pairs written out at a time: so that they are still in the cache when they are checked
_SPARSE = 8  # times as many positions as members: then the members are sorted


def distinct(members: Positions) -> tuple[Positions, Positions]:
    """The different ones of these positions, and for each position which of them it is."""
    lowest = int(members.min())
    span = int(members.max()) - lowest + 1
    if span > _SPARSE * len(members):
        different, places = np.unique(members, return_inverse=True)
        return different, places
    offsets = members - lowest
    present = np.zeros(span, np.bool_)
    present[offsets] = True
    number = np.cumsum(present) - 1
    return lowest + np.flatnonzero(present), number[offsets]


def fan_out(which: Positions, at: Positions, found: Positions, most: int = MOST) -> Iterator[Pairs]:
    """For pairs of a different member and a partner: every partial match with this member, paired with the partner.

    Args:
        which: For each partial match, which of the different members it has.
        at, found: The pairs.
        most: How many are written out at a time; more, where one pair alone has more partial matches.
    """
    from handfast.kernels import fans

    order, starts = fans.grouped(which, int(which.max()) + 1)
    ends = np.cumsum(starts[at + 1] - starts[at])
    first = 0
    while first < len(at):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        if count := int(ends[last - 1]) - before:
            rows, partners = np.empty(count, np.int64), np.empty(count, np.int64)
            fans.fan_out(order, starts, at[first:last], found[first:last], rows, partners)
            yield rows, partners
        first = last


def left_over(pairs: Pairs, kept: Pairs) -> NDArray[np.bool_]:
    """Which of these pairs were kept, if the kept ones are in the same order and equal pairs share their fate."""
    from handfast.kernels import fans

    held: NDArray[np.bool_] = fans.left_over(*pairs, *kept)
    return held
