"""Circuits that throttle or drop: the result is exact for what was admitted, and what was lost is counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.simulate import Outcome, by_amaranth
from handfast.errors import SpecError
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Slot, Step, random_steps, same_key, step_word

THROTTLE = CircuitShape(cores=2, sizes=(2, 2), core_buffer=4, network_buffer=4, margin=2, admission="throttle")
DROP = replace(THROTTLE, admission="drop")


def run(shape: CircuitShape, steps: list[Step], *, every: int) -> Outcome:
    return by_amaranth(
        shape.build(LAYOUT, same_key), [step_word(s) for s in steps], every=every, look=for_cycles(5_000)
    )


def for_cycles(most: int) -> Callable[[Any], None]:
    """What is called in each cycle, and at last says that the circuit never gets idle."""
    left = iter(range(most))

    def look(ctx: Any) -> None:
        assert next(left, None) is not None, "the circuit never gets idle"

    return look


def matches(shape: CircuitShape, steps: list[Step]) -> list[tuple[int, int]]:
    plain = PlainChain(shape.cores, shape.sizes)
    return sorted(pair for step in steps for own in plain.step(step) for pair in own)


@pytest.mark.parametrize(
    "shape",
    [
        THROTTLE,
        replace(THROTTLE, scan="eager", comparisons=2),
        replace(THROTTLE, cores=3, sizes=(1, 3), scan="eager", network="adaptive", network_buffer=3),
        replace(THROTTLE, cores=1, sizes=(3, 2), algorithm="nested_loop"),
        replace(THROTTLE, scan="eager", merge_clock=2, cycles_per_result=5),
    ],
)
def test_a_throttled_circuit_finds_all_matches_of_what_it_admits(shape: CircuitShape) -> None:
    check_throttled(shape)


def check_throttled(shape: CircuitShape) -> None:
    lost = kept = 0
    for seed in range(3):
        steps = random_steps(random.Random(seed), 40, keys=1)
        flush: list[Step] = [(EMPTY, EMPTY)] * shape.flush
        outcome = run(shape, [*steps, *flush], every=shape.cycles_per_step + seed)
        admitted = [step for number, step in enumerate(steps) if number not in outcome.discarded]
        assert matches(shape, [*admitted, *flush]) == sorted(map(LAYOUT.pair, outcome.results))
        assert outcome.discarded == sorted(set(outcome.discarded))
        lost += len(outcome.discarded)
        kept += len(outcome.results)
    assert lost > 5
    assert kept > 20


@pytest.mark.parametrize(("sooner", "discarded"), [(0, []), (1, [1, 3, 5])])
def test_a_step_that_comes_while_the_cores_are_busy_is_discarded(sooner: int, discarded: list[int]) -> None:
    check_busy(sooner, discarded)


def check_busy(sooner: int, discarded: list[int]) -> None:
    steps: list[Step] = [(Slot(k, 1), Slot(k, 2)) for k in range(6)]
    assert discarded == run(THROTTLE, steps, every=THROTTLE.cycles_per_step - sooner).discarded


@pytest.mark.parametrize(
    "shape", [DROP, replace(DROP, scan="eager", comparisons=2), replace(DROP, margin=1), replace(DROP, merge_clock=2)]
)
def test_what_is_dropped_is_counted_and_all_else_comes_out(shape: CircuitShape) -> None:
    check_dropping(shape)


def check_dropping(shape: CircuitShape) -> None:
    dropped = 0
    for seed, keys in enumerate((1, 1, 4)):
        steps = [*random_steps(random.Random(seed), 40, keys), *[(EMPTY, EMPTY)] * shape.flush]
        slow = replace(
            shape, cycles_per_result=6 * shape.merge_clock
        )  # an output channel that all results do not fit through
        outcome = run(slow, steps, every=0)
        expected, found = Counter(matches(shape, steps)), Counter(map(LAYOUT.pair, outcome.results))
        assert found <= expected
        assert expected.total() == found.total() + outcome.dropped
        dropped += outcome.dropped
    assert dropped > 20


def test_nothing_is_dropped_where_there_is_room() -> None:
    check_room()


def check_room() -> None:
    steps = random_steps(random.Random(1), 40, keys=9)
    outcome = run(DROP, steps, every=0)
    assert 0 == outcome.dropped
    assert matches(DROP, steps) == sorted(map(LAYOUT.pair, outcome.results))


def test_cores_without_buffers_have_nothing_to_drop_from() -> None:
    with pytest.raises(SpecError, match="this circuit has none"):
        replace(DROP, network="adaptive").build(LAYOUT, same_key)
