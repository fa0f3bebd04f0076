"""The loop of the merge join, by Numba. Imported when the first sorted segment is made: Numba takes a while to load."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def sweep(low, high, probes, keys, positions, oldest, at, found, state):  # type: ignore[no-untyped-def]
    """Sweep the sorted bounds of probes over a sorted block: where a probe's candidates begin only ever moves up.

    `state` is probe, first candidate, candidate: where to go on when the output is full.
    """
    n = 0
    i, first, j = state[0], state[1], state[2]
    while i < low.shape[0]:
        if j < 0:
            while first < keys.shape[0] and keys[first] < low[i]:
                first += 1
            if first == keys.shape[0]:
                break
            j = first
        while j < keys.shape[0] and keys[j] <= high[i]:
            if positions[j] >= oldest:
                if n == at.shape[0]:
                    state[0], state[1], state[2] = i, first, j
                    return n
                at[n] = probes[i]
                found[n] = positions[j]
                n += 1
            j += 1
        i += 1
        j = -1
    state[0] = low.shape[0]
    return n
