"""Which tuples of a window match what comes to a stage of a ring, as lists that a scan goes through."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints


class Lists(NamedTuple):
    """Tuples that match, in lists.

    What comes to a window, a new tuple or an intermediate, has a list there: the tuples of the window's stream that it
    matches, and others that its range leaves out. Several may share a list. List `l` of the window of stream `s` is
    that with the number `l` + `s` · `stride`.
    """

    places: Ints  # the tuples of all lists one after the other, by their places in their streams; sorted in each list
    further: Ints  # by entry: the list of the intermediate at the next window
    starts: Ints  # by list: where it begins
    ends: Ints  # and where it ends
    first: Ints  # by tuple, in the order in which they enter: its list at the stage that it begins at
    closing: Ints  # by entry: what a result with it at its last hop must agree in with `opening`; none: all results do
    opening: Ints  # by tuple
    stride: int


def by_keys(keys: Sequence[Ints], origins: Ints, before: int = 0) -> Lists:
    """Tuples of different streams match if their keys are the same.

    Args:
        keys: By stream, the keys of its tuples.
        origins: The stream of each tuple, in the order in which they enter.
        before: How many tuples of each stream are in its window already; they come first among the keys.
    """
    return by_neighbours(keys, keys, origins, before, closed=False)


def by_neighbours(
    left: Sequence[Ints], right: Sequence[Ints], origins: Ints, before: int = 0, *, closed: bool = True
) -> Lists:
    """A tuple matches one of the stream after its own if its right key is the other's left key.

    Args:
        left, right: By stream, the keys of its tuples.
        origins: The stream of each tuple, in the order in which they enter.
        before: How many tuples of each stream are in its window already; they come first among the keys.
        closed: Whether the last stream of a line must match the first one, too.
    """
    streams = len(left)
    every = np.concatenate([*left, *right])
    keys = np.unique(every, return_inverse=True)[1].reshape(-1)
    count = int(keys.max(initial=-1)) + 1
    bounds = np.cumsum([0, *(len(own) for own in (*left, *right))])
    own = [keys[low:high] for low, high in pairwise(bounds.tolist())]
    lefts, rights = own[:streams], own[streams:]
    places, further, closing, sizes = [], [], [], []
    for stream in range(streams):
        order = np.argsort(lefts[stream], kind="stable")
        places.append(order)
        further.append(rights[stream][order])
        closing.append(rights[stream][order])
        sizes.append(np.bincount(lefts[stream], minlength=count))
    ends = np.cumsum(np.concatenate(sizes))
    number = before + _numbers(origins, streams)
    first, opening = np.empty(len(origins), np.int64), np.empty(len(origins), np.int64)
    for stream in range(streams):
        mine = origins == stream
        first[mine] = rights[stream][number[mine]]
        opening[mine] = lefts[stream][number[mine]]
    return Lists(
        places=np.concatenate(places),
        further=np.concatenate(further),
        starts=ends - np.concatenate(sizes),
        ends=ends,
        first=first,
        closing=np.concatenate(closing) if closed else np.empty(0, np.int64),
        opening=opening,
        stride=count,
    )


def _numbers(origins: Ints, streams: int) -> Ints:
    """The place of each tuple in its own stream."""
    found = np.empty(len(origins), np.int64)
    for stream in range(streams):
        mine = np.flatnonzero(origins == stream)
        found[mine] = np.arange(len(mine))
    return found
