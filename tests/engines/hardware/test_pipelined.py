"""The pipelined network: the fast model cycle by cycle, nothing lost, order kept, nobody starves, no cycle wasted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.errors import SpecError
from tests.engines.hardware.plain_pipelined import pipelined_state, pipelined_step
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
    {"n": 1, "depth": 1, "margin": 0},
    {"n": 1, "depth": 4, "latency": 2},
    {"n": 2, "depth": 2, "margin": 1, "fan_in": 2},
    {"n": 4, "depth": 4, "margin": 1},
    {"n": 5, "depth": 4, "latency": 1},
    {"n": 7, "depth": 2, "margin": 0, "fan_in": 3},
    {"n": 8, "depth": 8, "fan_in": 2},
    {"n": 9, "depth": 4, "fan_in": 8, "latency": 2},
]


def check_pipelined(make: Any, shape: dict[str, Any]) -> None:
    """Every cycle is that of the model, nothing is lost and the order kept, under two patterns."""
    n = shape["n"]
    for seed in range(2):
        pattern, sink = PATTERNS[(n + 2 * seed) % 4], SINKS[(n + seed + 1) % 3]
        work = traffic(pattern, sink, n=n, words=60, cycles=90, drain=70, seed=seed)
        found = simulate(make(width=12, **shape), work)
        assert not differences(run_model(pipelined_step, pipelined_state(**shape), work), found)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_cycle_of_a_pipelined_network_is_that_of_the_model(shape: dict[str, Any]) -> None:
    check_pipelined(PipelinedNetwork, shape)


@pytest.mark.parametrize("n", [2, 3, 16, 37, 64])
@pytest.mark.parametrize("kind", [{}, {"fan_in": 2, "latency": 1}, {"fan_in": 8, "margin": 0}], ids=str)
def test_a_large_pipelined_network_loses_nothing_and_keeps_the_order_of_each_input(
    n: int, kind: dict[str, Any]
) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, ("stalls", "random", "always", "stalls"), strict=True)):
        work = traffic(pattern, sink, n=n, words=20 * n, cycles=30 * n, drain=30 * n + 50, seed=seed)
        found = run_model(pipelined_step, pipelined_state(n=n, depth=4, **kind), work)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)
        assert found.levels.max() <= 4


@pytest.mark.parametrize(("fan_in", "levels"), [(2, 6), (4, 3), (8, 2)])
def test_in_a_network_at_rest_a_result_is_out_after_a_cycle_per_level(fan_in: int, levels: int) -> None:
    work = traffic("one input", "always", n=64, words=1, cycles=12, seed=0)
    found = run_model(pipelined_step, pipelined_state(n=64, depth=4, fan_in=fan_in), work)
    assert [levels] == np.flatnonzero(found.output >= 0).tolist()


@pytest.mark.parametrize("fan_in", [2, 4, 8])
@pytest.mark.parametrize("pattern", ["at once", "one input"])
def test_as_long_as_anything_waits_a_result_leaves_in_every_cycle(pattern: str, fan_in: int) -> None:
    work = traffic(pattern, "always", n=64, words=640, cycles=660, seed=0)
    found = run_model(pipelined_step, pipelined_state(n=64, depth=4, fan_in=fan_in), work)
    assert [1] * 639 == np.diff(np.flatnonzero(found.output >= 0)).tolist()


def check_turns(make: Any) -> None:
    """Where all are always valid, each has one result in so many as there are."""
    work = traffic("at once", "always", n=16, words=16 * 12, cycles=16 * 10, seed=0)
    found = simulate(make(n=16, width=8, depth=4), work)
    assert longest_wait(found, work) <= 16


def test_no_input_of_a_pipelined_network_starves() -> None:
    check_turns(PipelinedNetwork)


def test_no_input_of_an_uneven_network_starves() -> None:
    # Of 17 inputs the last has a merger for itself, and half of the root's words; the others share the other half.
    work = traffic("at once", "always", n=17, words=17 * 40, cycles=17 * 40, seed=0)
    found = run_model(pipelined_step, pipelined_state(n=17, depth=4), work)
    assert longest_wait(found, work) <= 2 * 16


def test_a_pipelined_network_that_cannot_be_built_is_refused() -> None:
    with pytest.raises(SpecError, match="from 2 to 8 inputs, not 9"):
        PipelinedNetwork(n=4, width=8, depth=4, fan_in=9)
    with pytest.raises(SpecError, match="inputs of a merging network must be at least 1"):
        PipelinedNetwork(n=0, width=8, depth=4)
