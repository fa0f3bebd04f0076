"""The loop of a core, and what Python threads do with rings, compiled. Imported with Numba.

The machine code that Numba keeps on disk is of this file, and knows nothing of the others that it is made of: their
text is a part of what it is kept by.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from importlib import resources
from typing import Any, NamedTuple, TypeVar, cast

from numba import njit

from handfast.engines.local.native.actions import forward_r, forward_s, process_left, process_right
from handfast.engines.local.native.atomics import call, exchange, load, pause, store
from handfast.engines.local.native.meeting import clock
from handfast.engines.local.native.memory import (
    ASLEEP,
    BELL,
    BYTE,
    CAME,
    ENTRIES,
    IDLE,
    KEPT,
    READ,
    RETURN,
    SPINS,
    TAKEN,
    WANTED,
    WENT,
    WRITTEN,
    Core,
    Words,
)
from handfast.engines.local.native.rings import jitable, room, wake


@jitable
def act(core: Core) -> Any:
    """A round of all that a core can do."""
    did = process_left(core)
    did |= process_right(core)
    did |= forward_s(core)
    did |= forward_r(core)
    return did


F = TypeVar("F", bound=Callable[..., Any])


class Loop(NamedTuple):
    """What is compiled here, by name."""

    run: Callable[..., Any]
    repeat: Callable[..., Any]
    send_all: Callable[..., Any]
    take_pairs: Callable[..., Any]
    fall_asleep: Callable[..., Any]
    stay_awake: Callable[..., Any]
    wake_up: Callable[..., Any]
    look: Callable[..., Any]


def _sources() -> str:
    """A digest of all files of this folder."""
    folder = resources.files("handfast.engines.local.native")
    texts = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".py"))
    return sha256(repr(texts).encode()).hexdigest()


def _made(digest: str) -> Loop:
    """All of it; the digest is named in each, so that it is part of what Numba keeps the code by."""

    def compiled(function: F) -> F:
        """Compiled, and other threads of Python run meanwhile."""
        return cast(F, njit(cache=True, nogil=True)(function))

    def short(function: F) -> F:
        """Compiled, and over before another thread of Python could run: who lets go may wait long to go on."""
        return cast(F, njit(cache=True)(function))

    @compiled
    def run(core: Core) -> Any:
        """Do what there is to do, sleep when there is nothing, until a kernel is wanted or Python is to go on."""
        if not digest:
            return
        row, rules = core.row, core.rules
        idle = 0
        while not load(row, RETURN) and not row[WANTED]:
            if act(core):
                idle = 0
                continue
            idle += 1
            if idle < rules[SPINS]:
                pause()
                continue
            exchange(row, ASLEEP, 1)
            # a last look: whoever sends from now on sees that this core sleeps
            if not act(core) and not load(row, RETURN) and not row[WANTED]:
                start = clock(core)
                call(rules[READ], (row[BELL + 1], rules[BYTE] + 1, 1))
                row[IDLE] += clock(core) - start
            exchange(row, ASLEEP, 0)
            idle = 0

    @compiled
    def repeat(core: Core, action: Any, times: Any) -> Any:
        """Do one of the actions, by number in the order of a round, up to so many times; how often it did anything."""
        if not digest:
            return 0
        did = 0
        while did < times:
            if action == 0:
                does = process_left(core)
            elif action == 1:
                does = process_right(core)
            elif action == 2:
                does = forward_s(core)
            else:
                does = forward_r(core)
            if not does:
                break
            did += 1
        return did

    @short
    def send_all(ring: Words, words: Any, reader: Words, rules: Words) -> Any:
        """Send as many of these messages as there is room for, and wake their reader; how many these are."""
        if not digest:
            return 0
        count = min(len(words), room(ring, 1))
        number = ring[WRITTEN]
        for k in range(count):
            ring[ENTRIES + (number + k) % (len(ring) - ENTRIES)] = words[k]
        if count:
            store(ring, WRITTEN, number + count)
            wake(reader, rules)
        return count

    @compiled
    def take_pairs(ring: Words, most: Any, r_out: Any, s_out: Any, writer: Words, rules: Words) -> Any:
        """Take matches out of a ring, at most so many, and wake who may wait for room; how many these are."""
        if not digest:
            return 0
        number, mask = ring[TAKEN], (len(ring) - ENTRIES) // 2 - 1
        count = min(most, load(ring, WRITTEN) - number)
        for k in range(count):
            place = ENTRIES + 2 * ((number + k) & mask)
            r_out[k], s_out[k] = ring[place], ring[place + 1]
        if count:
            store(ring, TAKEN, number + count)
            wake(writer, rules)
        return count

    @short
    def fall_asleep(row: Words) -> Any:
        """Say that whoever has this row is about to sleep: what is sent from now on wakes it."""
        if not digest:
            return
        exchange(row, ASLEEP, 1)

    @short
    def stay_awake(row: Words) -> Any:
        """Take that back."""
        if not digest:
            return
        exchange(row, ASLEEP, 0)

    @short
    def wake_up(row: Words, rules: Words) -> Any:
        """Wake whoever sleeps by this row."""
        if not digest:
            return
        wake(row, rules)

    @short
    def look(rows: Words, stream: Any, came: Any, went: Any, kept: Any) -> Any:
        """Read how far a stream has come at every core.

        What is further on its way is read first. As no number ever goes down, no tuple is seen at two places.
        """
        if not digest:
            return
        count = len(rows)
        for step in range(count):
            number = count - 1 - step if stream == 0 else step
            kept[number] = load(rows[number], KEPT + stream)
            went[number] = load(rows[number], WENT + stream)
            came[number] = load(rows[number], CAME + stream)

    return Loop(run, repeat, send_all, take_pairs, fall_asleep, stay_awake, wake_up, look)


LOOP = _made(_sources())
