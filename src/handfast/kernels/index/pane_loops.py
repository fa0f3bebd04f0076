"""The loops of the band index, by Numba. Imported when the first one is made: Numba takes a while to load.

A tuple's code has its stripe in the high half and its column in the low one. A pane is a grid of cells that goes round
at its edges: so many bits of the stripe and so many of the column, less its lowest ones, are the number of a cell.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from handfast.kernels.index.walking import words_at

# a pane's words, in this order: where its offsets are, then bits of stripes, bits of columns, lowest bits left out,
# first number and end of its numbers
FIELDS = 6
_HALF = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _cell(code, stripes, columns, coarse):  # type: ignore[no-untyped-def]
    stripe = (code >> np.uint64(32)) & np.uint64((1 << stripes) - 1)
    column = ((code & _HALF) >> np.uint64(coarse)) & np.uint64((1 << columns) - 1)
    return np.int64((stripe << np.uint64(columns)) | column)


@njit(cache=True, nogil=True)
def count(codes, stripes, columns, coarse, counts):  # type: ignore[no-untyped-def]
    """Count tuples by cell; that of cell c goes to place c + 1."""
    for k in range(codes.shape[0]):
        counts[_cell(codes[k], stripes, columns, coarse) + 1] += 1


@njit(cache=True, nogil=True)
def place(codes, stripes, columns, coarse, following, places):  # type: ignore[no-untyped-def]
    """The place of each tuple: behind those of its cell that were placed before; `following` has the next, by cell."""
    for k in range(codes.shape[0]):
        cell = _cell(codes[k], stripes, columns, coarse)
        places[k] = following[cell]
        following[cell] += 1


@njit(cache=True, nogil=True)
def runs(  # type: ignore[no-untyped-def]
    panes, order, first, stop, stripe, stripes, step, low, high, starts, stops, of_probe, of_pane, of_first, of_end, cut
):  # fmt: skip
    """The runs of tuples that probing tuples have to try, from `first` up to `stop` in the order.

    A probing tuple tries `stripes` stripes, from `stripe` on and `step` apart, in each the columns from `low` to
    `high`. Panes that lie in no range are left out; `cut` becomes the end of the runs in panes that lie in all ranges:
    they come first. Returns how many runs there are, or -1 if there is no room for them.
    """
    least, most = starts[order[first]], stops[order[first]]
    earliest, latest = least, most
    for k in range(first, stop):
        i = order[k]
        earliest, least = min(earliest, starts[i]), max(least, starts[i])
        latest, most = max(latest, stops[i]), min(most, stops[i])
    n = 0
    for within in (True, False):
        for p in range(panes.shape[0]):
            begin, end = panes[p, 4], panes[p, 5]
            if end <= earliest or begin >= latest or within != (begin >= least and end <= most):
                continue
            bits, columns, coarse = panes[p, 1], panes[p, 2], panes[p, 3]
            offsets = carray(words_at(panes[p, 0]), ((1 << (bits + columns)) + 1,), np.uint32)
            wide, across = 1 << bits, 1 << columns
            for k in range(first, stop):
                i = order[k]
                if begin >= stops[i] or end <= starts[i]:
                    continue
                a, z = low[i] >> coarse, high[i] >> coarse
                whole = z - a >= across - 1
                a, z = a & (across - 1), z & (across - 1)
                for number in range(min(stripes[i], wide)):
                    own = (stripe[i] + np.uint64(number) * step) & np.uint64(wide - 1)
                    row = np.int64(own) << columns
                    if n + 2 > of_probe.shape[0]:
                        return -1
                    if whole:
                        u, v = offsets[row], offsets[row + across]
                    elif a <= z:
                        u, v = offsets[row + a], offsets[row + z + 1]
                    else:
                        u, v = offsets[row], offsets[row + z + 1]
                        of_probe[n], of_pane[n], of_first[n], of_end[n] = i, p, u, v
                        n += v > u
                        u, v = offsets[row + a], offsets[row + across]
                    of_probe[n], of_pane[n], of_first[n], of_end[n] = i, p, u, v
                    n += v > u
        if within:
            cut[0] = n
    return n
