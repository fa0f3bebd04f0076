"""The FIFO against a plain queue, and its margin against writers that cannot wait."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.fifo import Fifo
from handfast.errors import SpecError
from tests.engines.hardware.traffic import Trace, Traffic, differences, simulate, traffic


def plain(depth: int, latency: int, work: Traffic) -> Trace:
    """A queue of words with the cycle from which each can be read."""
    cycles = len(work.ready)
    trace = Trace(np.full(cycles, -1), np.zeros((cycles, 1), np.int64), np.zeros((cycles, 1), np.int64))
    queue: deque[tuple[int, int]] = deque()
    waiting = sent = 0
    for cycle in range(cycles):
        waiting += int(work.arrivals[cycle, 0])
        trace.levels[cycle] = len(queue)
        room = len(queue) < depth
        entering = [(sent, cycle + latency)] if waiting and room else []
        if latency == 0:
            queue.extend(entering)
        if queue and queue[0][1] <= cycle:
            trace.output[cycle] = queue[0][0]
            if work.ready[cycle]:
                queue.popleft()
        if latency > 0:
            queue.extend(entering)
        trace.taken[cycle] = len(entering)
        waiting -= len(entering)
        sent += len(entering)
    return trace


def check_against_plain(make: Any, depth: int, latency: int) -> None:
    for seed, (pattern, sink) in enumerate([("at once", "always"), ("random", "random"), ("bursts", "stalls")]):
        work = traffic(pattern, sink, n=1, words=60, cycles=140, drain=40, seed=seed)
        fifo = make(width=8, depth=depth, margin=0, latency=latency)
        found = simulate(fifo, work, sources=[fifo.write], sink=fifo.read, fifos=[fifo])
        assert not differences(plain(depth, latency, work), found)


@pytest.mark.parametrize("latency", [0, 1, 2])
@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_every_cycle_of_a_fifo_is_that_of_a_plain_queue(depth: int, latency: int) -> None:
    check_against_plain(Fifo, depth, latency)


def overflows(make: Any, *, depth: int, margin: int, late: int, seed: int) -> int:
    """How many words find no room where a writer stops `late` cycles after the flag, and then waits until it falls."""
    fifo = make(width=8, depth=depth, margin=margin)
    rng = np.random.default_rng(seed)
    lost = 0

    async def bench(ctx: Any) -> None:
        nonlocal lost
        flags = [0] * late
        for _ in range(150):
            flags.append(ctx.get(fifo.almost_full))
            ctx.set(fifo.write.valid, not flags[-1 - late])
            ctx.set(fifo.read.ready, int(rng.random() < 0.4))
            lost += ctx.get(fifo.write.valid) and not ctx.get(fifo.write.ready)
            await ctx.tick()

    simulator = Simulator(fifo)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return lost


def check_margin_is_room(make: Any) -> None:
    for seed, (depth, margin) in enumerate([(2, 1), (4, 1), (4, 3), (8, 3)]):
        assert 0 == overflows(make, depth=depth, margin=margin, late=margin, seed=seed)


def test_writers_that_stop_within_the_margin_always_find_room() -> None:
    check_margin_is_room(Fifo)


def test_a_writer_that_stops_one_cycle_later_than_the_margin_finds_no_room() -> None:
    assert overflows(Fifo, depth=4, margin=1, late=2, seed=0) > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"depth": 0}, "depth of a FIFO must be at least 1"),
        ({"depth": 4, "margin": 4}, "from 0 to 3, not 4"),
        ({"depth": 4, "margin": -1}, "from 0 to 3, not -1"),
        ({"depth": 4, "latency": 3}, "0, 1 or 2 cycles, not 3"),
    ],
)
def test_a_fifo_that_cannot_be_built_is_refused(wrong: dict[str, int], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Fifo(width=8, **wrong)
