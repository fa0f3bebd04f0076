"""Both simulators run the same circuit: every result in the same cycle."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from handfast.engines.hardware import verilator, verilog
from handfast.engines.hardware.nested_loop import NestedLoop
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.simulate import by_amaranth, by_verilator
from handfast.engines.hardware.steps import flush_steps
from handfast.engines.hardware.top import JoinCircuit
from handfast.engines.hardware.tree import TreeNetwork
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Step, random_steps, same_key, step_word
from tests.engines.hardware.test_top import circuit

CORES, SIZE = 2, 2


def nested_loop() -> JoinCircuit:
    chain = NestedLoop(layout=LAYOUT, matches=same_key, sizes=(CORES * SIZE, CORES * SIZE))
    return JoinCircuit(chain=chain, network=TreeNetwork(n=2, width=LAYOUT.result_width, depth=4), buffers=[])


SHAPE = CircuitShape(cores=CORES, sizes=(SIZE, SIZE), core_buffer=4, network_buffer=4)
SHAPES = {
    "three at a time": replace(SHAPE, ram=True, comparisons=3),  # in banks of RAM whose last group is not full
    "eager": replace(SHAPE, scan="eager", comparisons=2),
    "slow chain": replace(SHAPE, scan="eager", ram=True, merge_clock=3),
    "throttle": replace(SHAPE, admission="throttle", scan="eager", ram=True, comparisons=3, merge_clock=2),
    "drop": replace(SHAPE, admission="drop"),
}
KINDS = ["tree", "adaptive", "pipelined", "nested loop", *SHAPES]
BUILT = [
    pytest.param(kind, marks=pytest.mark.more if kind in ("three at a time", "eager", "slow chain") else [])
    for kind in KINDS
]


def circuit_of(kind: str) -> JoinCircuit:
    if kind == "nested loop":
        return nested_loop()
    return SHAPES[kind].build(LAYOUT, same_key) if kind in SHAPES else circuit(kind, CORES, SIZE, 4, 3)


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("kind", BUILT)
def test_verilator_gives_what_amaranth_gives_in_the_same_cycles(kind: str) -> None:
    for seed, keys in enumerate((1, 1, 2, 5)):
        steps: list[Step] = random_steps(random.Random(seed), 25, keys)
        steps += [(EMPTY, EMPTY)] * flush_steps(CORES, (SIZE, SIZE))
        words = [step_word(step) for step in steps]
        every = seed * 6  # an immediate step takes 9 cycles
        outcome = by_verilator(circuit_of(kind), words, every=every)
        assert by_amaranth(circuit_of(kind), words, every=every) == outcome
        plain = PlainChain(CORES, (SIZE, SIZE))
        admitted = [step for number, step in enumerate(steps) if number not in outcome.discarded]
        expected = sorted(pair for step in admitted for own in plain.step(step) for pair in own)
        assert len(expected) == len(outcome.results) + outcome.dropped
        assert kind == "drop" or expected == sorted(map(LAYOUT.pair, outcome.results))


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("kind", KINDS)
def test_the_verilog_of_the_whole_circuit_is_lint_clean(kind: str) -> None:
    verilator.lint(verilog.export(circuit_of(kind)))
