"""The adaptive network in the fast model: a cycle visits the nodes and mergers that have something to move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.adaptive import EAST, HOP_BITS, NORTH, WEST
from handfast.engines.hardware.model.bits import Ints, empty_set, empty_sets, kernel, lowest, put, put_in
from handfast.engines.hardware.model.fifos import NONE, Fifos, clock_fifo, empty_fifos, pop, push
from handfast.engines.hardware.model.links import parents_and_ports, tree_children
from handfast.engines.hardware.shape import CircuitShape

_LAST = 1 << 30  # added to a counter: more than any level


class Ring(NamedTuple):
    """The nodes of the ring. Registers of E_out and W_out are kept with the node that reads them."""

    north: Ints  # by node: the word in the register of N_out
    rising: Ints  # set: the nodes with a word there
    from_west: Ints  # by phase and node: the word from the west; a cycle reads one phase and writes the other
    from_east: Ints
    west_hops: Ints  # and their hop counters
    east_hops: Ints
    visited: Ints  # by phase, sets: the nodes that a word comes to
    phase: Ints  # one number
    offered: Ints  # by node: the new word of the join core
    north_before_east: bool  # among equal counters
    north_before_west: bool
    east_before_west: bool
    east_older: bool  # among equal hop counters
    north_last_when_almost_full: bool
    most_hops: int  # where the hop counter stays


class BufferlessTree(NamedTuple):
    """Mergers without FIFOs, from the root on."""

    children: Ints  # by merger and port: which it reads: a merger; behind the mergers the FIFOs, and one without a word
    held: Ints  # by merger and port: the input registers
    result: Ints  # by merger: the output register
    turn: Ints  # by merger: 1: the second port goes first
    parent: Ints  # by merger, and behind them by FIFO: the merger that reads it, -1 for the root
    active: Ints  # by phase, sets: the mergers that may have something to move


def empty_adaptive(shape: CircuitShape) -> tuple[Ring, BufferlessTree, Fifos]:
    """The adaptive network of a circuit, without a word."""
    n = shape.inputs
    assert isinstance(shape.network_buffer, int)
    ties = shape.port_ties
    words = np.full((2, n), NONE, np.int64)
    ring = Ring(
        north=np.full(n, NONE, np.int64),
        rising=empty_set(n),
        from_west=words.copy(),
        from_east=words.copy(),
        west_hops=np.zeros((2, n), np.int64),
        east_hops=np.zeros((2, n), np.int64),
        visited=empty_sets(2, n),
        phase=np.zeros(1, np.int64),
        offered=np.full(n, NONE, np.int64),
        north_before_east=ties.index(NORTH) < ties.index(EAST),
        north_before_west=ties.index(NORTH) < ties.index(WEST),
        east_before_west=ties.index(EAST) < ties.index(WEST),
        east_older=shape.rank_ties == EAST,
        north_last_when_almost_full=shape.north_last == "almost_full",
        most_hops=(1 << HOP_BITS) - 1,
    )
    children = tree_children(n, 2)
    mergers = len(children)
    tree = BufferlessTree(
        children=children,
        held=np.full((mergers, 2), NONE, np.int64),
        result=np.full(mergers, NONE, np.int64),
        turn=np.zeros(mergers, np.int64),
        parent=parents_and_ports(children, mergers + n)[0],
        active=empty_sets(2, mergers),
    )
    return ring, tree, empty_fifos([shape.network_buffer] * n, shape.margin, shape.latency)


@kernel
def run_bufferless_tree(now: int, tree: BufferlessTree, fifos: Fifos) -> int:
    """A cycle of the tree, from the root on, and the word that leaves it.

    What a merger takes from its child makes room there within the same cycle.
    """
    held, result, turn, active, mergers = tree.held, tree.result, tree.turn, tree.active, len(tree.turn)
    if mergers == 0:
        return pop(fifos, 0) if fifos.front[0] != NONE else NONE
    word: int = result[0]
    if word != NONE:
        result[0] = NONE
        put_in(active, now, 0)
    for w in range(active.shape[1]):
        while active[now, w]:
            i = w * 64 + lowest(active[now, w])
            active[now, w] &= active[now, w] - 1
            first, second = held[i, 0], held[i, 1]
            if result[i] == NONE and (first != NONE or second != NONE):
                port = 1 if second != NONE and (turn[i] or first == NONE) else 0
                result[i] = second if port else first
                held[i, port] = NONE
                turn[i] = 1 - port
                if i:
                    put_in(active, 1 - now, tree.parent[i])
            for port in range(2):
                if held[i, port] != NONE:
                    continue
                child = tree.children[i, port]
                if child >= mergers:
                    if fifos.front[child - mergers] != NONE:
                        held[i, port] = pop(fifos, child - mergers)
                elif result[child] != NONE:
                    held[i, port] = result[child]
                    result[child] = NONE
                    put_in(active, now, child)
            if result[i] == NONE and (held[i, 0] != NONE or held[i, 1] != NONE):
                put_in(active, 1 - now, i)
    return word


@kernel
def run_ring(now: int, ring: Ring, refused: Ints, fifos: Fifos) -> None:
    """A cycle of the ring: what is in the registers of N_out is written, and every visited node ranks and sends.

    A new word that could not go out is refused, by node.
    """
    rising, visited, level = ring.rising, ring.visited, fifos.level
    from_west, from_east, west_hops, east_hops = ring.from_west, ring.from_east, ring.west_hops, ring.east_hops
    n = len(ring.north)
    then = 1 - now
    for w in range(len(rising)):
        word = rising[w]
        rising[w] = 0
        while word:
            k = w * 64 + lowest(word)
            word &= word - 1
            push(fifos, k, ring.north[k])
    for w in range(len(rising)):
        word = visited[now, w]
        visited[now, w] = 0
        while word:
            k = w * 64 + lowest(word)
            word &= word - 1
            before, after = k - 1 if k else n - 1, k + 1 if k + 1 < n else 0
            east_word, west_word, new = from_east[now, k], from_west[now, k], ring.offered[k]
            from_east[now, k] = from_west[now, k] = ring.offered[k] = NONE
            own, east, west = level[k], level[after], level[before]
            # The word in the register of N_out is written in this very cycle and not yet counted.
            no_room = own + int(fifos.pushed[k] != NONE) >= fifos.depth[k]
            if no_room and east_word != NONE and west_word != NONE and new != NONE:
                refused[k] = 1
                new = NONE
            if no_room or (ring.north_last_when_almost_full and own >= fifos.limit[k]):
                own += _LAST

            # By hops the oldest first; a new word has made none.
            first, first_hops = east_word, east_hops[now, k]
            second, second_hops = west_word, west_hops[now, k]
            third: int = new
            if first == NONE or (
                second != NONE and (second_hops > first_hops or (second_hops == first_hops and not ring.east_older))
            ):
                first, second = second, first
                first_hops, second_hops = second_hops, first_hops
            if second == NONE:
                second, second_hops, third = third, 0, NONE
            if first == NONE:
                first, first_hops, second = second, 0, NONE

            # How many ports go before each port; the word of that rank is its own.
            east_before_north = east < own or (east == own and not ring.north_before_east)
            west_before_north = west < own or (west == own and not ring.north_before_west)
            west_before_east = west < east or (west == east and not ring.east_before_west)
            north_rank = int(east_before_north) + int(west_before_north)
            east_rank = int(not east_before_north) + int(west_before_east)
            west_rank = 3 - north_rank - east_rank

            up = first if north_rank == 0 else second if north_rank == 1 else third
            if up != NONE:
                ring.north[k] = up
                put(rising, k)
            right = first if east_rank == 0 else second if east_rank == 1 else third
            if right != NONE:
                hops = first_hops if east_rank == 0 else second_hops if east_rank == 1 else 0
                from_west[then, after] = right
                west_hops[then, after] = min(hops + 1, ring.most_hops)
                put_in(visited, then, after)
            left = first if west_rank == 0 else second if west_rank == 1 else third
            if left != NONE:
                hops = first_hops if west_rank == 0 else second_hops if west_rank == 1 else 0
                from_east[then, before] = left
                east_hops[then, before] = min(hops + 1, ring.most_hops)
                put_in(visited, then, before)


@kernel
def clock_adaptive(then: int, tree: BufferlessTree, fifos: Fifos) -> None:
    """End the cycle: FIFOs take and give, and mergers learn what they can read."""
    touched, mergers = fifos.touched, len(tree.turn)
    for w in range(len(touched)):
        word = touched[w]
        touched[w] = 0
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            clock_fifo(fifos, i)
            if fifos.front[i] != NONE and mergers:
                put_in(tree.active, then, tree.parent[mergers + i])
