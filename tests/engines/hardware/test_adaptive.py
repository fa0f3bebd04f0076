"""The adaptive network: the fast model cycle by cycle, nothing lost, no tuple circles for ever, no overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from handfast.engines.hardware.adaptive import AdaptiveNetwork, RingNode
from handfast.errors import SpecError
from tests.engines.hardware.plain_network import NONE, adaptive_state, adaptive_step
from tests.engines.hardware.traffic import (
    PATTERNS,
    SINKS,
    check_nothing_lost_or_twice,
    differences,
    run_model,
    simulate,
    traffic,
)

SHAPES: list[dict[str, Any]] = [
    {"n": 1, "depth": 4, "margin": 1},
    {"n": 2, "depth": 2, "margin": 1},
    {"n": 3, "depth": 4, "latency": 1},
    {"n": 4, "depth": 8},
    {"n": 4, "depth": 1, "margin": 0},
    {"n": 5, "depth": 4, "margin": 2, "north_last": "full", "rank_ties": "W", "port_ties": "NWE"},
    {"n": 6, "depth": 4, "port_ties": "ENW", "hop_bits": 2},
]


def check_network(make: Any, shape: dict[str, Any]) -> None:
    """Every cycle is that of the model, and nothing is lost, under two patterns."""
    n = shape["n"]
    for seed in range(2):
        pattern, sink = PATTERNS[(n + 2 * seed) % 4], SINKS[(n + seed) % 3]
        work = traffic(pattern, sink, n=n, words=60, cycles=90, drain=110, seed=seed)
        found = simulate(make(width=12, **shape), work)
        assert not differences(run_model(adaptive_step, adaptive_state(**shape), work), found)
        if shape.get("port_ties", "NEW").startswith("N"):
            check_nothing_lost_or_twice(found, work)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_cycle_of_an_adaptive_network_is_that_of_the_model(shape: dict[str, Any]) -> None:
    check_network(AdaptiveNetwork, shape)


def check_full_ring(make: Any) -> None:
    """All inputs always valid above FIFOs that are small and often stalled: the ring fills, and nothing is lost."""
    shape = {"n": 4, "depth": 2, "margin": 1}
    work = traffic("at once", "stalls", n=4, words=80, cycles=160, drain=60, seed=1)
    check_nothing_lost_or_twice(simulate(make(width=12, **shape), work), work)


def test_a_ring_above_full_fifos_loses_nothing() -> None:
    check_full_ring(AdaptiveNetwork)


@pytest.mark.parametrize("n", [2, 3, 16, 64])
@pytest.mark.parametrize(
    "kind", [{}, {"margin": 0}, {"north_last": "full"}, {"rank_ties": "W", "hop_bits": 1}], ids=str
)
def test_a_large_ring_gives_back_everything_once(n: int, kind: dict[str, Any]) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, ("stalls", "random", "always", "stalls"), strict=True)):
        work = traffic(pattern, sink, n=n, words=20 * n, cycles=30 * n, drain=30 * n + 50, seed=seed)
        found = run_model(adaptive_step, adaptive_state(n=n, depth=4, **kind), work)
        check_nothing_lost_or_twice(found, work)
        assert found.levels.max() <= 4


def tuples_on_the_ring(net: Any) -> int:
    now = net.phase[0]
    return int((net.east[now] != NONE).sum() + (net.west[now] != NONE).sum())


@dataclass
class Ring:
    """Cores that give results at random until they learn, `delay` cycles late, that a FIFO is almost full."""

    refused: int = 0  # results that a node could not take
    most_hops: int = 0  # of any tuple
    gone: bool = False  # whether the ring was empty at the end, after the cores had been silent

    @classmethod
    def run(
        cls, *, n: int, seed: int, delay: int | None = 1, rate: float = 1.0, cycles: int = 800, **shape: Any
    ) -> Ring:
        """Run it; where the delay is None, nobody tells the cores."""
        rng = np.random.default_rng(seed)
        net = adaptive_state(n=n, hop_bits=20, **shape)
        offered, taken = np.full(n, NONE, np.int64), np.zeros(n, np.int64)
        seen, flags = cls(), [False] * (delay or 0)
        drain = rng.uniform(0.5, 1) if seed else 1.0
        for cycle in range(cycles + n * 16):
            flags.append(bool((net.fifos.level >= net.fifos.limit).any()))
            go = cycle < cycles and (delay is None or not flags[-1 - delay])
            gives = (rng.random(n) < rate) & go
            offered[:] = np.where(gives, np.arange(n), NONE)
            adaptive_step(net, offered, bool(rng.random() < drain), taken)
            seen.refused += int(gives.sum() - taken.sum())
            now = net.phase[0]
            for word, hops in ((net.east, net.east_hops), (net.west, net.west_hops)):
                seen.most_hops = max(seen.most_hops, int(hops[now][word[now] != NONE].max(initial=0)))
        seen.gone = tuples_on_the_ring(net) == 0
        return seen


@pytest.mark.parametrize("north_last", ["almost_full", "full"])
@pytest.mark.parametrize("n", [4, 16, 33])
def test_with_admission_control_no_tuple_goes_round_more_often_than_a_fifo_has_slots(n: int, north_last: str) -> None:
    for seed, rate in enumerate([1.0, 0.9, 0.3]):
        seen = Ring.run(n=n, seed=seed, rate=rate, depth=8, north_last=north_last)
        assert seen.most_hops <= 8 * n
        assert seen.gone


def test_without_admission_control_new_results_keep_old_ones_on_the_ring_but_not_for_ever() -> None:
    # Above an almost full FIFO north is the last port, and of three tuples the youngest gets it.
    seen = Ring.run(n=4, seed=0, delay=None, depth=8, rate=0.9)
    assert seen.most_hops > 500
    assert seen.gone


@pytest.mark.parametrize("delay", [1, 2])
@pytest.mark.parametrize("north_last", ["almost_full", "full"])
def test_with_a_margin_of_one_more_than_the_delay_every_result_is_taken(delay: int, north_last: str) -> None:
    for seed, n in enumerate([2, 4, 16, 33]):
        seen = Ring.run(n=n, seed=seed, delay=delay, rate=0.9, depth=8, margin=delay + 1, north_last=north_last)
        assert 0 == seen.refused


@pytest.mark.parametrize("delay", [1, 2])
def test_with_a_smaller_margin_some_results_are_refused(delay: int) -> None:
    assert Ring.run(n=16, seed=0, delay=delay, rate=0.9, depth=8, margin=delay - 1).refused > 0


def check_leaves_at_once(make: Any) -> None:
    """A result above empty FIFOs: one cycle to its node's register, two in the FIFO, two in each of two mergers."""
    work = traffic("one input", "always", n=4, words=1, cycles=12, seed=0)
    found = simulate(make(n=4, width=8, depth=4), work)
    assert 1 + 2 + 2 * 2 == int(np.flatnonzero(found.output >= 0)[:1].sum())
    check_nothing_lost_or_twice(found, work)


