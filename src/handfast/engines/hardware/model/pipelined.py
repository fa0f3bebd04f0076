"""The pipelined network in the fast model: a cycle visits the mergers whose register is free and can be filled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints, empty_sets, kernel, lowest, put, put_in
from handfast.engines.hardware.model.fifos import NONE, Fifos, clock_fifo, empty_fifos
from handfast.engines.hardware.model.links import parents_and_ports, tree_children
from handfast.engines.hardware.pipelined import PASSING
from handfast.engines.hardware.shape import CircuitShape


class Stages(NamedTuple):
    """Mergers of one register, from the root on; behind them the FIFOs go by number."""

    children: Ints  # by merger and port: the merger or FIFO that it reads
    parent: Ints  # by merger, and behind them by FIFO: the merger that reads it, -1 for the root
    port: Ints  # likewise: the port of that merger
    word: Ints  # by merger: the register
    ports: Ints  # by merger: a bit for each port that has a word to read
    token: Ints  # by merger: the port that goes first
    active: Ints  # by phase, sets: the mergers that may have something to move
    phase: Ints  # one number
    fan_in: int


def empty_stages(shape: CircuitShape) -> tuple[Stages, Fifos]:
    """The pipelined network of a circuit, without a word."""
    n, fan_in = shape.inputs, shape.stage_fan_in
    assert isinstance(shape.network_buffer, int)
    children = tree_children(n, fan_in)
    parent, port = parents_and_ports(children, len(children) + n)
    mergers = len(children)
    stages = Stages(
        children=children,
        parent=parent,
        port=port,
        word=np.full(mergers, NONE, np.int64),
        ports=np.zeros(mergers, np.int64),
        token=np.zeros(mergers, np.int64),
        active=empty_sets(2, mergers),
        phase=np.zeros(1, np.int64),
        fan_in=fan_in,
    )
    return stages, empty_fifos([shape.network_buffer] * n, shape.margin, PASSING)


@kernel
def offer_to_stages(
    now: int,
    core: int,
    word: int,
    parent: Ints,
    port: Ints,
    ports: Ints,
    active: Ints,
    mergers: int,
    depth: Ints,
    level: Ints,
    front: Ints,
    pushed: Ints,
    touched: Ints,
) -> bool:
    """Offer a match to the FIFO of a core before the mergers read, and say whether it is taken."""
    if level[core] == depth[core]:
        return False
    pushed[core] = word
    put(touched, core)
    if level[core] == 0:  # it can be read at once
        front[core] = word
        if mergers:
            above = parent[mergers + core]
            ports[above] |= np.int64(1) << port[mergers + core]
            put_in(active, now, above)
    return True


@kernel
def run_stages(
    now: int,
    children: Ints,
    parent: Ints,
    port: Ints,
    registers: Ints,
    ports: Ints,
    token: Ints,
    active: Ints,
    fan_in: int,
    front: Ints,
    popped: Ints,
    touched: Ints,
) -> int:
    """A cycle of the mergers, from the root on, and the word that leaves it.

    What a merger takes from its child makes room there within the same cycle.
    """
    mergers = len(registers)
    if mergers == 0:
        word: int = front[0]
        if word != NONE:
            popped[0] = 1
            put(touched, 0)
        return word
    word = registers[0]
    if word != NONE:
        registers[0] = NONE
        put_in(active, now, 0)
    for w in range(active.shape[1]):
        while active[now, w]:
            i = w * 64 + lowest(active[now, w])
            active[now, w] &= active[now, w] - 1
            if registers[i] != NONE or ports[i] == 0:
                continue
            ahead = ports[i] >> token[i]
            place = token[i] + lowest(ahead) if ahead else lowest(ports[i])
            token[i] = place + 1 if place + 1 < fan_in else 0
            ports[i] &= ~(np.int64(1) << place)
            child = children[i, place]
            if child < mergers:
                registers[i] = registers[child]
                registers[child] = NONE
                put_in(active, now, child)
            else:
                registers[i] = front[child - mergers]
                popped[child - mergers] = 1
                put(touched, child - mergers)
            if i:  # it can be read in the next cycle
                ports[parent[i]] |= np.int64(1) << port[i]
                put_in(active, 1 - now, parent[i])
    return word


@kernel
def clock_stages(
    then: int,
    parent: Ints,
    port: Ints,
    ports: Ints,
    active: Ints,
    mergers: int,
    depth: Ints,
    limit: Ints,
    level: Ints,
    highest: Ints,
    oldest: Ints,
    words: Ints,
    front: Ints,
    popped: Ints,
    pushed: Ints,
    touched: Ints,
    full: Ints,
    latency: int,
) -> None:
    """End the cycle: FIFOs take and give, and mergers learn what they can read."""
    for w in range(len(touched)):
        word = touched[w]
        touched[w] = 0
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            if level[i] == 0 and popped[i]:  # the word has passed without being stored
                popped[i] = 0
                pushed[i] = front[i] = NONE
                continue
            clock_fifo(i, depth, limit, level, highest, oldest, words, front, popped, pushed, touched, full, latency)
            if front[i] != NONE and mergers:
                above = parent[mergers + i]
                ports[above] |= np.int64(1) << port[mergers + i]
                put_in(active, then, above)
