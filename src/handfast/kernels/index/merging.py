"""The loop of the merge join, by Numba. Imported when the first sorted segment is made: Numba takes a while to load."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def sweep(probes, base, low, high, starts, stops, groups, keys, positions, at, found, n, state):  # type: ignore[no-untyped-def]
    """Sweep the sorted bounds of probes over a sorted block: where a probe's candidates begin only ever moves up.

    Pairs are written from place `n` on; the place behind the last is returned. `state` is probe, first candidate,
    candidate: where to go on when the output is full.
    """
    count, stored = probes.shape[0], keys.shape[0]
    i, first, j = state[0], state[1], state[2]
    while i < count:
        p = probes[i]
        if j < 0:
            while first < stored and (groups[first] < base[p] or (groups[first] == base[p] and keys[first] < low[p])):
                first += 1
            if first == stored:
                break
            j = first
        while j < stored and groups[j] == base[p] and keys[j] <= high[p]:
            if starts[p] <= positions[j] < stops[p]:
                if n == at.shape[0]:
                    state[0], state[1], state[2] = i, first, j
                    return n
                at[n] = p
                found[n] = positions[j]
                n += 1
            j += 1
        i += 1
        j = -1
    state[0] = count
    return n
