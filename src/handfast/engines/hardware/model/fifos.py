"""FIFOs of the fast model: only those that something happens to are looked at when a cycle ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints, empty_set, kernel, put

NONE = -1  # no word; words are numbers from 0 on


class Fifos(NamedTuple):
    """A row of FIFOs, and one place behind them that never holds a word."""

    depth: Ints  # slots
    limit: Ints  # almost full from this level on
    level: Ints  # words stored
    highest: Ints  # the most ever stored
    oldest: Ints  # the slot of the oldest word
    words: Ints  # by FIFO and slot
    front: Ints  # the oldest word, if it can be read
    popped: Ints  # 1: what is in front is taken in this cycle
    pushed: Ints  # the word that is written in this cycle
    touched: Ints  # set: those that change at the end of this cycle
    full: Ints  # one number: how many are almost full
    latency: int


def empty_fifos(depths: Sequence[int], margin: int, latency: int) -> Fifos:
    """FIFOs of these depths, without a word."""
    size = len(depths)
    depth = np.array(depths, np.int64)
    return Fifos(
        depth=depth,
        limit=depth - margin,
        level=np.zeros(size, np.int64),
        highest=np.zeros(size, np.int64),
        oldest=np.zeros(size, np.int64),
        words=np.full((size, max(depths)), NONE, np.int64),
        front=np.full(size + 1, NONE, np.int64),
        popped=np.zeros(size, np.int64),
        pushed=np.full(size, NONE, np.int64),
        touched=empty_set(size),
        full=np.zeros(1, np.int64),
        latency=latency,
    )


@kernel
def clock_fifo(
    i: int,
    depth: Ints,
    limit: Ints,
    level: Ints,
    highest: Ints,
    oldest: Ints,
    words: Ints,
    front: Ints,
    popped: Ints,
    pushed: Ints,
    touched: Ints,
    full: Ints,
    latency: int,
) -> None:
    """End the cycle of FIFO i, which was touched: what was popped leaves, what was pushed is stored."""
    before = level[i]
    readable = before
    if popped[i]:
        popped[i] = 0
        readable -= 1
        oldest[i] = oldest[i] + 1 if oldest[i] + 1 < depth[i] else 0
    after = readable
    if pushed[i] != NONE:
        slot = oldest[i] + readable
        words[i, slot if slot < depth[i] else slot - depth[i]] = pushed[i]
        pushed[i] = NONE
        after += 1
        if latency < 2:
            readable += 1
    level[i] = after
    full[0] += int(after >= limit[i]) - int(before >= limit[i])
    if after > highest[i]:
        highest[i] = after
    if readable:
        front[i] = words[i, oldest[i]]
    else:
        front[i] = NONE
        if after:
            put(touched, i)  # it can be read one cycle later
