"""A slow chain is the chain, only slower: cycle by cycle, whatever is between its cycles."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.clocks import SlowChain
from handfast.engines.hardware.handshake import Handshake
from handfast.errors import SpecError
from handfast.flow.topology import ChainTopology
from tests.engines.hardware.plain_chain import LAYOUT, random_steps, same_key, step_word

CORES, CYCLES = 2, 300


def chain(scan: str, ram: bool) -> Handshake:
    topology = ChainTopology(CORES)
    return Handshake(topology=topology, layout=LAYOUT, matches=same_key, sizes=(2, 3), scan=scan, ram=ram)


@pytest.mark.parametrize(("scan", "ratio", "ram"), [("immediate", 2, False), ("eager", 3, True)])
def test_a_slow_chain_does_what_a_chain_does_in_every_so_many_cycles(scan: str, ratio: int, ram: bool) -> None:
    check_slow_chain(SlowChain, scan, ratio, ram)


def check_slow_chain(kind: type[SlowChain], scan: str, ratio: int, ram: bool = False) -> None:
    expected = seen(chain(scan, ram), 1)
    found = seen(kind(chain(scan, ram), ratio=ratio), ratio)
    assert expected == found[::ratio]
    between = [each for cycle, each in enumerate(found) if cycle % ratio]
    assert not any(takes or any(offered) for takes, offered, _ in between)
    assert any(any(offered) for _, offered, _ in expected)


def seen(subject: Any, ratio: int) -> list[tuple[int, list[int], list[int]]]:
    """By cycle: whether it takes a step, whether each core offers a result, and the results that are offered.

    In the cycles between those of the chain, anything is at its inputs.
    """
    rng, noise = random.Random(1), random.Random(2)
    words = [step_word(step) for step in random_steps(rng, CYCLES, keys=1)]
    trace: list[tuple[int, list[int], list[int]]] = []

    async def bench(ctx: Any) -> None:
        fed = 0
        for cycle in range(CYCLES * ratio):
            source = rng if cycle % ratio == 0 else noise
            valid = fed < len(words) and source.random() < 0.8
            ctx.set(subject.steps.valid, valid)
            ctx.set(subject.steps.payload, words[fed])
            ctx.set(subject.suspend, source.random() < 0.2)
            for results in subject.results:
                ctx.set(results.ready, source.random() < 0.7)
            takes = int(valid and ctx.get(subject.steps.ready))
            offered = [ctx.get(results.valid) for results in subject.results]
            payloads = [ctx.get(r.payload) * own for r, own in zip(subject.results, offered, strict=True)]
            trace.append((takes, offered, payloads))
            fed += takes
            await ctx.tick()

    simulator = Simulator(subject)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return trace


def test_a_ratio_of_one_is_no_slow_chain() -> None:
    with pytest.raises(SpecError, match="at least 2 of its cycles, not 1"):
        SlowChain(chain("immediate", False), ratio=1)
