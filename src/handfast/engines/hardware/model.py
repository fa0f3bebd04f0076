"""Fast models of the merging networks, equal to the circuits cycle by cycle: arrays and compiled loops.

A word is a number from 0 on, and -1 stands for no word. A state is made once and changed in place by the steps; each
step is one clock cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
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
LEFT_OUT = 1 << 40  # the child of a merger's port that nothing is connected to


class FifoStates(NamedTuple):
    """A row of FIFOs."""

    depth: Ints  # slots
    limit: Ints  # almost full from this level on
    level: Ints  # words stored
    readable: Ints  # 1: the oldest word can be read
    oldest: Ints  # its slot
    words: Ints  # by FIFO and slot
    popped: Ints  # 1: read in this cycle
    pushed: Ints  # the word that is written in this cycle
    latency: int


class TreeState(NamedTuple):
    """A tree of mergers, from the root on; merger i has FIFO i."""

    fifos: FifoStates
    children: Ints  # by merger and port: the merger that it reads, or ~k for input k, or LEFT_OUT
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
    children: Ints  # by merger and port: the merger that it reads, or ~k for FIFO k, or LEFT_OUT
    held: Ints  # by merger and port: the input registers
    result: Ints  # by merger: the output register
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
    children = _children(n, fan_in)
    return TreeState(
        fifos=_fifo_states([depths[level] for level, size in enumerate(levels) for _ in range(size)], margin, latency),
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
    children = _children(n, 2)
    return AdaptiveState(
        fifos=_fifo_states([depth] * n, margin, latency),
        north=np.full(n, NONE, np.int64),
        east=np.full((2, n), NONE, np.int64),
        west=np.full((2, n), NONE, np.int64),
        east_hops=np.zeros((2, n), np.int64),
        west_hops=np.zeros((2, n), np.int64),
        phase=np.zeros(1, np.int64),
        children=children,
        held=np.full((len(children), 2), NONE, np.int64),
        result=np.full(len(children), NONE, np.int64),
        turn=np.zeros(len(children), np.int64),
        most_hops=(1 << hop_bits) - 1,
        north_before_east=port_ties.index("N") < port_ties.index("E"),
        north_before_west=port_ties.index("N") < port_ties.index("W"),
        east_before_west=port_ties.index("E") < port_ties.index("W"),
        east_older=rank_ties == "E",
        north_last_when_almost_full=north_last == "almost_full",
    )


def _fifo_states(depths: list[int], margin: int, latency: int) -> FifoStates:
    depth = np.array(depths, np.int64)
    size = len(depths)
    return FifoStates(
        depth=depth,
        limit=depth - margin,
        level=np.zeros(size, np.int64),
        readable=np.zeros(size, np.int64),
        oldest=np.zeros(size, np.int64),
        words=np.full((size, max(depths, default=1)), NONE, np.int64),
        popped=np.zeros(size, np.int64),
        pushed=np.full(size, NONE, np.int64),
        latency=latency,
    )


def _children(n: int, fan_in: int) -> Ints:
    """What every port of every merger reads, as `connect_levels` connects them."""
    sizes = level_sizes(n, fan_in)
    children = np.full((sum(sizes), fan_in), LEFT_OUT, np.int64)
    start = 0
    for level, size in enumerate(sizes):
        below = sizes[level + 1] if level + 1 < len(sizes) else n
        for child in range(below):
            leaf = level + 1 == len(sizes)
            children[start + child // fan_in, child % fan_in] = ~child if leaf else start + size + child
        start += size
    return children


@njit(cache=True, nogil=True)
def _oldest_word(fifos: FifoStates, i: int) -> int:
    """What a FIFO offers to its reader."""
    return fifos.words[i, fifos.oldest[i]] if fifos.readable[i] else NONE


@njit(cache=True, nogil=True)
def _clock_fifos(fifos: FifoStates) -> None:
    """End the cycle of every FIFO: what was popped leaves, what was pushed is stored."""
    level, popped, pushed = fifos.level, fifos.popped, fifos.pushed
    for i in range(len(level)):
        pop, word = popped[i], pushed[i]
        before = level[i]
        if pop:
            fifos.oldest[i] = fifos.oldest[i] + 1 if fifos.oldest[i] + 1 < fifos.depth[i] else 0
            popped[i] = 0
        if word != NONE:
            slot = fifos.oldest[i] + before - pop
            fifos.words[i, slot if slot < fifos.depth[i] else slot - fifos.depth[i]] = word
            pushed[i] = NONE
        level[i] = before - pop + (word != NONE)
        fifos.readable[i] = (level[i] if fifos.latency == 1 else before - pop) > 0


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
    fifos = net.fifos
    for k in range(len(offered)):
        taken[k] = 0
    word: int = NONE
    if net.countdown[0] > 0:
        net.countdown[0] -= 1
    else:
        word = _oldest_word(fifos, 0) if len(net.state) else offered[0]
        if word != NONE and ready:
            net.countdown[0] = net.cycles_per_result - 1
            if len(net.state):
                fifos.popped[0] = 1
            else:
                taken[0] = 1
    if net.round_robin:
        _step_round_robin(net, offered, taken)
    else:
        _step_states(net, offered, taken)
    _clock_fifos(fifos)
    return word


@njit(cache=True, nogil=True)
def _take_child(net: TreeState, offered: Ints, taken: Ints, child: int) -> int:
    """The word at a merger's port, taken from where it is."""
    if child == LEFT_OUT:
        return NONE
    if child < 0:
        word: int = offered[~child]
        taken[~child] = word != NONE
    else:
        word = _oldest_word(net.fifos, child)
        net.fifos.popped[child] = word != NONE
    return word


