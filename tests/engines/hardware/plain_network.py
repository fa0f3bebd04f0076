"""Plain models of the merging networks, register by register: what the circuits are compared with, at any output.

A word is a number from 0 on, and -1 stands for no word. A state is made once and changed in place by the steps; each
step is one clock cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from handfast.engines.hardware.adaptive import HOP_BITS, NORTH_LAST, PORT_TIES, NorthLast, Order
from handfast.engines.hardware.fifo import LATENCY, MARGIN
from handfast.engines.hardware.merger import CYCLES, WRITES
from handfast.engines.hardware.tree import MergerKind, level_sizes

Ints = npt.NDArray[np.int64]

NONE = -1  # no word


class FifoStates(NamedTuple):
    """A row of FIFOs."""

    depth: Ints  # slots
    limit: Ints  # almost full from this level on
    level: Ints  # words stored
    oldest: Ints  # the slot of the oldest word
    words: Ints  # by FIFO and slot
    front: (
        Ints  # the oldest word, if it can be read; behind the FIFOs come the inputs of a tree, and one without a word
    )
    popped: Ints  # 1: what is in front is taken in this cycle
    pushed: Ints  # the word that is written in this cycle
    latency: int


class TreeState(NamedTuple):
    """A tree of mergers, from the root on; merger i has FIFO i."""

    fifos: FifoStates
    children: Ints  # by merger and port: which word in front it reads
    state: Ints  # the merger's state, or the place of its token
    held: Ints  # by merger and port: words read and not yet written
    countdown: Ints  # one number: cycles until the output channel takes the next word
    round_robin: bool
    cycles: int
    first_write: int
    second_write: int
    cycles_per_result: int


class AdaptiveState(NamedTuple):
    """Ring, FIFO layer and bufferless tree."""

    fifos: FifoStates
    north: Ints  # by node: the word in the register of N_out
    east: Ints  # by phase and node: the word in the register of E_out; a cycle reads one phase and writes the other
    west: Ints
    east_hops: Ints  # and their hop counters
    west_hops: Ints
    phase: Ints  # one number
    children: Ints  # by merger and port: which result it reads
    held: Ints  # by merger and port: the input registers
    result: Ints  # by merger: the output register; behind the mergers what is in front of each FIFO, and one without
    turn: Ints  # by merger: 1: the second port goes first
    most_hops: int  # where the hop counter stays
    north_before_east: bool  # among equal counters
    north_before_west: bool
    east_before_west: bool
    east_older: bool  # among equal hop counters
    north_last_when_almost_full: bool


def tree_state(
    *,
    n: int,
    depth: int | Sequence[int],
    margin: int = MARGIN,
    latency: int = LATENCY,
    merger: MergerKind = "states",
    fan_in: int = 2,
    cycles: int = CYCLES,
    writes: tuple[int, int] = WRITES,
    cycles_per_result: int = 1,
) -> TreeState:
    """An empty tree network with the parameters of `TreeNetwork`."""
    levels = level_sizes(n, fan_in)
    depths = [depth] * len(levels) if isinstance(depth, int) else list(depth)
    children = tree_children(n, fan_in)
    return TreeState(
        fifos=fifo_states(
            [depths[level] for level, size in enumerate(levels) for _ in range(size)], margin, latency, behind=n + 1
        ),
        children=children,
        state=np.zeros(len(children), np.int64),
        held=np.full((len(children), 2), NONE, np.int64),
        countdown=np.zeros(1, np.int64),
        round_robin=merger == "round_robin",
        cycles=cycles,
        first_write=writes[0],
        second_write=writes[1],
        cycles_per_result=cycles_per_result,
    )


def adaptive_state(
    *,
    n: int,
    depth: int,
    margin: int = MARGIN,
    latency: int = LATENCY,
    port_ties: Order = PORT_TIES,
    rank_ties: str = "E",
    north_last: NorthLast = NORTH_LAST,
    hop_bits: int = HOP_BITS,
) -> AdaptiveState:
    """An empty adaptive network with the parameters of `AdaptiveNetwork`."""
    children = tree_children(n, 2)
    return AdaptiveState(
        fifos=fifo_states([depth] * n, margin, latency),
        north=np.full(n, NONE, np.int64),
        east=np.full((2, n), NONE, np.int64),
        west=np.full((2, n), NONE, np.int64),
        east_hops=np.zeros((2, n), np.int64),
        west_hops=np.zeros((2, n), np.int64),
        phase=np.zeros(1, np.int64),
        children=children,
        held=np.full((len(children), 2), NONE, np.int64),
        result=np.full(len(children) + n + 1, NONE, np.int64),
        turn=np.zeros(len(children), np.int64),
        most_hops=(1 << hop_bits) - 1,
        north_before_east=port_ties.index("N") < port_ties.index("E"),
        north_before_west=port_ties.index("N") < port_ties.index("W"),
        east_before_west=port_ties.index("E") < port_ties.index("W"),
        east_older=rank_ties == "E",
        north_last_when_almost_full=north_last == "almost_full",
    )


def fifo_states(depths: list[int], margin: int, latency: int, behind: int = 0) -> FifoStates:
    depth = np.array(depths, np.int64)
    size = len(depths)
    return FifoStates(
        depth=depth,
        limit=depth - margin,
        level=np.zeros(size, np.int64),
        oldest=np.zeros(size, np.int64),
        words=np.full((size, max(depths, default=1)), NONE, np.int64),
        front=np.full(size + behind, NONE, np.int64),
        popped=np.zeros(size + behind, np.int64),
        pushed=np.full(size, NONE, np.int64),
        latency=latency,
    )


def tree_children(n: int, fan_in: int) -> Ints:
    """What every port of every merger reads, as `connect_levels` connects them.

    Mergers are numbered from the root on, inputs behind them; the number after the last input is what a port reads that
    is left out.
    """
    sizes = [*level_sizes(n, fan_in), n]
    children = np.full((sum(sizes) - n, fan_in), sum(sizes), np.int64)
    start = 0
    for size, below in pairwise(sizes):
        for child in range(below):
            children[start + child // fan_in, child % fan_in] = start + size + child
        start += size
    return children


@njit(cache=True, nogil=True)
def clock_fifos(fifos: FifoStates) -> None:
    """End the cycle of every FIFO: what was popped leaves, what was pushed is stored."""
    # Arrays as local names: reaching into a state, or handing it on, costs a count of references each time.
    level, popped, pushed, front = fifos.level, fifos.popped, fifos.pushed, fifos.front
    oldest, words, depth = fifos.oldest, fifos.words, fifos.depth
    at_once = fifos.latency < 2
    for i in range(len(level)):
        pop, word, before = popped[i], pushed[i], level[i]
        readable = before - pop
        if pop:
            oldest[i] = oldest[i] + 1 if oldest[i] + 1 < depth[i] else 0
            popped[i] = 0
        if word != NONE:
            slot = oldest[i] + before - pop
            words[i, slot if slot < depth[i] else slot - depth[i]] = word
            pushed[i] = NONE
            level[i] = before - pop + 1
            if at_once:
                readable += 1
        elif pop:
            level[i] = before - pop
        front[i] = words[i, oldest[i]] if readable else NONE


@njit(cache=True, nogil=True)
def tree_step(net: TreeState, offered: Ints, ready: bool, taken: Ints) -> int:
    """One cycle of a tree network.

    Args:
        net: The network.
        offered: The word at each input.
        ready: Whether the output is taken.
        taken: Is set to 1 for each input whose word is taken, else to 0.

    Returns:
        The word at the output.
    """
    front, popped = net.fifos.front, net.fifos.popped
    mergers = len(net.state)
    for k in range(len(offered)):
        front[mergers + k] = offered[k]
        popped[mergers + k] = 0
    word: int = NONE
    if net.countdown[0] > 0:
        net.countdown[0] -= 1
    else:
        word = front[0]  # the root's; of one input alone, its own
        if word != NONE and ready:
            net.countdown[0] = net.cycles_per_result - 1
            popped[0] = 1
    if net.round_robin:
        _step_round_robin(net)
    else:
        _step_states(net)
    for k in range(len(offered)):
        taken[k] = popped[mergers + k]
    clock_fifos(net.fifos)
    return word


@njit(cache=True, nogil=True)
def _step_states(net: TreeState) -> None:
    children, states, held = net.children, net.state, net.held
    level, limit, depth, pushed = net.fifos.level, net.fifos.limit, net.fifos.depth, net.fifos.pushed
    front, popped = net.fifos.front, net.fifos.popped
    first_write, second_write, cycles = net.first_write, net.second_write, net.cycles
    for i in range(len(states)):
        state = states[i]
        waits = False
        if state == 0:
            if level[i] < limit[i]:
                for port in range(2):
                    word = front[children[i, port]]
                    held[i, port] = word
                    popped[children[i, port]] = word != NONE
        elif state in (first_write, second_write):
            port = 0 if state == first_write else 1
            if held[i, port] != NONE:
                if level[i] < depth[i]:
                    pushed[i] = held[i, port]
                    held[i, port] = NONE
                else:
                    waits = True
        if not waits:
            states[i] = state + 1 if state + 1 < cycles else 0


@njit(cache=True, nogil=True)
def _step_round_robin(net: TreeState) -> None:
    children, tokens = net.children, net.state
    level, depth, pushed = net.fifos.level, net.fifos.depth, net.fifos.pushed
    front, popped = net.fifos.front, net.fifos.popped
    fan_in = children.shape[1]
    for i in range(len(tokens)):
        if level[i] == depth[i]:
            continue
        port = tokens[i]
        for _ in range(fan_in):
            child = children[i, port]
            port = port + 1 if port + 1 < fan_in else 0
            if front[child] != NONE:
                pushed[i] = front[child]
                popped[child] = 1
                tokens[i] = port
                break


@njit(cache=True, nogil=True)
def adaptive_step(net: AdaptiveState, offered: Ints, ready: bool, taken: Ints) -> int:
    """One cycle of an adaptive network; see `tree_step`."""
    word = _step_bufferless_tree(net, ready)
    _step_ring(net, offered, taken)
    clock_fifos(net.fifos)
    return word


@njit(cache=True, nogil=True)
def _step_bufferless_tree(net: AdaptiveState, ready: bool) -> int:
    """From the root on: what a merger takes from its child makes room there within the same cycle."""
    result, held, turn, children = net.result, net.held, net.turn, net.children
    front, popped = net.fifos.front, net.fifos.popped
    mergers = len(turn)
    for k in range(len(front)):
        result[mergers + k] = front[k]
    word: int = result[0]  # the root's; of one FIFO alone, its own
    if ready:
        result[0] = NONE
    for i in range(mergers):
        first, second = held[i, 0], held[i, 1]
        if result[i] == NONE and (first != NONE or second != NONE):
            port = 1 if second != NONE and (turn[i] or first == NONE) else 0
            result[i] = second if port else first
            held[i, port] = NONE
            turn[i] = 1 - port
        for port in range(2):
            child = children[i, port]
            if held[i, port] == NONE:
                held[i, port] = result[child]
                result[child] = NONE
    for k in range(len(front)):
        popped[k] = front[k] != result[mergers + k]
    return word


@njit(cache=True, nogil=True)
def _step_ring(net: AdaptiveState, offered: Ints, taken: Ints) -> None:
    level, limit, depth, pushed = net.fifos.level, net.fifos.limit, net.fifos.depth, net.fifos.pushed
    north, eastward, westward = net.north, net.east, net.west
    eastward_hops, westward_hops = net.east_hops, net.west_hops
    n = len(north)
    now = net.phase[0]
    then = 1 - now
    net.phase[0] = then
    for k in range(n):
        before, after = k - 1 if k else n - 1, k + 1 if k + 1 < n else 0
        from_east, from_west = westward[now, after], eastward[now, before]
        new = offered[k]
        being_written = north[k]
        pushed[k] = being_written
        taken[k] = 0
        north[k] = NONE
        eastward[then, k] = NONE
        westward[then, k] = NONE
        if from_east == NONE and from_west == NONE and new == NONE:
            continue
        own, east, west = level[k], level[after], level[before]
        no_room = own + (being_written != NONE) >= depth[k]
        if no_room and from_east != NONE and from_west != NONE:
            new = NONE
        taken[k] = new != NONE
        if no_room or (net.north_last_when_almost_full and own >= limit[k]):
            own += 1 << 30

        east_hops, west_hops = westward_hops[now, after], eastward_hops[now, before]
        if from_east == NONE:
            first, first_hops, second, second_hops, third = from_west, west_hops, new, 0, NONE
            if from_west == NONE:
                first, first_hops, second = new, 0, NONE
        elif from_west == NONE:
            first, first_hops, second, second_hops, third = from_east, east_hops, new, 0, NONE
        elif east_hops > west_hops or (net.east_older and east_hops == west_hops):
            first, first_hops, second, second_hops, third = from_east, east_hops, from_west, west_hops, new
        else:
            first, first_hops, second, second_hops, third = from_west, west_hops, from_east, east_hops, new

        east_before_north = east < own or (east == own and not net.north_before_east)
        west_before_north = west < own or (west == own and not net.north_before_west)
        west_before_east = west < east or (west == east and not net.east_before_west)
        north_rank = int(east_before_north) + int(west_before_north)
        east_rank = int(not east_before_north) + int(west_before_east)
        west_rank = 3 - north_rank - east_rank

        north[k] = first if north_rank == 0 else second if north_rank == 1 else third
        eastward[then, k] = first if east_rank == 0 else second if east_rank == 1 else third
        hops = first_hops if east_rank == 0 else second_hops if east_rank == 1 else 0
        eastward_hops[then, k] = min(hops + 1, net.most_hops)
        westward[then, k] = first if west_rank == 0 else second if west_rank == 1 else third
        hops = first_hops if west_rank == 0 else second_hops if west_rank == 1 else 0
        westward_hops[then, k] = min(hops + 1, net.most_hops)
