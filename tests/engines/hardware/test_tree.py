"""The tree network: the fast model cycle by cycle, nothing lost, order kept, nobody starves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.tree import TreeNetwork, level_sizes
from handfast.errors import SpecError
from tests.engines.hardware.plain_network import tree_state, tree_step
from tests.engines.hardware.traffic import (
    PATTERNS,
    SINKS,
    check_nothing_lost_or_twice,
    check_order_kept,
    differences,
    longest_wait,
    run_model,
    simulate,
    traffic,
)

SHAPES: list[dict[str, Any]] = [
    {"n": 1, "depth": 4},
    {"n": 1, "depth": 4, "cycles_per_result": 4},
    {"n": 2, "depth": 2, "margin": 1},
    {"n": 4, "depth": [8, 4], "margin": 2},
    {"n": 5, "depth": 4},
    {"n": 8, "depth": 4, "cycles": 4, "writes": (1, 3), "cycles_per_result": 4},
    {"n": 8, "depth": [16, 8, 4], "latency": 1},
    {"n": 7, "depth": 2, "margin": 0, "merger": "round_robin", "fan_in": 3},
    {"n": 8, "depth": 4, "margin": 1, "merger": "round_robin"},
    {"n": 12, "depth": 4, "merger": "round_robin", "fan_in": 8, "latency": 1},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_cycle_of_a_tree_is_that_of_the_model(shape: dict[str, Any]) -> None:
    n = shape["n"]
    for seed in range(2):
        pattern, sink = PATTERNS[(n + 2 * seed) % 4], SINKS[(n + seed) % 3]
        work = traffic(pattern, sink, n=n, words=40, cycles=100, drain=280, seed=seed)
        found = simulate(TreeNetwork(width=12, **shape), work)
        assert not differences(run_model(tree_step, tree_state(**shape), work), found)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)


@pytest.mark.parametrize("n", [2, 3, 16, 37, 64])
@pytest.mark.parametrize("kind", [{}, {"cycles": 4, "writes": (1, 3)}, {"merger": "round_robin", "fan_in": 4}], ids=str)
def test_a_large_tree_loses_nothing_and_keeps_the_order_of_each_input(n: int, kind: dict[str, Any]) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, ("stalls", "random", "always", "stalls"), strict=True)):
        work = traffic(pattern, sink, n=n, words=20 * n, cycles=100 * n, drain=100 * n, seed=seed)
        shape = {"n": n, "depth": 4, "margin": 1, **kind}
        found = run_model(tree_step, tree_state(**shape), work)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)
        assert found.levels.max() <= 4


@pytest.mark.parametrize(
    ("kind", "bound"),
    # The root of states gives two words in a loop of three cycles, that of the arbiter one in every cycle. Twice the
    # share of one input, because FIFOs fill and empty unevenly.
    [({}, 2 * 64 * 3 // 2), ({"merger": "round_robin"}, 2 * 64), ({"merger": "round_robin", "fan_in": 8}, 2 * 64)],
    ids=str,
)
def test_no_input_of_64_starves_where_all_are_always_valid(kind: dict[str, Any], bound: int) -> None:
    work = traffic("at once", "always", n=64, words=64 * 40, cycles=64 * 40, seed=0)
    found = run_model(tree_step, tree_state(n=64, depth=8, **kind), work)
    assert longest_wait(found, work) <= bound


def test_the_output_channel_takes_a_result_only_every_so_many_cycles() -> None:
    work = traffic("at once", "always", n=4, words=40, cycles=200, seed=0)
    found = simulate(TreeNetwork(n=4, width=8, depth=8, cycles_per_result=4), work)
    cycles = np.flatnonzero(found.output >= 0)
    assert [4] * 39 == np.diff(cycles).tolist()


def test_a_tree_is_almost_full_while_any_of_its_fifos_is() -> None:
    network = TreeNetwork(n=4, width=8, depth=4, margin=2)
    seen: list[tuple[int, list[int]]] = []

    async def bench(ctx: Any) -> None:
        ctx.set(network.inputs[3].valid, 1)
        for _ in range(60):
            seen.append((ctx.get(network.almost_full), [ctx.get(fifo.level) for fifo in network.fifos]))
            await ctx.tick()

    simulator = Simulator(network)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert all(flag == (max(levels) >= 2) for flag, levels in seen)
    assert {0, 1} == {flag for flag, _ in seen}


@pytest.mark.parametrize(
    ("n", "fan_in", "sizes"), [(1, 2, []), (5, 2, [1, 2, 3]), (64, 2, [1, 2, 4, 8, 16, 32]), (9, 8, [1, 2])]
)
def test_levels_are_as_few_as_the_fan_in_allows(n: int, fan_in: int, sizes: list[int]) -> None:
    assert sizes == level_sizes(n, fan_in)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n": 0}, "inputs of a merging network must be at least 1"),
        ({"n": 4, "fan_in": 3}, "has 2 inputs, not 3"),
        ({"n": 4, "merger": "fair"}, "'states' or 'round_robin', not 'fair'"),
        ({"n": 4, "depth": [4]}, "over 4 inputs has 2 levels of FIFOs, not 1"),
        ({"n": 4, "cycles_per_result": 0}, "must be at least 1, not 0"),
    ],
)
def test_a_tree_that_cannot_be_built_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        TreeNetwork(**{"width": 8, "depth": 4, **wrong})
