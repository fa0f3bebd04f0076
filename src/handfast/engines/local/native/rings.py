"""Rings without locks: one writes, one reads, and neither ever waits for the other inside. Imported with Numba."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from handfast.engines.local.native.atomics import call, exchange, fence, load, store
from handfast.engines.local.native.memory import (
    ASLEEP,
    BELL,
    BYTE,
    ENTRIES,
    KIND_BITS,
    TAKEN,
    WRITE,
    WRITTEN,
    Words,
)

jitable = register_jitable


@jitable
def room(ring: Words, words: Any) -> Any:
    """How many entries of so many words its writer can write."""
    return (len(ring) - ENTRIES) // words - (ring[WRITTEN] - load(ring, TAKEN))


@jitable
def waiting(ring: Words) -> Any:
    """How many entries its reader can read."""
    return load(ring, WRITTEN) - ring[TAKEN]


@jitable
def send(ring: Words, kind: Any, stop: Any) -> Any:
    """Write a message behind the others; there must be room."""
    number = ring[WRITTEN]
    ring[ENTRIES + number % (len(ring) - ENTRIES)] = stop << KIND_BITS | kind
    store(ring, WRITTEN, number + 1)


@jitable
def first(ring: Words) -> Any:
    """The oldest message; there must be one. It stays until its reader is done with it."""
    return ring[ENTRIES + ring[TAKEN] % (len(ring) - ENTRIES)]


@jitable
def drop_first(ring: Words) -> Any:
    """Let the oldest message go."""
    store(ring, TAKEN, ring[TAKEN] + 1)


@jitable
def wake(row: Words, rules: Words) -> Any:
    """Wake whoever sleeps by this row; whoever is about to has looked too early, and is woken at once."""
    fence()  # what was sent before is seen by those who are not seen to sleep
    if load(row, ASLEEP) and exchange(row, ASLEEP, 0):
        call(rules[WRITE], (row[BELL], rules[BYTE], 1))
