"""The loops of the merge join, by Numba. Imported when the first sorted block is made: Numba takes a while to load."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def merged(groups, keys, ends):  # type: ignore[no-untyped-def]
    """The order of several runs put together, each sorted already and ending where `ends` says: equal ones stay so."""
    count, runs = keys.shape[0], ends.shape[0]
    bounds = np.empty(runs + 1, np.int64)
    bounds[0] = 0
    bounds[1:] = ends
    order, other = np.arange(count), np.empty(count, np.int64)
    while runs > 1:
        half = 0
        for run in range(0, runs, 2):
            i, middle = bounds[run], bounds[run + 1]
            end = bounds[run + 2] if run + 1 < runs else middle
            j = middle
            for n in range(bounds[run], end):
                take = j == end
                if i < middle and j < end:
                    a, b = order[i], order[j]
                    take = groups[a] < groups[b] or (groups[a] == groups[b] and keys[a] <= keys[b])
                if take:
                    other[n] = order[i]
                    i += 1
                else:
                    other[n] = order[j]
                    j += 1
            half += 1
            bounds[half] = end
        runs = half
        order, other = other, order
    return order


@njit(cache=True, nogil=True, inline="always")
def _place(groups, keys, group, key, at, above):  # type: ignore[no-untyped-def]
    """The first place from `at` on with a higher group or key; or, unless `above`, with as high ones.

    It is sought in steps that double, for it is near where the last one was.
    """
    low, step, count = at, 1, keys.shape[0]
    high = at
    while high < count and (
        groups[high] < group or (groups[high] == group and (keys[high] < key or (above and keys[high] == key)))
    ):
        low, high = high + 1, high + step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if groups[middle] < group or (
            groups[middle] == group and (keys[middle] < key or (above and keys[middle] == key))
        ):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    probes, base, low, high, starts, stops, number, first, last, groups, keys,
    of_probe, of_block, of_first, of_end, n, state,
):  # fmt: skip
    """Sweep the sorted bounds of probing tuples over a sorted block: where their candidates begin only ever moves up.

    Runs are written from place `n` on; the place behind the last is returned. Left out are probing tuples in whose
    ranges nothing of the block lies, which holds what came from `first` to `last`. `state` is the probing tuple to go
    on with, and where the candidates of the one before it began and ended.
    """
    begin, end = state[1], state[2]
    for i in range(state[0], probes.shape[0]):
        p = probes[i]
        if stops[p] <= first or starts[p] > last:
            continue
        if n == of_probe.shape[0]:
            state[0], state[1], state[2] = i, begin, end
            return n
        begin = _place(groups, keys, base[p], low[p], begin, False)
        if begin == keys.shape[0]:
            break
        end = max(begin, end)
        # rounding may have made equal bounds of keys that are not, so the end may also lie before the last one
        while end > begin and (groups[end - 1] > base[p] or (groups[end - 1] == base[p] and keys[end - 1] > high[p])):
            end -= 1
        end = _place(groups, keys, base[p], high[p], end, True)
        of_probe[n], of_block[n], of_first[n], of_end[n] = p, number, begin, end
        n += end > begin
    state[0] = probes.shape[0]
    return n