@njit(cache=True, nogil=True)
def _step_states(net: TreeState, offered: Ints, taken: Ints) -> None:
    fifos = net.fifos
    for i in range(len(net.state)):
        state = net.state[i]
        waits = False
        if state == 0:
            if fifos.level[i] < fifos.limit[i]:
                for port in range(2):
                    net.held[i, port] = _take_child(net, offered, taken, net.children[i, port])
        elif state == net.first_write or state == net.second_write:
            port = 0 if state == net.first_write else 1
            if net.held[i, port] != NONE:
                if fifos.level[i] < fifos.depth[i]:
                    fifos.pushed[i] = net.held[i, port]
                    net.held[i, port] = NONE
                else:
                    waits = True
        if not waits:
            net.state[i] = state + 1 if state + 1 < net.cycles else 0


@njit(cache=True, nogil=True)
def _step_round_robin(net: TreeState, offered: Ints, taken: Ints) -> None:
    fifos = net.fifos
    fan_in = net.children.shape[1]
    for i in range(len(net.state)):
        if fifos.level[i] == fifos.depth[i]:
            continue
        for step in range(fan_in):
            port = (net.state[i] + step) % fan_in
            word = _take_child(net, offered, taken, net.children[i, port])
            if word != NONE:
                fifos.pushed[i] = word
                net.state[i] = (port + 1) % fan_in
                break


@njit(cache=True, nogil=True)
def adaptive_step(net: AdaptiveState, offered: Ints, ready: bool, taken: Ints) -> int:
    """One cycle of an adaptive network; see `tree_step`."""
    word = _step_bufferless_tree(net, ready)
    _step_ring(net, offered, taken)
    _clock_fifos(net.fifos)
    return word


@njit(cache=True, nogil=True)
def _step_bufferless_tree(net: AdaptiveState, ready: bool) -> int:
    """From the root on: what a merger takes from its child makes room there within the same cycle."""
    fifos, result, held = net.fifos, net.result, net.held
    if len(result) == 0:
        only = _oldest_word(fifos, 0)
        fifos.popped[0] = ready and only != NONE
        return only
    word: int = result[0]
    if ready:
        result[0] = NONE
    for i in range(len(result)):
        if result[i] == NONE and (held[i, 0] != NONE or held[i, 1] != NONE):
            port = 1 if held[i, 1] != NONE and (net.turn[i] or held[i, 0] == NONE) else 0
            result[i] = held[i, port]
            held[i, port] = NONE
            net.turn[i] = 1 - port
        for port in range(2):
            child = net.children[i, port]
            if held[i, port] == NONE and child != LEFT_OUT:
                if child < 0:
                    held[i, port] = _oldest_word(fifos, ~child)
                    fifos.popped[~child] = held[i, port] != NONE
                else:
                    held[i, port] = result[child]
                    result[child] = NONE
    return word


@njit(cache=True, nogil=True)
def _step_ring(net: AdaptiveState, offered: Ints, taken: Ints) -> None:
    fifos, n = net.fifos, len(net.north)
    now = net.phase[0]
    then = 1 - now
    net.phase[0] = then
    for k in range(n):
        before, after = k - 1 if k else n - 1, k + 1 if k + 1 < n else 0
        from_east, from_west = net.west[now, after], net.east[now, before]
        new = offered[k]
        being_written = net.north[k]
        fifos.pushed[k] = being_written
        taken[k] = 0
        net.north[k] = NONE
        net.east[then, k] = NONE
        net.west[then, k] = NONE
        if from_east == NONE and from_west == NONE and new == NONE:
            continue
        own, east, west = fifos.level[k], fifos.level[after], fifos.level[before]
        no_room = own + (being_written != NONE) >= fifos.depth[k]
        if no_room and from_east != NONE and from_west != NONE:
            new = NONE
        taken[k] = new != NONE
        if no_room or (net.north_last_when_almost_full and own >= fifos.limit[k]):
            own += 1 << 30

        east_hops, west_hops = net.west_hops[now, after], net.east_hops[now, before]
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

        net.north[k] = first if north_rank == 0 else second if north_rank == 1 else third
        net.east[then, k] = first if east_rank == 0 else second if east_rank == 1 else third
        hops = first_hops if east_rank == 0 else second_hops if east_rank == 1 else 0
        net.east_hops[then, k] = min(hops + 1, net.most_hops)
        net.west[then, k] = first if west_rank == 0 else second if west_rank == 1 else third
        hops = first_hops if west_rank == 0 else second_hops if west_rank == 1 else 0
        net.west_hops[then, k] = min(hops + 1, net.most_hops)
