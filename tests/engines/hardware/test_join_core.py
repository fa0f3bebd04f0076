"""Join cores of both kinds find what immediate scan finds, whatever stands behind them, in the cycles they promise."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.eager_core import EagerCore
from handfast.engines.hardware.join_core import JoinCore
from tests.engines.hardware.plain_chain import EMPTY, LAYOUT, PlainChain, Slot, random_steps, same_key

BESIDE = Slot(1_000, 1)  # a tuple that is not to be taken


def run(core: JoinCore, bench: Any) -> None:
    simulator = Simulator(core)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def offer(ctx: Any, core: JoinCore, step: Any) -> None:
    """Put a step at the ports of the core; a neighbour has a tuple there also where the stream does not shift."""
    for slot, entry, shift, stream in ((step[0], core.r_in, core.r_shift, 0), (step[1], core.s_in, core.s_shift, 1)):
        ctx.set(shift, slot is not None)
        ctx.set(entry.as_value(), 0 if slot is EMPTY else (slot or BESIDE).word(stream))


@pytest.mark.parametrize("kind", [JoinCore, EagerCore])
@pytest.mark.parametrize("ram", [False, True])
@pytest.mark.parametrize(
    ("sizes", "comparisons"),
    [((1, 1), 1), ((4, 4), 1), ((2, 5), 1), ((3, 1), 1), ((4, 4), 2), ((3, 5), 2), ((5, 1), 3), ((2, 3), 4)],
)
def test_a_core_finds_each_match_once_though_it_is_suspended_and_not_always_heard(
    kind: type[JoinCore], sizes: tuple[int, int], comparisons: int, ram: bool
) -> None:
    check_core(kind, sizes, comparisons, ram)


def check_core(kind: type[JoinCore], sizes: tuple[int, int], comparisons: int = 1, ram: bool = False) -> None:
    core = kind(layout=LAYOUT, matches=same_key, sizes=sizes, ram=ram, comparisons=comparisons)
    rng = random.Random(f"{sizes} {ram}")
    plain = PlainChain(1, sizes)

    async def bench(ctx: Any) -> None:
        for step in random_steps(rng, 60, keys=2):
            (expected,) = plain.step(step)
            offer(ctx, core, step)  # it stays at the ports, as long as the step lasts
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


@pytest.mark.parametrize(
    ("comparisons", "shifts", "cycles"),
    [
        (1, (1, 1), 21),  # [OGE Fig. 4.1.1]: STATE1 to STATE4, 8 comparisons, STATE6, 8 comparisons
        (1, (1, 0), 13),
        (1, (0, 1), 13),
        (3, (1, 1), 5 + 3 + 3),  # [000 A.2]: 8 comparisons, 3 at a time
        (8, (1, 1), 5 + 1 + 1),
    ],
)
def test_a_step_takes_the_cycles_of_the_thesis(comparisons: int, shifts: tuple[int, int], cycles: int) -> None:
    core = JoinCore(layout=LAYOUT, matches=same_key, sizes=(8, 8), comparisons=comparisons)
    assert [cycles] == cycles_of(core, [[Slot(0, 1), Slot(0, 2)]], shifts)


@pytest.mark.parametrize(
    ("sizes", "comparisons", "shifts", "cycles"),
    [
        ((8, 8), 1, (1, 1), 1 + 8),  # [000 A.2]: as many comparisons as the longer segment has slots
        ((8, 5), 1, (1, 1), 1 + 8),
        ((8, 5), 1, (1, 0), 1 + 5),  # what brings no tuple scans nothing
        ((8, 5), 1, (0, 1), 1 + 8),
        ((8, 5), 3, (1, 1), 1 + 3),
        ((8, 5), 8, (1, 1), 1 + 1),
    ],
)
def test_an_eager_step_takes_the_cycles_of_the_longer_scan(
    sizes: tuple[int, int], comparisons: int, shifts: tuple[int, int], cycles: int
) -> None:
    core = EagerCore(layout=LAYOUT, matches=same_key, sizes=sizes, comparisons=comparisons)
    assert [cycles] == cycles_of(core, [[Slot(0, 1), Slot(0, 2)]], shifts)


def test_matches_of_one_group_take_a_cycle_each() -> None:
    core = JoinCore(layout=LAYOUT, matches=same_key, sizes=(8, 8), comparisons=4)
    steps = [[Slot(k, 1), Slot(k, 1)] for k in range(4)]
    # S holds 0, 1, 2, 3 tuples when R scans it, and R one more when S scans it; empty slots cost nothing beyond a group
    expected = [5 + (max(1, k) + 1) + (max(1, k + 1) + 1) for k in range(4)]
    assert expected == cycles_of(core, steps, (1, 1))


def cycles_of(core: JoinCore, steps: list[list[Slot]], shifts: tuple[int, int]) -> list[int]:
    """How many cycles each step takes, where every result is taken at once."""
    took: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(core.results.ready, 1)
        for step in steps:
            offer(ctx, core, [slot if shift else None for slot, shift in zip(step, shifts, strict=True)])
            ctx.set(core.start, 1)
            cycles = 0
            while cycles == 0 or not ctx.get(core.ready):
                await ctx.tick()
                ctx.set(core.start, 0)
                cycles += 1
            took.append(cycles)

    run(core, bench)
    return took
