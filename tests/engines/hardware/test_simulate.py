"""Both simulators run the same circuit: every result in the same cycle."""

from __future__ import annotations

import random

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


def three_at_a_time() -> JoinCircuit:
    """Banks of RAM whose last group is not full."""
    shape = CircuitShape(cores=CORES, sizes=(SIZE, SIZE), ram=True, comparisons=3, core_buffer=4, network_buffer=4)
    return shape.build(LAYOUT, same_key)


def eager() -> JoinCircuit:
    shape = CircuitShape(cores=CORES, sizes=(SIZE, SIZE), comparisons=2, scan="eager", core_buffer=4, network_buffer=4)
    return shape.build(LAYOUT, same_key)


def circuit_of(kind: str) -> JoinCircuit:
    made = {"nested loop": nested_loop, "three at a time": three_at_a_time, "eager": eager}
    return made[kind]() if kind in made else circuit(kind, CORES, SIZE, 4, 3)


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("kind", ["tree", "adaptive", "nested loop", "three at a time", "eager"])
def test_verilator_gives_what_amaranth_gives_in_the_same_cycles(kind: str) -> None:
    for seed, keys in enumerate((1, 1, 2, 5)):
        steps: list[Step] = random_steps(random.Random(seed), 25, keys)
        steps += [(EMPTY, EMPTY)] * flush_steps(CORES, (SIZE, SIZE))
        words = [step_word(step) for step in steps]
        outcome = by_verilator(circuit_of(kind), words)
        assert by_amaranth(circuit_of(kind), words) == outcome
        plain = PlainChain(CORES, (SIZE, SIZE))
        expected = sorted(pair for step in steps for own in plain.step(step) for pair in own)
        assert expected == sorted(map(LAYOUT.pair, outcome.results))


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("kind", ["tree", "adaptive", "nested loop", "three at a time", "eager"])
def test_the_verilog_of_the_whole_circuit_is_lint_clean(kind: str) -> None:
    verilator.lint(verilog.export(circuit_of(kind)))
