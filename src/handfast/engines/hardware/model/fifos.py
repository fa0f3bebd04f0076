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
def push(fifos: Fifos, i: int, word: int) -> None:
    """Write a word into FIFO i in this cycle; there must be room."""
    fifos.pushed[i] = word
    put(fifos.touched, i)


@kernel
def pop(fifos: Fifos, i: int) -> int:
    """Take what is in front of FIFO i in this cycle; there must be something."""
    fifos.popped[i] = 1
    put(fifos.touched, i)
    word: int = fifos.front[i]
    return word


@kernel
def clock_fifo(fifos: Fifos, i: int) -> None:
    """End the cycle of FIFO i, which was touched: what was popped leaves, what was pushed is stored."""
    level, oldest, words, depth = fifos.level, fifos.oldest, fifos.words, fifos.depth[i]
    before = level[i]
    readable = before
    if fifos.popped[i]:
        fifos.popped[i] = 0
        readable -= 1
        oldest[i] = oldest[i] + 1 if oldest[i] + 1 < depth else 0
    after = readable
    if fifos.pushed[i] != NONE:
        slot = oldest[i] + readable
        words[i, slot if slot < depth else slot - depth] = fifos.pushed[i]
        fifos.pushed[i] = NONE
        after += 1
        if fifos.latency < 2:
            readable += 1
    level[i] = after
    fifos.full[0] += int(after >= fifos.limit[i]) - int(before >= fifos.limit[i])
    fifos.highest[i] = max(fifos.highest[i], after)
    if readable:
        fifos.front[i] = words[i, oldest[i]]
    else:
        fifos.front[i] = NONE
        if after:
            put(fifos.touched, i)  # it can be read one cycle later
