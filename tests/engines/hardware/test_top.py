"""The whole circuit gives every result, says when it has given all, and needs no more cycles than it must."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.adaptive import AdaptiveNetwork
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.simulate import by_amaranth
from handfast.engines.hardware.steps import flush_steps
from handfast.engines.hardware.top import JoinCircuit
from handfast.engines.hardware.tree import TreeNetwork
from handfast.flow.topology import ChainTopology
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Slot, Step, random_steps, same_key, step_word

WIDTH = LAYOUT.result_width


def circuit(
    network: str, cores: int, size: int, depth: int, margin: int, kind: type[JoinCircuit] = JoinCircuit
) -> JoinCircuit:
    chain = Handshake(topology=ChainTopology(cores), layout=LAYOUT, matches=same_key, sizes=(size, size))
    if network == "pipelined":
        return kind(chain=chain, network=PipelinedNetwork(n=cores, width=WIDTH, depth=depth, margin=margin), buffers=[])
    if network == "adaptive":
        ring = AdaptiveNetwork(n=cores, width=WIDTH, depth=depth, margin=margin)
        return kind(chain=chain, network=ring, buffers=[])
    buffers = [Fifo(width=WIDTH, depth=depth, margin=margin) for _ in range(cores)]
    tree = TreeNetwork(n=cores, width=WIDTH, depth=depth, margin=margin)
    return kind(chain=chain, network=tree, buffers=buffers)


@pytest.mark.parametrize("network", ["tree", "adaptive", "pipelined"])
@pytest.mark.parametrize(("cores", "depth", "margin"), [(1, 2, 1), (3, 4, 3), (4, 3, 1)])
def test_everything_matches_and_nothing_is_lost_in_the_smallest_buffers(
    network: str, cores: int, depth: int, margin: int
) -> None:
    steps: list[Step] = random_steps(random.Random(cores), 30, keys=1)
    steps += [(EMPTY, EMPTY)] * flush_steps(cores, (2, 2))
    plain = PlainChain(cores, (2, 2))
    expected = sorted(pair for step in steps for own in plain.step(step) for pair in own)
    outcome = by_amaranth(circuit(network, cores, 2, depth, margin), [step_word(step) for step in steps])
    assert expected == sorted(map(LAYOUT.pair, outcome.results))
    assert outcome.cycles == sorted(set(outcome.cycles))


@pytest.mark.parametrize("network", ["tree", "adaptive", "pipelined"])
@pytest.mark.parametrize(("cores", "size"), [(1, 1), (3, 2)])  # of one slot, the last comparison is the only one
def test_idle_means_that_every_result_has_come_out(network: str, cores: int, size: int) -> None:
    check_idle(JoinCircuit, network, cores, size)


def check_idle(kind: type[JoinCircuit], network: str, cores: int, size: int) -> None:
    top = circuit(network, cores, size, 4, 3, kind)
    rng = random.Random(5)
    plain = PlainChain(cores, (size, size))

    async def bench(ctx: Any) -> None:
        for step in random_steps(rng, 25, keys=1):
            expected = sum(map(len, plain.step(step)))
            ctx.set(top.steps.payload, step_word(step))
            ctx.set(top.steps.valid, 1)
            found, started = 0, False
            while not started or not ctx.get(top.idle):
                ctx.set(top.results.ready, rng.random() < 0.5)
                found += ctx.get(top.results.valid) and ctx.get(top.results.ready)
                started |= bool(taken := ctx.get(top.steps.valid) and ctx.get(top.steps.ready))
                await ctx.tick()
                if taken:
                    ctx.set(top.steps.valid, 0)
            assert expected == found

    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def test_steps_without_matches_follow_each_other_at_the_pace_of_the_thesis() -> None:
    # [OGE §4.1] with 8 tuples per segment: 21 cycles for a tuple of each stream, whatever the number of cores
    steps: list[Step] = [(Slot(k, 1), Slot(k, 2)) for k in range(5)]
    steps += [(Slot(5, 3), Slot(5, 3)), *[(EMPTY, EMPTY)] * flush_steps(2, (8, 8))]
    outcome = by_amaranth(circuit("tree", 2, 8, 8, 3), [step_word(step) for step in steps])
    # the pair of the sixth step meets when R enters the second core: in the first comparison that finds it
    first_cycle_of_the_scan = 21 * (5 + flush_steps(2, (8, 8))) + 4
    assert [LAYOUT.pair(result) for result in outcome.results] == [(5, 5)]
    assert first_cycle_of_the_scan <= outcome.cycles[0] < first_cycle_of_the_scan + 21 + 10
