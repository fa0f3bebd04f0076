"""The loops of the band index, by Numba. Imported when the first one is made: Numba takes a while to load.

A tuple's code has its stripe in the high half and its column in the low one. A pane is a grid of cells that goes round
at its edges: so many bits of the stripe and so many of the column, less its lowest ones, are the number of a cell.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit  # type: ignore[attr-defined]

from handfast.kernels.index.bands import FINE
from handfast.kernels.index.walking import words_at

# a pane's words, in this order: where its offsets are, then bits of stripes, bits of columns, lowest bits left out,
# first number and end of its numbers
FIELDS = 6
PER_CELL = 2  # tuples in a cell on average
SAMPLE = 1 << 10  # tuples by which the stripes are counted
_COARSE = FINE.bit_length() - 1  # lowest bits of a column that may be left out: a cell is as wide as the band then
_MOST_STRIPES = 24  # bits
_HALF = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def probing(present, starts, stops, order):  # type: ignore[no-untyped-def]
    """Write which tuples are present and have a range; how many they are, and how many tuples their ranges have."""
    n, reached = 0, 0
    for k in range(present.shape[0]):
        if present[k] and starts[k] < stops[k]:
            order[n] = k
            n += 1
            reached += stops[k] - starts[k]
    return n, reached


@njit(cache=True, nogil=True)
def cells(groups, keys, below, above, scale, codes, stripe, stripes, low, high):  # type: ignore[no-untyped-def]
    """Where tuples with these keys of a band lie, and where their partners can: in the stripe of their group.

    Partners have keys from `below` to `above` away; `scale` makes a key the number of a cell.
    """
    for k in range(keys.shape[0]):
        group = groups[k] >> np.uint64(32)
        codes[k] = (group << np.uint64(32)) | (np.uint64(np.int64(np.floor(keys[k] * scale))) & _HALF)
        stripe[k], stripes[k] = group, 1
        low[k] = np.int64(np.floor((keys[k] + below) * scale))
        high[k] = np.int64(np.floor((keys[k] + above) * scale))


@njit(cache=True, nogil=True)
def integer_cells(  # type: ignore[no-untyped-def]
    values, factor, limit, groups, below, above, scale, codes, stripe, stripes, low, high
):  # fmt: skip
    """Where tuples lie whose keys are these integers, each multiplied; False if one of them is beyond the limit."""
    keys = np.empty(values.shape[0], np.int64)
    for k in range(values.shape[0]):
        if not -limit <= values[k] <= limit:
            return False
        keys[k] = values[k] * factor
    cells(groups, keys, below, above, scale, codes, stripe, stripes, low, high)
    return True


@njit(cache=True, nogil=True, inline="always")
def _bits(number):  # type: ignore[no-untyped-def]
    """How many bits a number has that is not negative."""
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@njit(cache=True, nogil=True)
def grid(sample, total):  # type: ignore[no-untyped-def]
    """The grid for so many tuples, of which a sample has these codes: bits of stripes, of columns, and left out.

    There are as many stripes as there seem to be, and the other bits are for columns. These are as narrow as there is
    room for them all; where there is none, far ones share a cell.
    """
    room = max(0, _bits(total // PER_CELL) - 1)
    alike = True  # most often there is one stripe
    least = most = np.int32(sample[0] & _HALF)
    for code in sample:
        alike = alike and code >> np.uint64(32) == sample[0] >> np.uint64(32)
        least, most = min(least, np.int32(code & _HALF)), max(most, np.int32(code & _HALF))
    distinct = 1
    if not alike:
        ordered = np.sort(sample >> np.uint64(32))
        distinct += int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    stripes = room if 1 < distinct and 2 * distinct > sample.shape[0] else min(room, _bits(distinct - 1))
    coarse = 0
    while coarse < _COARSE and _bits((most >> coarse) - (least >> coarse)) > room - stripes:
        coarse += 1
    bits = min(room - stripes, _bits((most >> coarse) - (least >> coarse)))
    return min(room - bits, _MOST_STRIPES) if distinct > 1 else 0, bits, coarse


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
def in_order(codes, positions, shift, offsets, order, own_codes, own_positions):  # type: ignore[no-untyped-def]
    """Put all tuples of a pane in the order of their cells: where cells begin, which tuple is where, code, position.

    What is written has room for a vector behind the tuples. Returns the grid.
    """
    count = codes.shape[0]
    stripes, columns, coarse = grid(codes[:: max(1, count // SAMPLE)].copy(), count)
    offsets = offsets[: (1 << (stripes + columns)) + 1]
    offsets[:] = 0
    for k in range(count):
        offsets[_cell(codes[k], stripes, columns, coarse)] += 1
    for c in range(1, offsets.shape[0]):
        offsets[c] += offsets[c - 1]
    for k in range(count - 1, -1, -1):  # from the last one on, so that where a cell ends becomes its start
        cell = _cell(codes[k], stripes, columns, coarse)
        offsets[cell] -= 1
        at = offsets[cell]
        order[at], own_codes[at], own_positions[at] = k, codes[k], positions[k] + shift
    order[count:], own_positions[count:] = 0, 0
    return stripes, columns, coarse


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
