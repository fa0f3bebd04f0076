"""The loops of the hash index, by Numba. Imported when the first hash index is made: Numba takes a while to load.

A stored tuple is a node in a ring: its key in two words, and the number of the tuple before it in its list. A number
is a tuple's place in the order of insertion, counted from the index's base. Lists run from the newest tuple to the
oldest, and nothing is ever taken out: the first number that lies before the searched range ends a walk, so nodes that
the ring has used again are never looked at.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from handfast.kernels.index.walking import prefetch, turn_round

WORDS = 3  # of a node: the key's low and high word, and the link
_IN_NO_LIST = np.uint32(1 << 31)  # in the place of a link: below every number
_AHEAD = 16  # so many tuples before its turn a list's head is fetched


@njit(cache=True, nogil=True, inline="always")
def _slot(key, slots):  # type: ignore[no-untyped-def]
    """The list that a key belongs to: the high half of a product spreads over any number of lists."""
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(((key >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))


@njit(cache=True, nogil=True, inline="always")
def _place(number, ring, room):  # type: ignore[no-untyped-def]
    """Where a number's node is; `ring` is the multiple of the ring's room at or before the oldest number."""
    place = number - ring
    return place - room if place >= room else place


@njit(cache=True, nogil=True, inline="always")
def _key(nodes, place):  # type: ignore[no-untyped-def]
    return np.uint64(nodes[WORDS * place]) | (np.uint64(nodes[WORDS * place + 1]) << np.uint64(32))


@njit(cache=True, nogil=True)
def insert(keys, present, first, heads, nodes, ring):  # type: ignore[no-untyped-def]
    """Store the next tuples, from number `first` on; those not present have a node, but are in no list."""
    slots, room = heads.shape[0], nodes.shape[0] // WORDS
    place = _place(first, ring, room)
    count = keys.shape[0]
    for k in range(count):
        if k + _AHEAD < count:
            prefetch(heads, _slot(keys[k + _AHEAD], slots))
        if present[k]:
            key = keys[k]
            slot = _slot(key, slots)
            nodes[WORDS * place] = np.uint32(key)
            nodes[WORDS * place + 1] = np.uint32(key >> np.uint64(32))
            nodes[WORDS * place + 2] = np.uint32(heads[slot])
            heads[slot] = first + k
        else:
            nodes[WORDS * place + 2] = _IN_NO_LIST
        place += 1
        if place == room:
            place = 0


@njit(cache=True, nogil=True)
def moved(first, stop, nodes, ring, to, to_ring, heads):  # type: ignore[no-untyped-def]
    """Copy the nodes of the numbers from `first` up to `stop` into a larger ring, and make the lists anew."""
    slots, room, wider = heads.shape[0], nodes.shape[0] // WORDS, to.shape[0] // WORDS
    for number in range(first, stop):
        ahead = number + _AHEAD
        if ahead < stop:
            prefetch(heads, _slot(_key(nodes, _place(ahead, ring, room)), slots))
        old, new = _place(number, ring, room), _place(number, to_ring, wider)
        for word in range(WORDS):
            to[WORDS * new + word] = nodes[WORDS * old + word]
        if nodes[WORDS * old + 2] != _IN_NO_LIST:
            slot = _slot(_key(nodes, old), slots)
            to[WORDS * new + 2] = np.uint32(heads[slot])
            heads[slot] = number


@njit(cache=True, nogil=True)
def rebase(amount, heads, nodes):  # type: ignore[no-untyped-def]
    """Count all numbers from a base that lies so much later; what was before it ends its list."""
    for slot in range(heads.shape[0]):
        heads[slot] = max(-1, heads[slot] - amount)
    for place in range(nodes.shape[0] // WORDS):
        number = np.int64(np.int32(nodes[WORDS * place + 2]))
        if number >= 0:
            nodes[WORDS * place + 2] = np.uint32(max(-1, number - amount))


@njit(cache=True, nogil=True)
def probe_together(  # type: ignore[no-untyped-def]
    keys, order, starts, stops, shift, heads, nodes, ring, lanes, at, places, found, state
):  # fmt: skip
    """Search the lists of many probing tuples side by side, from the newest number down to each one's start.

    Where there are `stops`, what lies at a tuple's stop or behind it is passed by.

    While one walk waits for memory, the others of its group go on: `lanes` and `at` are the walks of the group that
    are not over, and their numbers. Nothing branches on what is found, which no CPU can foresee: a pair and a walk are
    written in any case, and stay if they are counted. `shift` is the number of position 0. `state` is the group and
    how many of its walks go on, -1 if none has begun: where to go on when the output is full.
    """
    slots, room = heads.shape[0], nodes.shape[0] // WORDS
    capacity, size, count = places.shape[0], lanes.shape[0], order.shape[0]
    n = 0
    group, live = state[0], state[1]
    while group < count:
        if live < 0:
            stop = min(group + size, count)
            for k in range(group, stop):
                prefetch(heads, _slot(keys[order[k]], slots))
            live = 0
            for k in range(group, stop):
                i = order[k]
                number = np.int64(heads[_slot(keys[i], slots)])
                prefetch(nodes, WORDS * _place(number, ring, room))
                lanes[live] = i
                at[live] = number
                live += number >= starts[i] + shift
        while live > 0:
            if n + live > capacity:
                state[0], state[1] = group, live
                return n
            left = 0
            for k in range(live):
                i, number = lanes[k], at[k]
                place = _place(number, ring, room)
                places[n] = i
                found[n] = number - shift
                if stops is None:
                    n += _key(nodes, place) == keys[i]
                else:
                    n += (_key(nodes, place) == keys[i]) & (number - shift < stops[i])
                number = np.int64(np.int32(nodes[WORDS * place + 2]))
                prefetch(nodes, WORDS * _place(number, ring, room))
                lanes[left] = i
                at[left] = number
                left += number >= starts[i] + shift
            live = left
        live = -1
        group += size
    state[0], state[1] = count, -1
    return n


@njit(cache=True, nogil=True)
def probe_in_turn(  # type: ignore[no-untyped-def]
    keys, order, starts, stops, shift, heads, nodes, ring, cursors, marks, mark, places, found, state
):  # fmt: skip
    """Search the list of one probing tuple after the other, from the newest number before its stop to its start.

    Tuples come in an order in which stops never go up: what one search skips at the head of a list, all later ones
    skip as well. So `cursors` has where to begin in a list, if its mark is `mark`. `state` is the step and the number
    to go on from when the output is full, -1 if the step has not begun. What is found comes oldest first.
    """
    slots, room = heads.shape[0], nodes.shape[0] // WORDS
    capacity, count = places.shape[0], order.shape[0]
    n = 0
    step, number = state[0], state[1]
    while step < count:
        i = order[step]
        key, start = keys[i], starts[i] + shift
        if number < 0:
            slot = _slot(key, slots)
            number = np.int64(cursors[slot]) if marks[slot] == mark else np.int64(heads[slot])
            stop = stops[i] + shift
            if number >= stop:
                while number >= stop:
                    number = np.int64(np.int32(nodes[WORDS * _place(number, ring, room) + 2]))
                cursors[slot] = number
                marks[slot] = mark
        while number >= start:
            place = _place(number, ring, room)
            if _key(nodes, place) == key:
                if n == capacity:
                    state[0], state[1] = step, number
                    turn_round(places, found, n)
                    return n
                places[n] = i
                found[n] = number - shift
                n += 1
            number = np.int64(np.int32(nodes[WORDS * place + 2]))
        number = -1
        step += 1
    state[0], state[1] = step, -1
    turn_round(places, found, n)
    return n
