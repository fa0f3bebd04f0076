"""The loops of partial matches, by Numba. Imported when the first ones are extended: Numba takes a while to load."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def grouped(which, count):  # type: ignore[no-untyped-def]
    """The places of equal numbers side by side, and where those of each number begin; one more start for the end."""
    starts = np.zeros(count + 1, np.int64)
    for k in range(which.shape[0]):
        starts[which[k] + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    room = starts.copy()
    order = np.empty(which.shape[0], np.int64)
    for k in range(which.shape[0]):
        own = which[k]
        order[room[own]] = k
        room[own] += 1
    return order, starts


@njit(cache=True, nogil=True)
def fan_out(order, starts, at, found, rows, partners):  # type: ignore[no-untyped-def]
    n = 0
    for k in range(at.shape[0]):
        partner = found[k]
        for place in range(starts[at[k]], starts[at[k] + 1]):
            rows[n] = order[place]
            partners[n] = partner
            n += 1


@njit(cache=True, nogil=True)
def left_over(r, s, kept_r, kept_s):  # type: ignore[no-untyped-def]
    held = np.zeros(r.shape[0], np.bool_)
    n = 0
    for k in range(r.shape[0]):
        if n < kept_r.shape[0] and r[k] == kept_r[n] and s[k] == kept_s[n]:
            held[k] = True
            n += 1
    return held
