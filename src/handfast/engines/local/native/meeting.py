"""Tuples that come to a core meet those of the other stream that are stored there. Imported with Numba."""

from __future__ import annotations

from typing import Any

from handfast.engines.local.native.atomics import call, load, store
from handfast.engines.local.native.memory import (
    BUSY,
    CAME,
    CAPACITY,
    CHUNK,
    CHUNK_BITS,
    CLOCK,
    CLOCK_ID,
    COST,
    COSTS,
    CURSOR,
    DENSE,
    ENTRIES,
    INNER_OUT,
    KEPT,
    LENGTH,
    LITERALS,
    MATCHED,
    NULLABLE,
    OUTER_OUT,
    PENDING,
    RARE,
    SAMPLES,
    SCANNED,
    SLOTS,
    SPARE_TUPLES,
    STAMPS,
    STARTS,
    STATE,
    STATUSES,
    STOPS,
    TIME,
    VALUES,
    WANTED,
    WRITTEN,
    Core,
)
from handfast.engines.local.native.rings import jitable, room, wake

WORTH_MEASURING = 1 << 20  # meetings; fewer cost much the same whether they are few or many


@jitable
def meet(core: Core, stream: Any, stop: Any) -> Any:
    """Scan the other stream's window for partners of the tuples of a message, which ends at `stop`.

    False if it cannot go on: no kernel is there for what it meets, or there is no room for matches. It goes on where it
    was when it is called again, and until then nothing else may happen here.
    """
    row, other = core.row, 1 - stream
    first, last = row[KEPT + other], row[CAME + other]
    if not row[PENDING]:
        row[PENDING], row[CURSOR] = 1 + stream, first
        core.state[0], core.state[1] = -1, 0
    start, matched = clock(core), row[MATCHED]
    while row[CURSOR] < last:
        if not meet_some(core, stream, stop, last):
            break
    spent = clock(core) - start
    row[BUSY] += spent
    if row[MATCHED] > matched:
        wake(core.collector, core.rules)
    if row[CURSOR] < last:
        return False
    meetings = (stop - row[CAME + stream]) * (last - first)
    row[PENDING] = 0
    row[SCANNED] += meetings
    if meetings >= WORTH_MEASURING:
        place = COST + 2 * (row[COSTS] % SAMPLES)
        row[place], row[place + 1] = spent, meetings
        store(row, COSTS, row[COSTS] + 1)
    return True


@jitable
def meet_some(core: Core, stream: Any, stop: Any, last: Any) -> Any:
    """Scan the rest of one chunk, or as much of it as there is room for matches."""
    row, rules, state, chunks = core.row, core.rules, core.state, core.chunks
    capacity, size = rules[CAPACITY], 1 << rules[CHUNK_BITS]
    outer, inner = chunk(core, stream, row[CAME + stream]), chunk(core, 1 - stream, row[CURSOR])
    nullable = load(chunks, outer + NULLABLE) | load(chunks, inner + NULLABLE)
    number = 4 * stream + 2 * row[DENSE] + nullable
    if not core.kernels[number]:
        row[WANTED] = 1 + number
        return False
    if room(core.found, 2) < capacity:
        wake(core.collector, rules)
        return False
    o_base = row[CAME + stream] & -size
    o_start, o_stop = row[CAME + stream] - o_base, stop - o_base
    i_base = row[CURSOR] & -size
    i_start, i_stop = row[CURSOR] - i_base, min(last - i_base, size)
    if state[0] < 0:
        state[0], state[1] = i_start, 0
    for k in range(o_stop - o_start):
        core.starts[k], core.stops[k] = i_start, i_stop
    state[2], state[3] = 0, 0
    found = call(
        core.kernels[number],
        (
            chunks[outer + VALUES], chunks[outer + STATUSES], chunks[outer + STAMPS], o_start, o_stop,
            chunks[inner + VALUES], chunks[inner + STATUSES], chunks[inner + STAMPS], i_start, i_stop,
            size + rules[SPARE_TUPLES], rules[STARTS] - 8 * o_start, rules[STOPS] - 8 * o_start,
            rules[LENGTH], rules[LENGTH + 1], rules[LITERALS],
            rules[OUTER_OUT], rules[INNER_OUT], capacity, rules[STATE],
        ),
    )  # fmt: skip
    row[DENSE] = 1 if state[2] * rules[RARE] > state[3] else 0
    give(core, stream, found, o_base, i_base + i_start)
    row[CURSOR] = i_base + state[0]
    if state[0] >= i_stop:
        state[0] = -1
    return True


@jitable
def give(core: Core, stream: Any, found: Any, o_base: Any, i_base: Any) -> Any:
    """Hand matches to the collector."""
    ring = core.found
    number, mask = ring[WRITTEN], (len(ring) - ENTRIES) // 2 - 1
    for k in range(found):
        place = ENTRIES + 2 * ((number + k) & mask)
        ring[place + stream] = o_base + core.outer_out[k]
        ring[place + 1 - stream] = i_base + core.inner_out[k]
    store(ring, WRITTEN, number + found)
    core.row[MATCHED] += found


@jitable
def chunk(core: Core, stream: Any, position: Any) -> Any:
    """Where the chunk of a position is told of."""
    return CHUNK * (stream * SLOTS + (position >> core.rules[CHUNK_BITS]) % SLOTS)


@jitable
def clock(core: Core) -> Any:
    """Nanoseconds."""
    call(core.rules[CLOCK], (core.rules[CLOCK_ID], core.rules[TIME]))
    return core.time[0] * 1_000_000_000 + core.time[1]
