"""Traffic for merging networks: what arrives when, when the output is taken, and what a run is compared by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Cat, ClockDomain, Module
from amaranth.sim import Simulator
from numba import njit

Ints = npt.NDArray[np.int64]

PATTERNS = ("at once", "random", "bursts", "one input")
SINKS = ("always", "random", "stalls")


@dataclass(frozen=True)
class Traffic:
    """By cycle: how many words arrive at each source, and whether the output is taken. A word is (seq · n + input)."""

    arrivals: Ints
    ready: Ints

    @property
    def words(self) -> list[int]:
        """Every word that arrives, sorted."""
        n = self.arrivals.shape[1]
        return sorted(seq * n + k for k, total in enumerate(self.arrivals.sum(axis=0)) for seq in range(total))


@dataclass(frozen=True)
class Trace:
    """What was seen of a network, by cycle."""

    output: Ints  # the word at the output, or -1
    taken: Ints  # by input: whether its word was taken
    levels: Ints  # by FIFO

    def left(self, traffic: Traffic) -> list[int]:
        """The words that left, in their order."""
        return [int(word) for word, ready in zip(self.output, traffic.ready, strict=True) if ready and word >= 0]


def traffic(pattern: str, sink: str, *, n: int, words: int, cycles: int, seed: int, drain: int = 0) -> Traffic:
    """About `words` words in all within `cycles` cycles, and then `drain` cycles in which nothing arrives.

    While it drains, everything at the output is taken at once.
    """
    rng = np.random.default_rng(seed)
    arrivals = np.zeros((cycles + drain, n), np.int64)
    if pattern == "at once":
        arrivals[0] = max(1, words // n)
    elif pattern == "random":
        arrivals[:cycles] = rng.random((cycles, n)) < words / (n * cycles)
    elif pattern == "bursts":
        for _ in range(max(1, words // 6)):
            arrivals[rng.integers(0, max(1, cycles - 6)), rng.integers(0, n)] += 6
    else:
        arrivals[0, rng.integers(0, n)] = words
    ready = np.ones(cycles + drain, np.int64)
    if sink == "random":
        ready[:cycles] = rng.random(cycles) < 0.5
    elif sink == "stalls":
        blocks = np.repeat(rng.random(cycles // 20 + 1) < 0.5, 20)
        ready[:cycles] = blocks[:cycles]
    return Traffic(arrivals, ready)


def simulate(component: Any, traffic: Traffic, *, sources: Any = None, sink: Any = None, fifos: Any = None) -> Trace:
    """Run a circuit in Amaranth's simulator. A source holds its word until it is taken."""
    sources = component.inputs if sources is None else sources
    sink = component.output if sink is None else sink
    fifos = component.fifos if fifos is None else fifos
    cycles, n = traffic.arrivals.shape
    output = np.full(cycles, -1, np.int64)
    taken = np.zeros((cycles, n), np.int64)
    levels = np.zeros((cycles, len(fifos)), np.int64)
    all_ready = Cat(source.ready for source in sources)
    all_levels = Cat(fifo.level for fifo in fifos)

    async def bench(ctx: Any) -> None:
        waiting, sent, shown = [0] * n, [0] * n, [(0, 0)] * n
        for cycle in range(cycles):
            for k, source in enumerate(sources):
                waiting[k] += int(traffic.arrivals[cycle, k])
                now = (1, sent[k] * n + k) if waiting[k] else (0, 0)
                if now != shown[k]:
                    ctx.set(source.valid, now[0])
                    ctx.set(source.payload, now[1])
                    shown[k] = now
            ctx.set(sink.ready, int(traffic.ready[cycle]))
            if ctx.get(sink.valid):
                output[cycle] = ctx.get(sink.payload)
            ready = ctx.get(all_ready)
            for k in range(n):
                if waiting[k] and ready >> k & 1:
                    taken[cycle, k] = 1
                    waiting[k] -= 1
                    sent[k] += 1
            packed = ctx.get(all_levels)
            for place, fifo in enumerate(fifos):
                bits = len(fifo.level)
                levels[cycle, place] = packed & (1 << bits) - 1
                packed >>= bits
            await ctx.tick()

    top = Module()
    top.domains.sync = ClockDomain()  # a network of one input may have no register, and no clock of its own
    top.submodules.component = component
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return Trace(output, taken, levels)


def run_model(step: Any, net: Any, traffic: Traffic) -> Trace:
    """Run a fast model with the same sources and the same sink."""
    cycles, n = traffic.arrivals.shape
    trace = Trace(
        np.full(cycles, -1, np.int64),
        np.zeros((cycles, n), np.int64),
        np.zeros((cycles, len(net.fifos.level)), np.int64),
    )
    run(step, net, traffic.arrivals, traffic.ready, trace.output, trace.taken, trace.levels)
    return trace


@njit(nogil=True)
def run(step: Any, net: Any, arrivals: Ints, ready: Ints, output: Ints, taken: Ints, levels: Ints) -> None:
    """The loop of `run_model`, compiled. The rows of `levels` are used again and again where there are too few."""
    cycles, n = arrivals.shape
    waiting, sent = np.zeros(n, np.int64), np.zeros(n, np.int64)
    offered = np.zeros(n, np.int64)
    for cycle in range(cycles):
        for k in range(n):
            waiting[k] += arrivals[cycle, k]
            offered[k] = sent[k] * n + k if waiting[k] else -1
        row = cycle % len(levels)
        levels[row] = net.fifos.level
        output[cycle] = step(net, offered, ready[cycle] == 1, taken[row])
        for k in range(n):
            waiting[k] -= taken[row, k]
            sent[k] += taken[row, k]


def differences(expected: Trace, found: Trace) -> list[str]:
    """The first cycle of each kind in which two runs differ, in words."""
    lines = []
    for name in ("output", "taken", "levels"):
        one, other = getattr(expected, name), getattr(found, name)
        cycles = np.flatnonzero((one != other).reshape(len(one), -1).any(axis=1))
        if len(cycles):
            lines.append(f"{name} in cycle {cycles[0]}: {one[cycles[0]]} expected, {other[cycles[0]]} found")
    return lines


def check_nothing_lost_or_twice(trace: Trace, traffic: Traffic) -> None:
    """Every word that arrived has left, once."""
    left = sorted(trace.left(traffic))
    assert traffic.words == left, f"{len(traffic.words)} words arrived, {len(left)} left, {len(set(left))} different"


def check_order_kept(trace: Trace, traffic: Traffic) -> None:
    """The words of each input leave in the order in which they arrived."""
    n = traffic.arrivals.shape[1]
    left = trace.left(traffic)
    for k in range(n):
        own = [word // n for word in left if word % n == k]
        assert own == sorted(own), f"input {k} out of order"


def longest_wait(trace: Trace, traffic: Traffic) -> int:
    """The most cycles that a word waited at its input, after the word before it was taken."""
    longest = 0
    for k in range(traffic.arrivals.shape[1]):
        waiting = since = 0
        for cycle in range(len(trace.taken)):
            waiting += int(traffic.arrivals[cycle, k])
            if trace.taken[cycle, k]:
                waiting -= 1
                since = 0
            elif waiting:
                since += 1
                longest = max(longest, since)
    return longest
