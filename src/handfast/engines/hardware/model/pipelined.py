"""The pipelined network in the fast model: a cycle visits the mergers whose register is free and can be filled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handfast.engines.hardware.model.bits import Ints, empty_sets, first_from, kernel, lowest, put_in
from handfast.engines.hardware.model.fifos import NONE, Fifos, clock_fifo, empty_fifos, pop, push
from handfast.engines.hardware.model.links import parents_and_ports, tree_children
from handfast.engines.hardware.pipelined import PASSING


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


def empty_stages(n: int, *, fan_in: int, depth: int, margin: int) -> tuple[Stages, Fifos]:
    """A pipelined network with so many inputs, without a word."""
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
    return stages, empty_fifos([depth] * n, margin, PASSING)


@kernel
def offer_to_stages(now: int, core: int, word: int, stages: Stages, fifos: Fifos) -> bool:
    """Offer a match to the FIFO of a core before the mergers read, and say whether it is taken."""
    if fifos.level[core] == fifos.depth[core]:
        return False
    push(fifos, core, word)
    if fifos.level[core] == 0:  # it can be read at once
        fifos.front[core] = word
        _can_read(now, len(stages.word) + core, stages)
    return True


@kernel
def _can_read(phase: int, child: int, stages: Stages) -> None:
    """Let the merger above a merger or FIFO know that there is a word, in this phase."""
    above = stages.parent[child]
    if above >= 0:
        stages.ports[above] |= np.int64(1) << stages.port[child]
        put_in(stages.active, phase, above)


@kernel
def run_stages(now: int, stages: Stages, fifos: Fifos) -> int:
    """A cycle of the mergers, from the root on, and the word that leaves it.

    What a merger takes from its child makes room there within the same cycle.
    """
    registers, ports, token, active = stages.word, stages.ports, stages.token, stages.active
    mergers = len(registers)
    if mergers == 0:
        return pop(fifos, 0) if fifos.front[0] != NONE else NONE
    word: int = registers[0]
    if word != NONE:
        registers[0] = NONE
        put_in(active, now, 0)
    for w in range(active.shape[1]):
        while active[now, w]:
            i = w * 64 + lowest(active[now, w])
            active[now, w] &= active[now, w] - 1
            if registers[i] != NONE or ports[i] == 0:
                continue
            place = first_from(ports[i], token[i])
            token[i] = place + 1 if place + 1 < stages.fan_in else 0
            ports[i] &= ~(np.int64(1) << place)
            child = stages.children[i, place]
            if child < mergers:
                registers[i] = registers[child]
                registers[child] = NONE
                put_in(active, now, child)
            else:
                registers[i] = pop(fifos, child - mergers)
            _can_read(1 - now, i, stages)
    return word


@kernel
def clock_stages(then: int, stages: Stages, fifos: Fifos) -> None:
    """End the cycle: FIFOs take and give, and mergers learn what they can read."""
    touched = fifos.touched
    for w in range(len(touched)):
        word = touched[w]
        touched[w] = 0
        while word:
            i = w * 64 + lowest(word)
            word &= word - 1
            if fifos.level[i] == 0 and fifos.popped[i]:  # the word has passed without being stored
                fifos.popped[i] = 0
                fifos.pushed[i] = fifos.front[i] = NONE
                continue
            clock_fifo(fifos, i)
            if fifos.front[i] != NONE:
                _can_read(then, len(stages.word) + i, stages)
