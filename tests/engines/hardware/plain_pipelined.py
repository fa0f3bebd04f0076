"""Plain model of the pipelined merging network, as in `plain_network`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from handfast.engines.hardware.fifo import MARGIN
from handfast.engines.hardware.pipelined import PASSING, STAGE_FAN_IN
from tests.engines.hardware.plain_network import NONE, FifoStates, Ints, clock_fifos, fifo_states, tree_children


class PipelinedState(NamedTuple):
    """FIFO layer and tree of registers."""

    fifos: FifoStates
    children: Ints  # by merger and port: which word it reads
    words: Ints  # by merger: its register; behind the mergers what each FIFO offers, and one without a word
    token: Ints  # by merger: the input that goes first


def pipelined_state(
    *, n: int, depth: int, margin: int = MARGIN, latency: int = PASSING, fan_in: int = STAGE_FAN_IN
) -> PipelinedState:
    """An empty pipelined network with the parameters of `PipelinedNetwork`."""
    children = tree_children(n, fan_in)
    return PipelinedState(
        fifos=fifo_states([depth] * n, margin, latency),
        children=children,
        words=np.full(len(children) + n + 1, NONE, np.int64),
        token=np.zeros(len(children), np.int64),
    )


@njit(cache=True, nogil=True)
def pipelined_step(net: PipelinedState, offered: Ints, ready: bool, taken: Ints) -> int:
    """One cycle of a pipelined network; see `tree_step`."""
    level, depth, front = net.fifos.level, net.fifos.depth, net.fifos.front
    popped, pushed = net.fifos.popped, net.fifos.pushed
    words, children, token = net.words, net.children, net.token
    passing = net.fifos.latency == 0
    mergers, fan_in = children.shape
    for k in range(len(offered)):
        new = offered[k] if level[k] < depth[k] else NONE
        taken[k] = new != NONE
        pushed[k] = new
        words[mergers + k] = new if passing and level[k] == 0 else front[k]
    word: int = words[0]  # the root's; of one FIFO alone, its own
    if ready:
        words[0] = NONE
    # From the root on: what a merger takes from its child makes room there within the same cycle.
    for i in range(mergers):
        if words[i] != NONE:
            continue
        port = token[i]
        for _ in range(fan_in):
            child = children[i, port]
            port = port + 1 if port + 1 < fan_in else 0
            if words[child] != NONE:
                words[i] = words[child]
                words[child] = NONE
                token[i] = port
                break
    for k in range(len(offered)):
        left = words[mergers + k] == NONE
        if passing and level[k] == 0:
            if left:
                pushed[k] = NONE
        else:
            popped[k] = front[k] != NONE and left
    clock_fifos(net.fifos)
    return word
