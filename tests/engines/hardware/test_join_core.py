"""A join core finds what immediate scan finds, whatever stands behind it, in the cycles of the thesis."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.join_core import JoinCore
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Slot, random_steps, same_key


def run(core: JoinCore, bench: Any) -> None:
    simulator = Simulator(core)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def offer(ctx: Any, core: JoinCore, step: Any) -> None:
    """Put a step at the ports of the core."""
    for slot, entry, shift, stream in ((step[0], core.r_in, core.r_shift, 0), (step[1], core.s_in, core.s_shift, 1)):
        ctx.set(shift, slot is not None)
        ctx.set(entry.as_value(), 0 if slot in (None, EMPTY) else slot.word(stream))


@pytest.mark.parametrize("ram", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (4, 4), (2, 5), (3, 1)])
def test_a_core_finds_each_match_once_though_it_is_suspended_and_not_always_heard(
    sizes: tuple[int, int], ram: bool
) -> None:
    check_core(JoinCore, sizes, ram)


def check_core(kind: type[JoinCore], sizes: tuple[int, int], ram: bool = False) -> None:
    core = kind(layout=LAYOUT, matches=same_key, sizes=sizes, ram=ram)
    rng = random.Random(f"{sizes} {ram}")
    plain = PlainChain(1, sizes)

    async def bench(ctx: Any) -> None:
        for step in random_steps(rng, 60, keys=2):
            (expected,) = plain.step(step)
            offer(ctx, core, step)
            assert ctx.get(core.ready)
            ctx.set(core.start, 1)
            found, offered, limit = [], None, 1_000
            while limit := limit - 1:
                await ctx.tick()
                ctx.set(core.start, 0)
                ctx.set(core.suspend, rng.random() < 0.3)
                ctx.set(core.results.ready, rng.random() < 0.7)
                if ctx.get(core.ready):
                    break
                valid, result = ctx.get(core.results.valid), ctx.get(core.results.payload)
                if offered is not None:
                    assert valid and result == offered, "a result that was offered may not change"
                taken = valid and ctx.get(core.results.ready)
                offered = result if valid and not taken else None
                if taken:
                    found.append(LAYOUT.pair(result))
            assert limit, "the core never gets ready"
            assert sorted(expected) == sorted(found)

    run(core, bench)


@pytest.mark.parametrize(("shifts", "cycles"), [((1, 1), 21), ((1, 0), 13), ((0, 1), 13)])
def test_a_step_takes_the_cycles_of_the_thesis(shifts: tuple[int, int], cycles: int) -> None:
    # [OGE Fig. 4.1.1]: STATE1 to STATE4, 8 comparisons, STATE6, 8 comparisons
    core = JoinCore(layout=LAYOUT, matches=same_key, sizes=(8, 8))

    async def bench(ctx: Any) -> None:
        ctx.set(core.results.ready, 1)
        offer(ctx, core, [Slot(0, 0) if shift else None for shift in shifts])
        ctx.set(core.start, 1)
        took = 0
        while took == 0 or not ctx.get(core.ready):
            await ctx.tick()
            ctx.set(core.start, 0)
            took += 1
        assert cycles == took

    run(core, bench)
