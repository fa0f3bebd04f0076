"""The tree of mergers in the fast model: a cycle visits the mergers that read or write in it, and no others.

A merger goes by the number of its FIFO. The FIFOs behind the cores come first, then those of the mergers from the root
on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import (
    Ints,
    empty_set,
    empty_sets,
    first_from,
    kernel,
    lowest,
    put,
    put_in,
    remove,
    remove_from,
    set_of,
)
from handfast.engines.hardware.model.fifos import NONE, Fifos, clock_fifo, empty_fifos, pop, push
from handfast.engines.hardware.model.links import parents_and_ports, tree_children
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.tree import level_sizes


class Tree(NamedTuple):
    """Mergers between FIFOs."""

    root: int  # the FIFO that the output channel reads
    children: Ints  # by FIFO and port: the FIFO that its merger reads; the number behind the last FIFO: none
    parent: Ints  # by FIFO: that of the merger that reads it, -1 for the root
    port: Ints  # by FIFO: the port of that merger
    ports: Ints  # by FIFO: a bit for each port of its merger that has a word to read
    fed: Ints  # set: those with a word at any port
    closed: Ints  # set: those that read no word, for their FIFOs are too full
    bar: Ints  # by FIFO: the level from which on it is closed
    token: Ints  # by FIFO: of a round-robin merger the port that goes first
    held: Ints  # by port and FIFO: words read and not yet written
    holding: Ints  # by port, sets: those that hold a word
    groups: Ints  # by number, sets: mergers that are in the same state; in cycle t group g is in state (t + g) % cycles
    phase: Ints  # one number: the state of group 0
    free_at: Ints  # one number: the cycle in which the output channel takes the next word
    round_robin: bool
    fan_in: int
    cycles: int
    first_write: int
    second_write: int
    cycles_per_result: int


def empty_tree(shape: CircuitShape) -> tuple[Tree, Fifos]:
    """The tree of a circuit and all FIFOs of it, without a word."""
    n, fan_in = shape.inputs, shape.fan_in
    levels = level_sizes(n, fan_in)
    buffer = shape.network_buffer
    depths = [buffer] * len(levels) if isinstance(buffer, int) else list(buffer)
    of_mergers = [depths[level] for level, size in enumerate(levels) for _ in range(size)]
    fifos = empty_fifos([shape.core_buffer] * n + of_mergers, shape.margin, shape.latency)
    size = len(fifos.depth)
    round_robin = shape.merger == "round_robin"
    children = _children(n, fan_in)
    parent, port = parents_and_ports(children, size)
    groups = empty_sets(shape.cycles, size)
    groups[0] = set_of(range(n, size), size)
    tree = Tree(
        root=n if levels else 0,
        children=children,
        parent=parent,
        port=port,
        ports=np.zeros(size, np.int64),
        fed=empty_set(size),
        closed=empty_set(size),
        bar=fifos.depth if round_robin else fifos.limit,
        token=np.zeros(size, np.int64),
        held=np.full((2, size), NONE, np.int64),
        holding=empty_sets(2, size),
        groups=groups,
        phase=np.zeros(1, np.int64),
        free_at=np.zeros(1, np.int64),
        round_robin=round_robin,
        fan_in=fan_in,
        cycles=shape.cycles,
        first_write=shape.writes[0],
        second_write=shape.writes[1],
        cycles_per_result=shape.cycles_per_result,
    )
    return tree, fifos


def _children(n: int, fan_in: int) -> Ints:
    """By FIFO and port the FIFO that its merger reads; those behind the cores have no merger, and read nothing."""
    by_merger = tree_children(n, fan_in)
    mergers = len(by_merger)
    size = mergers + n
    children = np.full((size, fan_in), size, np.int64)
    children[n:] = np.where(by_merger < mergers, n + by_merger, by_merger - mergers)
    children[n:][by_merger == size] = size
    return children


@kernel
def read_output(cycle: int, tree: Tree, fifos: Fifos) -> int:
    """The word that leaves the circuit in this cycle."""
    if fifos.front[tree.root] == NONE or cycle < tree.free_at[0]:
        return NONE
    tree.free_at[0] = cycle + tree.cycles_per_result
    return pop(fifos, tree.root)


@kernel
def run_states(tree: Tree, fifos: Fifos) -> None:
    """A cycle of the thesis' mergers: a group reads, and two groups write."""
    groups, fed, holding, cycles = tree.groups, tree.fed, tree.holding, tree.cycles
    now = tree.phase[0]
    tree.phase[0] = now + 1 if now + 1 < cycles else 0
    reading = cycles - now if now else 0
    for w in range(len(fed)):
        word = groups[reading, w] & fed[w] & ~tree.closed[w]
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            for port in range(2):
                child = tree.children[i, port]
                if fifos.front[child] != NONE:
                    tree.held[port, i] = pop(fifos, child)
                    put_in(holding, port, i)
    for port in range(2):
        group = (tree.second_write if port else tree.first_write) - now
        if group < 0:
            group += cycles
        for w in range(len(fed)):
            word = groups[group, w] & holding[port, w]
            while word:
                i = w * 64 + lowest(word)
                word &= word - 1
                if fifos.level[i] < fifos.depth[i]:
                    push(fifos, i, tree.held[port, i])
                    remove_from(holding, port, i)
                else:  # it waits: in the next cycle the group behind its own is in this state
                    remove_from(groups, group, i)
                    put_in(groups, group - 1 if group else cycles - 1, i)


@kernel
def run_arbiters(tree: Tree, fifos: Fifos) -> None:
    """A cycle of the round-robin mergers: each lets one word in."""
    ports, token = tree.ports, tree.token
    for w in range(len(tree.fed)):
        word = tree.fed[w] & ~tree.closed[w]
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            port = first_from(ports[i], token[i])
            token[i] = port + 1 if port + 1 < tree.fan_in else 0
            push(fifos, i, pop(fifos, tree.children[i, port]))


@kernel
def clock_tree(tree: Tree, fifos: Fifos) -> None:
    """End the cycle: FIFOs take and give, and mergers learn what they can read."""
    touched, ports = fifos.touched, tree.ports
    for w in range(len(touched)):
        word = touched[w]
        touched[w] = 0
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            clock_fifo(fifos, i)
            if fifos.level[i] >= tree.bar[i]:
                put(tree.closed, i)
            else:
                remove(tree.closed, i)
            above = tree.parent[i]
            if above >= 0:
                if fifos.front[i] != NONE:
                    ports[above] |= np.int64(1) << tree.port[i]
                    put(tree.fed, above)
                else:
                    ports[above] &= ~(np.int64(1) << tree.port[i])
                    if ports[above] == 0:
                        remove(tree.fed, above)
