"""The mergers: the fast model cycle by cycle, nothing lost, order kept, nobody starves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handfast.engines.hardware.merger import BufferlessMerger, Merger, RegisterMerger, RoundRobinMerger
from handfast.errors import SpecError
from tests.engines.hardware.plain_network import tree_state, tree_step
from tests.engines.hardware.traffic import (
    PATTERNS,
    SINKS,
    Trace,
    Traffic,
    check_nothing_lost_or_twice,
    check_order_kept,
    differences,
    longest_wait,
    run_model,
    simulate,
    traffic,
)


def seen(merger: Any, work: Traffic) -> Trace:
    return simulate(merger, work, fifos=[merger.fifo])


def check_merger(make: Any, **shape: Any) -> None:
    """A merger of three states is what the model says, under every pattern."""
    model = {key: value for key, value in shape.items() if key != "width"}
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, (*SINKS, "always"), strict=True)):
        work = traffic(pattern, sink, n=2, words=24, cycles=100, drain=120, seed=seed)
        found = seen(make(**shape), work)
        assert not differences(run_model(tree_step, tree_state(n=2, **model), work), found)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)


@pytest.mark.parametrize(
    "shape",
    [
        {"depth": 2, "margin": 0},  # a write may have to wait in its state
        {"depth": 2, "margin": 1},
        {"depth": 4, "latency": 1},
        {"depth": 8},
        {"depth": 4, "cycles": 4, "writes": (1, 3)},  # what the thesis' printed counts fit best
    ],
    ids=str,
)
def test_every_cycle_of_the_thesis_merger_is_that_of_the_model(shape: dict[str, Any]) -> None:
    check_merger(Merger, width=8, **shape)


def test_the_thesis_merger_reads_both_ports_and_writes_one_after_the_other() -> None:
    work = traffic("at once", "always", n=2, words=4, cycles=12, seed=0)
    found = seen(Merger(width=8, depth=8, margin=1), work)
    # STATE1 in cycles 0 and 3; written in 1, 2, 4, 5; readable two cycles later [OGE §4.2]
    assert [[1, 1], [0, 0], [0, 0], [1, 1]] == found.taken[:4].tolist()
    assert [-1, -1, -1, 0, 1, -1, 2, 3, -1, -1, -1, -1] == found.output.tolist()


def test_an_almost_full_fifo_disables_both_ports() -> None:
    work = Traffic(np.array([[9, 9], *[[0, 0]] * 29]), np.zeros(30, np.int64))
    found = seen(Merger(width=8, depth=4, margin=2), work)
    assert 2 == found.taken.sum()
    assert 2 == found.levels[-1, 0]


def check_round_robin(make: Any, fan_in: int) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, ("random", "always", "stalls", "random"), strict=True)):
        work = traffic(pattern, sink, n=fan_in, words=60, cycles=130, drain=90, seed=seed)
        found = seen(make(width=12, depth=4, margin=1, fan_in=fan_in), work)
        model = tree_state(n=fan_in, depth=4, margin=1, merger="round_robin", fan_in=fan_in)
        assert not differences(run_model(tree_step, model, work), found)
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)


@pytest.mark.parametrize("fan_in", [2, 3, 8])
def test_every_cycle_of_a_round_robin_merger_is_that_of_the_model(fan_in: int) -> None:
    check_round_robin(RoundRobinMerger, fan_in)


def check_no_starvation(make: Any, fan_in: int) -> None:
    work = traffic("at once", "always", n=fan_in, words=20 * fan_in, cycles=20 * fan_in, seed=0)
    found = seen(make(width=12, depth=4, fan_in=fan_in), work)
    assert fan_in - 1 == longest_wait(found, work)
    assert work.arrivals.sum() == found.taken.sum(), "one word in every cycle"


@pytest.mark.parametrize("fan_in", [2, 5, 8])
def test_a_word_waits_for_at_most_one_word_of_every_other_input(fan_in: int) -> None:
    check_no_starvation(RoundRobinMerger, fan_in)


def check_bufferless(make: Any) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, (*SINKS, "random"), strict=True)):
        work = traffic(pattern, sink, n=2, words=50, cycles=120, drain=20, seed=seed)
        found = simulate(make(width=8), work, fifos=[])
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)
    work = traffic("at once", "always", n=2, words=20, cycles=22, seed=0)
    found = simulate(make(width=8), work, fifos=[])
    assert list(range(20)) == found.output[2:].tolist(), "in turn, one in every cycle, two cycles after it came"


def test_a_merger_without_a_buffer_passes_a_word_in_every_cycle_and_takes_turns() -> None:
    check_bufferless(BufferlessMerger)


def check_register(make: Any, fan_in: int) -> None:
    for seed, (pattern, sink) in enumerate(zip(PATTERNS, (*SINKS, "random"), strict=True)):
        work = traffic(pattern, sink, n=fan_in, words=50, cycles=120, drain=20, seed=seed)
        found = simulate(make(width=12, fan_in=fan_in), work, fifos=[])
        check_nothing_lost_or_twice(found, work)
        check_order_kept(found, work)
    work = traffic("at once", "always", n=fan_in, words=8 * fan_in, cycles=8 * fan_in + 1, seed=0)
    found = simulate(make(width=12, fan_in=fan_in), work, fifos=[])
    assert list(range(8 * fan_in)) == found.output[1:].tolist(), "in turn, one in every cycle, a cycle after it came"


@pytest.mark.parametrize("fan_in", [2, 3, 4, 8])
def test_a_merger_of_one_register_passes_a_word_in_every_cycle_and_takes_turns(fan_in: int) -> None:
    check_register(RegisterMerger, fan_in)


def test_a_merger_that_cannot_be_built_is_refused() -> None:
    with pytest.raises(SpecError, match="from 2 to 8 inputs, not 9"):
        RoundRobinMerger(width=8, depth=4, fan_in=9)
    with pytest.raises(SpecError, match="from 2 to 8 inputs, not 1"):
        RegisterMerger(width=8, fan_in=1)
    with pytest.raises(SpecError, match="cycles from 1 to 2"):
        Merger(width=8, depth=4, writes=(1, 3))
