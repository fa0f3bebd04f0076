"""The chain finds, core by core, what the plain chain finds, and by the end every pair that its windows held."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.handshake import Handshake
from handfast.engines.hardware.steps import flush_steps
from handfast.flow.topology import ChainTopology, R
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Slot, Step, random_steps, same_key, step_word

CHAINS = [(1, (3, 3)), (2, (1, 1)), (3, (2, 2)), (4, (1, 3)), (5, (2, 1))]


@pytest.mark.parametrize("scan", ["immediate", "eager"])
@pytest.mark.parametrize(("cores", "sizes"), CHAINS)
def test_cores_that_stand_still_now_and_then_stay_in_step(cores: int, sizes: tuple[int, int], scan: str) -> None:
    check_chain(Handshake, cores, sizes, scan)


def check_chain(kind: type[Handshake], cores: int, sizes: tuple[int, int], scan: str = "immediate") -> None:
    chain = kind(topology=ChainTopology(cores), layout=LAYOUT, matches=same_key, sizes=sizes, scan=scan)
    rng = random.Random(f"{cores} {sizes}")
    plain = PlainChain(cores, sizes)

    async def bench(ctx: Any) -> None:
        for step in random_steps(rng, 40, keys=2):
            expected = plain.step(step)
            ctx.set(chain.steps.payload, step_word(step))
            ctx.set(chain.steps.valid, 1)
            found: list[list[tuple[int, int]]] = [[] for _ in range(cores)]
            started = False
            while not started or not ctx.get(chain.ready):
                ctx.set(chain.suspend, rng.random() < 0.2)
                for results in chain.results:
                    ctx.set(results.ready, rng.random() < 0.6)
                for core, results in enumerate(chain.results):
                    if ctx.get(results.valid) and ctx.get(results.ready):
                        found[core].append(LAYOUT.pair(ctx.get(results.payload)))
                taken = ctx.get(chain.steps.ready) and ctx.get(chain.steps.valid)
                await ctx.tick()
                if taken:
                    started = True
                    ctx.set(chain.steps.valid, 0)
            assert [sorted(own) for own in expected] == [sorted(own) for own in found]

    simulator = Simulator(chain)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("cores", "sizes"), [*CHAINS, (8, (2, 2)), (7, (3, 5)), (64, (8, 8))])
def test_a_chain_is_a_count_window_as_long_as_itself(cores: int, sizes: tuple[int, int]) -> None:
    # the argument of docs/decisions/0011, on the plain chain, which the circuit equals by the test above
    check_count_window(flush_steps, cores, sizes)


def check_count_window(flush_of: Callable[[int, tuple[int, int]], int], cores: int, sizes: tuple[int, int]) -> None:
    rng = random.Random(f"{cores} {sizes}")
    plain, held = PlainChain(cores, sizes), Counter[tuple[int, int]]()
    came: list[list[Slot]] = [[], []]
    steps = random_steps(rng, 3 * cores * max(sizes), keys=2)
    for step in steps:
        for stream, slot in enumerate(step):
            if slot is None:
                continue
            others = came[1 - stream][-cores * sizes[1 - stream] :]
            came[stream].append(slot)
            if slot is not EMPTY:
                pairs = [(slot, other) for other in others if other is not EMPTY and other.key == slot.key]
                held.update((a.seq, b.seq) if stream == R else (b.seq, a.seq) for a, b in pairs)
    flush: list[Step] = [(EMPTY, EMPTY)] * flush_of(cores, sizes)
    found = Counter(pair for step in [*steps, *flush] for own in plain.step(step) for pair in own)
    assert held == found


@pytest.mark.parametrize(("cores", "sizes"), [(2, (1, 1)), (4, (1, 3)), (7, (3, 5)), (64, (8, 8))])
def test_the_flush_is_as_long_as_it_must_be(cores: int, sizes: tuple[int, int]) -> None:
    number = flush_steps(cores, sizes)
    plain = PlainChain(cores, sizes)
    last: Step = (Slot(0, 1), Slot(0, 1))
    found = [any(plain.step(step)) for step in [last, *[(EMPTY, EMPTY)] * number]]
    assert [number] == [k for k, met in enumerate(found) if met]


def test_the_flush_of_the_thesis_has_256_steps() -> None:
    assert 256 == flush_steps(64, (8, 8))
