"""Join cores before a merging network, cycle by cycle: when a result leaves its core, and when it leaves the network.

Each step brings a tuple of both streams, as in the thesis' evaluation. The states of the cores are those of `JoinCore`.
What a core compares in a step is a matter of the step's number alone, so cores may also be let run ahead of each other,
which no circuit here does: to see what that would gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit

from handfast.engines.hardware.steps import flush_steps
from handfast.engines.hardware.workload import StreamPair
from tests.engines.hardware.plain_network import NONE, FifoStates, Ints, clock_fifos, fifo_states

SEGMENT = 8  # tuples of each stream in a core [OGE §4.5]
MARGIN = 3

Waits = Literal["all", "own", "neighbours"]
"""Who waits for whom. "all": all cores stand still while a FIFO is almost full, as `Suspend` has it. "own": each core
that cannot give a result stands still, and a step begins when all have finished the one before, as `Handshake` has it.
"neighbours": likewise, but a core begins a step as soon as its two neighbours have shifted in the one before, which is
the earliest that there is something to begin with."""


@dataclass(frozen=True)
class Run:
    """What a run gave.

    Attributes:
        results: How many there were.
        cycles: Until all steps were done and all results out.
        last: The cycle after the last result.
        latencies: Of each result, the cycles from leaving its core to leaving the network.
        suspended: Cycles in which all cores had to stand still.
    """

    results: int
    cycles: int
    last: int
    latencies: Ints
    suspended: int


def run(
    step: Any,
    net: Any,
    pair: StreamPair,
    *,
    cores: int,
    core_buffer: int = 0,
    waits: Waits = "all",
    size: int = SEGMENT,
) -> Run:
    """Let cores join a pair of streams.

    Args:
        step, net: The model of a network, and its state.
        pair: The streams.
        cores: How many there are.
        core_buffer: Slots of a FIFO between each core and the network; 0 for none.
        waits: Who waits for whom.
        size: Slots of each segment.
    """
    of_r, of_s = pair.keys()
    steps = pair.tuples + flush_steps(cores, (size, size))
    buffers = fifo_states([core_buffer or 1] * cores, MARGIN if core_buffer else 0, 2)
    most = 2 * size * steps
    left = np.zeros(cores * most, np.int64)
    latencies = np.zeros(pair.results, np.int64)
    counts = np.zeros(4, np.int64)
    _run(step, net, buffers, core_buffer > 0, waits, of_r, of_s, size, steps, left, latencies, counts)
    results, cycles, last, suspended = map(int, counts)
    assert results == pair.results, f"{pair.results} results are right, and {results} came out"
    return Run(results, cycles, last, latencies, suspended)


@njit
def _run(
    step: Any,
    net: Any,
    buffers: FifoStates,
    buffered: bool,
    waits: str,
    r: Ints,
    s: Ints,
    size: int,
    steps: int,
    left: Ints,
    latencies: Ints,
    counts: Ints,
) -> None:
    n = len(buffers.level)
    most = len(left) // n
    state, at, waiting = np.ones(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    now = np.full(n, -1, np.int64)  # the step that each core works on, or has finished
    begins, sent = np.zeros(n, np.int64), np.zeros(n, np.int64)
    offered, found = np.full(n, NONE, np.int64), np.zeros(n, np.int64)
    taken, entry = np.zeros(n, np.int64), np.zeros(n, np.int64)
    fifos = net.fifos
    suspend = False
    cycle = out = last = suspended = under_way = 0
    while True:
        ready = finished = True
        for k in range(n):
            ready &= state[k] == 1
            finished &= state[k] == 1 and now[k] + 1 == steps
        if finished and under_way == 0:
            break
        # What the cores offer.
        almost_full = False
        for k in range(n):
            begins[k] = state[k] == 1 and now[k] + 1 < steps
            if waits == "neighbours":
                for other in (k - 1, k + 1):
                    if 0 <= other < n:
                        begins[k] &= now[other] > now[k] or (now[other] == now[k] and (state[other] in (1, 7)))
            else:
                begins[k] &= ready and not suspend
            offered[k] = NONE
            found[k] = 0
            if state[k] == 5 or state[k] == 7:
                one, other = now[k] - k * size, now[k] - (n - 1 - k) * size
                if state[k] == 5:
                    other -= 1 + at[k]
                else:
                    one -= at[k]
                found[k] = 0 <= one < len(r) and 0 <= other < len(s) and r[one] == s[other]
                if found[k] and (not suspend or waiting[k]):
                    offered[k] = k * most + sent[k]
        # What the network does.
        for k in range(len(fifos.level)):
            almost_full |= fifos.level[k] >= fifos.limit[k]
        if buffered:
            for k in range(n):
                almost_full |= buffers.level[k] >= buffers.limit[k]
                taken[k] = offered[k] != NONE and buffers.level[k] < buffers.depth[k]
                buffers.pushed[k] = offered[k] if taken[k] else NONE
            word = step(net, buffers.front, True, entry)
            for k in range(n):
                buffers.popped[k] = entry[k]
            clock_fifos(buffers)
        else:
            word = step(net, offered, True, taken)
        # What the cores do.
        for k in range(n):
            if taken[k]:
                left[offered[k]] = cycle
                sent[k] += 1
                under_way += 1
            waiting[k] = offered[k] != NONE and not taken[k]
            if begins[k]:
                now[k] += 1
                state[k] = 2
            elif state[k] == 5 or state[k] == 7:
                if taken[k] if found[k] else not suspend:
                    at[k] += 1
                    if at[k] == size:
                        at[k] = 0
                        state[k] = 6 if state[k] == 5 else 1
            elif state[k] != 1 and not suspend:
                state[k] += 1
        if word != NONE:
            last = cycle + 1
            latencies[out] = cycle - left[word]
            out += 1
            under_way -= 1
        suspended += suspend
        suspend = waits == "all" and almost_full
        cycle += 1
    counts[:] = (out, cycle, last, suspended)
