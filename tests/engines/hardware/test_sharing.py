"""Parts that are alike are one module, which is connected as each of them was; counts are those without sharing."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from handfast.engines.hardware import sharing, synthesize, verilator
from handfast.engines.hardware.circuit import elaborate
from handfast.engines.hardware.sharing import Shared, share
from handfast.engines.hardware.simulate import by_amaranth, outcome_of, run_verilated
from handfast.engines.hardware.steps import flush_steps
from tests.engines.hardware.plain_chain import EMPTY, Step, random_steps, step_word
from tests.engines.hardware.subjects import Queue, Row
from tests.engines.hardware.test_top import circuit

CORES = 5
MODULE = re.compile(r"^module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"^  wire width (\d+) (?:input|output) \d+  \\(\S+)$", re.MULTILINE)
INSTANCE = re.compile(r"^  cell \\(\S+) \S+\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
CONNECTED = re.compile(r"^    connect \\(\S+) ", re.MULTILINE)


def check_shared(module: Any, network: str) -> None:
    """The middle cores are one, and so on; every instance is connected to all ports of its module and to no others."""
    text = elaborate(circuit(network, CORES, 2, 4, 3)).rtlil
    shared = module.share(text)
    before = [name for name, _ in MODULE.findall(text)]
    after = dict(MODULE.findall(shared.rtlil))
    assert before == list(shared.stands_for)
    assert after.keys() == set(shared.stands_for.values())
    assert len(after) == len(set(after.values()))
    cores = [shared.stands_for[f"top.chain.core_{k}"] for k in range(CORES)]
    assert 1 == len(set(cores[1:-1]))
    assert 3 == len(set(cores))  # the first and the last have the stream's entrance at one side
    assert 1 == len({shared.stands_for[f"top.chain.core_{k}.{own}"] for k in range(CORES) for own in "rs"})
    ports = {name: {port for _, port in PORT.findall(own)} for name, own in after.items()}
    for own in after.values():
        for part, connections in INSTANCE.findall(own):
            assert ports[part] == set(CONNECTED.findall(connections))


@pytest.mark.parametrize("network", ["tree", "adaptive"])
def test_cores_and_buffers_that_are_alike_are_one_module(network: str) -> None:
    check_shared(sharing, network)


def check_assertions(module: Any) -> None:
    shared = module.share(elaborate(Row(width=3, depth=2)).rtlil)
    assert {"top": "top", "top.first": "top.second", "top.second": "top.second"} == shared.stands_for


def test_the_order_of_assertions_keeps_nothing_apart() -> None:
    check_assertions(sharing)


def test_what_differs_stays_apart() -> None:
    row = Row(width=3, depth=2)
    row.queues[1] = Queue(width=3, depth=2, broken=True)
    assert share(elaborate(row).rtlil).stands_for["top.first"] == "top.first"


@pytest.mark.usefixtures("yosys")
def test_a_shared_circuit_does_the_same_in_every_cycle() -> None:
    steps: list[Step] = random_steps(random.Random(3), 40, keys=2)
    words = [step_word(step) for step in steps + [(EMPTY, EMPTY)] * flush_steps(CORES, (2, 2))]
    top = circuit("adaptive", CORES, 2, 4, 3)
    plain = elaborate(top)
    built = verilator.build_circuit(replace(plain, rtlil=share(plain.rtlil).rtlil))
    assert by_amaranth(circuit("adaptive", CORES, 2, 4, 3), words) == outcome_of(run_verilated(built, top, words))


def unshared(text: str) -> Shared:
    return Shared(text, {name: name for name, _ in MODULE.findall(text)})


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("network", ["tree", "adaptive"])
@pytest.mark.parametrize("cores", [2, 4])
def test_every_part_has_the_cells_that_it_has_without_sharing(
    network: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = synthesize.area(circuit(network, cores, 4, 4, 3))
    monkeypatch.setattr(synthesize, "share", unshared)
    assert synthesize.area(circuit(network, cores, 4, 4, 3)) == found
