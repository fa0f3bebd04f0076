"""What the threads of a chain share, word by word: the rows of its cores, the rings between them, what they were told.

A row or ring has one writer and one reader, if nothing else is said. What one thread writes and another reads again
and again lies in lines of the cache of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]

# -- a row: a core's, the driver's or the collector's ----------------------------------------------------------------
# Of both streams, by position in the order in which its tuples enter the chain: the first that has
CAME = 0  # not come to this core
WENT = 2  # not been forwarded by it, or has not expired at the last core
KEPT = 4  # not been removed: of S, copies stay until they are acknowledged
FLUSHED = 6  # whether nothing is to come, and nothing is left to forward
FLUSHING = 8  # whether nothing is to come
OVER = 10  # at the last core: the first position whose window is not over
PENDING = 16  # 1 + the stream whose message has begun to be scanned
CURSOR = 17  # the first position of the other stream that it has not met
DENSE = 18  # whether there are many matches
WANTED = 19  # 1 + the number of the kernel without which this core cannot go on
ENDS = 20  # 1 at the left end of the chain, plus 2 at the right one
SCANNED, MATCHED, JOINED, SENT, BUSY, IDLE = range(24, 30)  # pairs, pairs, tuples, tuples, and twice nanoseconds
COSTS = 30  # how many costs were measured
COST = 32  # the last of them: nanoseconds and meetings, one after the other
ASLEEP = 64  # set by whoever sleeps here, and taken back by whoever wakes it
BELL = 72  # the file to write to, the file to read from
RETURN = 80  # anyone: the core is to return to Python
WEIGHT = 81  # the driver: what a tuple costs here, as a multiple of what it costs the others, in units of 1 / EVEN
ROW = 96  # words

SAMPLES = 16  # costs that are remembered
EVEN = 1 << 10
BOTH_ENDS = 3

# -- a ring ----------------------------------------------------------------------------------------------------------
WRITTEN = 0  # how many entries its writer has written
TAKEN = 16  # how many its reader is done with
ENTRIES = 32  # the first entry; there are as many as fit
# An entry of a ring of messages is a word: the kind, and above it up to which position of its stream it goes
TUPLES, ACK, EXPIRE, FLUSH = range(4)
KIND_BITS = 2

# -- what does not change --------------------------------------------------------------------------------------------
# The chunks that stored tuples lie in: of each, by stream, in the place of its number
VALUES, STATUSES, STAMPS, NULLABLE = range(4)  # addresses of tables of addresses; whether there are NULLs
CHUNK = 4  # words
SLOTS = 1 << 18  # chunks of a stream at a time: more than any memory holds
(
    LENGTH,  # of both windows
    _,
    LITERALS,
    OUTER_OUT,
    INNER_OUT,
    CAPACITY,
    STARTS,
    STOPS,
    STATE,
    ROWS,
    CHUNK_BITS,
    SPARE_TUPLES,
    RARE,
    SPINS,
    CLOCK,
    CLOCK_ID,
    TIME,
    READ,
    WRITE,
    BYTE,
    RULES,
) = range(21)
KERNELS = 8  # by outer stream, whether there are many matches, and whether there are NULLs


class Core(NamedTuple):
    """What a core works with.

    Attributes:
        row: Its own; `left` and `right` are those of its neighbours, the driver's at the ends, and `collector` that of
            whoever takes its matches.
        from_left: The ring from the left neighbour; the others likewise.
        found: Its matches: a position of R and one of S, one after the other.
        chunks: Where stored tuples lie.
        kernels: Addresses of the kernels, 0 where there is none yet.
        rules: What does not change.
        outer_out: What a kernel finds; so does `inner_out`.
        starts: For each tuple of a message, where in a chunk its partners may lie; `stops` is where they end.
        state: How far a kernel has come.
        time: Seconds and nanoseconds, as the clock writes them.
    """

    row: Words
    left: Words
    right: Words
    collector: Words
    from_left: Words
    to_left: Words
    from_right: Words
    to_right: Words
    found: Words
    chunks: Words
    kernels: Words
    rules: Words
    outer_out: NDArray[np.int32]
    inner_out: NDArray[np.int32]
    starts: Words
    stops: Words
    state: Words
    time: Words


def shared(words: int) -> Words:
    """So many words, all 0, from the start of a line of the cache on."""
    line = 128
    room: Any = np.zeros(words * 8 + line, np.uint8)
    start = -room.ctypes.data % line
    aligned: Words = room[start : start + words * 8].view(np.int64)
    return aligned


def ring(entries: int, words: int = 1) -> Words:
    """A ring of so many entries; of pairs there must be a power of two."""
    return shared(ENTRIES + entries * words)
