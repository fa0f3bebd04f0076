"""The loops of the cell index, by Numba. Imported when the first cell index is made: Numba takes a while to load."""

from __future__ import annotations

import numpy as np
from numba import njit

# A cell is the number of the equality keys plus the bucket in each band times that band's stride. The strides are odd,
# and cells of neighbouring buckets never coincide: so no probe meets a tuple twice.
FIRST_STRIDE = 0x9E3779B97F4A7C15
SECOND_STRIDE = 0xC2B2AE3D27D4EB4F
NOT_STARTED = -2
_SLOT = 0xD6E8FEB86659FD93


@njit(cache=True, nogil=True)
def _slot(cell, mask):  # type: ignore[no-untyped-def]
    cell = (cell ^ (cell >> np.uint64(32))) * np.uint64(_SLOT)
    return np.int64((cell ^ (cell >> np.uint64(29))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def insert(cells, present, start, heads, links, stored):  # type: ignore[no-untyped-def]
    mask = heads.shape[0] - 1
    for k in range(cells.shape[0]):
        at = start + k
        stored[at] = cells[k]
        links[at] = -1
        if present[k]:
            slot = _slot(cells[k], mask)
            links[at] = heads[slot]
            heads[slot] = at


@njit(cache=True, nogil=True)
def _turn_round(probes, found, n):  # type: ignore[no-untyped-def]
    """Put what was found last first: people read matches from the oldest to the newest."""
    for k in range(n // 2):
        last = n - 1 - k
        probes[k], probes[last] = probes[last], probes[k]
        found[k], found[last] = found[last], found[k]


@njit(cache=True, nogil=True)
def probe(  # type: ignore[no-untyped-def]
    base, low, high, low2, high2, order, starts, stops,
    heads, links, stored, cursors, cursors_of, this_probe, probes, found, state,
):  # fmt: skip
    """Search the lists of each probing tuple's cells, from the newest position before its stop down to its start.

    Tuples are probed in the given order, in which stops never go up: what one search skips at the head of a list, all
    later ones skip as well. So `cursors` has where to begin in a slot, if it was set by this probe. `state` is the
    step, both buckets and the position: where to go on when the output is full.
    """
    mask = heads.shape[0] - 1
    capacity = probes.shape[0]
    n = 0
    step, b, c, at = state[0], state[1], state[2], state[3]
    count = order.shape[0]
    while step < count:
        i = order[step]
        if at == NOT_STARTED:
            b = low[i]
            c = low2[i]
        while b <= high[i]:
            while c <= high2[i]:
                cell = base[i] + np.uint64(b) * np.uint64(FIRST_STRIDE) + np.uint64(c) * np.uint64(SECOND_STRIDE)
                if at == NOT_STARTED:
                    slot = _slot(cell, mask)
                    at = cursors[slot] if cursors_of[slot] == this_probe else heads[slot]
                    if at >= stops[i]:
                        while at >= stops[i]:
                            at = links[at]
                        cursors[slot] = at
                        cursors_of[slot] = this_probe
                while at >= starts[i]:
                    if stored[at] == cell:
                        if n == capacity:
                            state[0], state[1], state[2], state[3] = step, b, c, at
                            _turn_round(probes, found, n)
                            return n
                        probes[n] = i
                        found[n] = at
                        n += 1
                    at = links[at]
                at = NOT_STARTED
                c += 1
            c = low2[i]
            b += 1
        step += 1
    state[0], state[1], state[2], state[3] = step, 0, 0, NOT_STARTED
    _turn_round(probes, found, n)
    return n
