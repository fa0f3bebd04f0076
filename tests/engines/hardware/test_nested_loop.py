"""The nested-loop join finds, step by step, what whole windows hold."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.nested_loop import UNITS, NestedLoop
from tests.engines.hardware.plain_chain import LAYOUT, PlainChain, Slot, Step, random_steps, same_key, step_word


@pytest.mark.parametrize("ram", [False, True])
@pytest.mark.parametrize(
    ("sizes", "comparisons"), [((1, 1), 1), ((3, 3), 1), ((5, 2), 1), ((1, 4), 1), ((5, 3), 2), ((2, 5), 3)]
)
def test_each_step_gives_its_matches_though_the_units_stand_still_now_and_then(
    sizes: tuple[int, int], comparisons: int, ram: bool
) -> None:
    join = NestedLoop(layout=LAYOUT, matches=same_key, sizes=sizes, ram=ram, comparisons=comparisons)
    rng = random.Random(f"{sizes} {ram}")
    plain = PlainChain(1, sizes)  # a chain of one core holds whole windows

    async def bench(ctx: Any) -> None:
        for step in random_steps(rng, 40, keys=2):
            (expected,) = plain.step(step)
            ctx.set(join.steps.payload, step_word(step))
            ctx.set(join.steps.valid, 1)
            found: list[tuple[int, int]] = []
            started = False
            while not started or not ctx.get(join.ready):
                ctx.set(join.suspend, rng.random() < 0.2)
                for results in join.results:
                    ctx.set(results.ready, rng.random() < 0.6)
                for results in join.results:
                    if ctx.get(results.valid) and ctx.get(results.ready):
                        found.append(LAYOUT.pair(ctx.get(results.payload)))
                taken = ctx.get(join.steps.ready) and ctx.get(join.steps.valid)
                await ctx.tick()
                if taken:
                    started = True
                    ctx.set(join.steps.valid, 0)
            assert sorted(expected) == sorted(found)

    simulator = Simulator(join)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(("comparisons", "groups"), [(1, 16), (5, 4)])
def test_both_directions_are_scanned_at_the_same_time(comparisons: int, groups: int) -> None:
    join = NestedLoop(layout=LAYOUT, matches=same_key, sizes=(16, 16), comparisons=comparisons)
    step: Step = (Slot(0, 1), Slot(0, 2))

    async def bench(ctx: Any) -> None:
        for unit in range(UNITS):
            ctx.set(join.results[unit].ready, 1)
        ctx.set(join.steps.payload, step_word(step))
        ctx.set(join.steps.valid, 1)
        took = 0
        while took == 0 or not ctx.get(join.ready):
            await ctx.tick()
            ctx.set(join.steps.valid, 0)
            took += 1
        assert groups + 3 == took

    simulator = Simulator(join)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