def test_above_empty_fifos_a_result_leaves_at_once() -> None:
    check_leaves_at_once(AdaptiveNetwork)


def test_where_ties_go_east_a_tuple_circles_for_ever_above_empty_fifos() -> None:
    net = adaptive_state(n=4, depth=4, port_ties="EWN")
    taken = np.zeros(4, np.int64)
    adaptive_step(net, np.array([0, NONE, NONE, NONE]), True, taken)
    for _ in range(1000):
        adaptive_step(net, np.full(4, NONE, np.int64), True, taken)
    assert 1 == tuples_on_the_ring(net)


def check_spreads(make: Any) -> None:
    """Results of one core alone are stored in the FIFOs of its neighbours as well [OGE §6.1]."""
    work = traffic("one input", "stalls", n=4, words=20, cycles=40, drain=40, seed=0)
    work.ready[:40] = 0
    found = simulate(make(n=4, width=8, depth=8), work)
    assert found.levels[39].min() >= 2
    check_nothing_lost_or_twice(found, work)


def test_results_of_one_core_are_spread_over_all_fifos() -> None:
    check_spreads(AdaptiveNetwork)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"port_ties": "NEE"}, "each of N, E and W once"),
        ({"rank_ties": "N"}, "'E' or 'W'"),
        ({"north_last": "never"}, "'almost_full' or 'full', not 'never'"),
        ({"hop_bits": 0}, "must be at least 1, not 0"),
    ],
)
def test_a_node_that_cannot_be_built_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        RingNode(**{"width": 8, "depth": 4, **wrong})
