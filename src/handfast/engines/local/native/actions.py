"""The handshake in machine code: all that a core can do, as single actions [HSJ §4.2, Fig. 9]. Imported with Numba.

It is the protocol of `handshake.py`. Tuples stand still, in chunks that all cores read; what moves are positions. The
tuples of a stream pass every core in the order in which they came, so a segment is a range of positions, and a message
is a word: what it is, and up to which position of its stream it goes. Every action is a Python function, which tests
call in any order, and the same one is compiled into the loop of a core.
"""

from __future__ import annotations

from typing import Any

from handfast.engines.local.native.atomics import store
from handfast.engines.local.native.meeting import meet
from handfast.engines.local.native.memory import (
    ACK,
    CAME,
    CHUNK_BITS,
    ENDS,
    EXPIRE,
    FLUSH,
    FLUSHED,
    FLUSHING,
    JOINED,
    KEPT,
    KIND_BITS,
    OVER,
    PENDING,
    ROWS,
    SENT,
    TUPLES,
    WEIGHT,
    WENT,
    Core,
    Words,
)
from handfast.engines.local.native.rings import drop_first, first, jitable, room, send, waiting, wake

R, S = 0, 1
LEFT_END, RIGHT_END = 1, 2


@jitable
def process_left(core: Core) -> Any:
    """Take a message from the left: R comes from there, and acknowledgements of S; at the left end, its expiry."""
    if core.row[PENDING] == 1 + S or not waiting(core.from_left):
        return False
    word = first(core.from_left)
    kind, stop = word & 3, word >> KIND_BITS
    if kind == TUPLES:
        if not meet(core, R, stop):
            return False
        insert(core, R, stop)
    elif kind == ACK:
        acknowledge_s(core, stop)
    elif kind == EXPIRE:
        expire(core, S, stop)
    else:
        store(core.row, FLUSHING + R, 1)
    drop_first(core.from_left)
    wake_neighbours(core)
    return True


@jitable
def process_right(core: Core) -> Any:
    """Take a message from the right: S comes from there, and is acknowledged; at the right end, the expiry of R."""
    if core.row[PENDING] == 1 + R or not waiting(core.from_right) or not room(core.to_right, 1):
        return False  # without room for the acknowledgement the tuples have to wait
    word = first(core.from_right)
    kind, stop = word & 3, word >> KIND_BITS
    if kind == TUPLES:
        if not meet(core, S, stop):
            return False
        insert(core, S, stop)
        if not core.row[ENDS] & RIGHT_END:
            send(core.to_right, ACK, stop)
    elif kind == EXPIRE:
        expire(core, R, stop)
    else:
        store(core.row, FLUSHING + S, 1)
    drop_first(core.from_right)
    wake_neighbours(core)
    return True


@jitable
def forward_s(core: Core) -> Any:
    """Send the oldest S tuples left, if they are to go: phase one. Copies stay until they are acknowledged."""
    row = core.row
    if row[PENDING]:
        return False
    if row[ENDS] & LEFT_END:
        return end(core, S, core.left)
    if forwards(row, S, core.left) and room(core.to_left, 1):
        stop = cut(core, S)
        row[SENT] += stop - row[WENT + S]
        store(row, WENT + S, stop)
        send(core.to_left, TUPLES, stop)
        wake_neighbours(core)
        return True
    return pass_flush(core, S, core.to_left)


@jitable
def forward_r(core: Core) -> Any:
    """Send the oldest R tuples right, if they are to go; they are removed at once."""
    row = core.row
    if row[PENDING]:
        return False
    if row[ENDS] & RIGHT_END:
        return end(core, R, core.right)
    # one place is left free for acknowledgements: R must not keep S waiting
    if forwards(row, R, core.right) and room(core.to_right, 1) > 1:
        stop = cut(core, R)
        row[SENT] += stop - row[WENT + R]
        remove_r(core, stop)
        send(core.to_right, TUPLES, stop)
        wake_neighbours(core)
        return True
    return pass_flush(core, R, core.to_right)


# -- what a message brings about -------------------------------------------------------------------------------------


@jitable
def insert(core: Core, stream: Any, stop: Any) -> Any:
    """Let the tuples up to `stop`, which have met everyone here, be stored; those that are over already be gone."""
    row = core.row
    row[JOINED] += stop - row[CAME + stream]
    store(row, CAME + stream, stop)
    if row[OVER + stream] > row[WENT + stream]:
        expire(core, stream, row[OVER + stream])


@jitable
def acknowledge_s(core: Core, stop: Any) -> Any:
    """Remove the copies of forwarded S tuples: phase two of forwarding [HSJ §4.2, Fig. 8].

    The left neighbour has received them, so whatever R comes from there after this message has met them already.
    """
    store(core.row, KEPT + S, stop)


@jitable
def remove_r(core: Core, stop: Any) -> Any:
    """Remove R tuples that are forwarded."""
    store(core.row, KEPT + R, stop)
    store(core.row, WENT + R, stop)


@jitable
def expire(core: Core, stream: Any, stop: Any) -> Any:
    """Remove the tuples whose window is over: the driver says so, at the last core [HSJ §4.4, Fig. 13].

    Those that have not come this far are removed when they arrive.
    """
    row = core.row
    row[OVER + stream] = max(stop, row[OVER + stream])
    gone = min(stop, row[CAME + stream])
    if gone > row[WENT + stream]:
        store(row, KEPT + stream, gone)
        store(row, WENT + stream, gone)


# -- pieces ----------------------------------------------------------------------------------------------------------


@jitable
def forwards(row: Words, stream: Any, following: Words) -> Any:
    """Whether the oldest tuples are to go: while there are more here than at the core that follows [HSJ §4.3].

    What is on its way to it counts as if it had arrived.
    """
    went = row[WENT + stream]
    here = row[CAME + stream] - went
    there = went - following[WENT + stream]
    return here > 0 and (row[FLUSHING + stream] != 0 or here * row[WEIGHT] > there * following[WEIGHT])


@jitable
def cut(core: Core, stream: Any) -> Any:
    """Up to which position a message goes: it has a limited number of tuples, which lie in one chunk."""
    went, bits = core.row[WENT + stream], core.rules[CHUNK_BITS]
    return min(core.row[CAME + stream], went + core.rules[ROWS], ((went >> bits) + 1) << bits)


@jitable
def pass_flush(core: Core, stream: Any, to: Words) -> Any:
    """Say that nothing follows, once everything has been forwarded."""
    row = core.row
    if not row[FLUSHING + stream] or row[FLUSHED + stream] or row[WENT + stream] < row[CAME + stream]:
        return False
    if not room(to, 1):
        return False
    store(row, FLUSHED + stream, 1)
    send(to, FLUSH, 0)
    wake_neighbours(core)
    return True


@jitable
def end(core: Core, stream: Any, driver: Words) -> Any:
    """At the last core: say that the stream has ended."""
    if core.row[FLUSHING + stream] and not core.row[FLUSHED + stream]:
        store(core.row, FLUSHED + stream, 1)
        wake(driver, core.rules)
    return False


@jitable
def wake_neighbours(core: Core) -> Any:
    """There is something for them, or room, or less here than before: they may want to forward."""
    wake(core.left, core.rules)
    wake(core.right, core.rules)
