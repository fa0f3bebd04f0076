"""Both forms of a segment hold the last tuples that entered, and give the oldest away."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.sim import Simulator

from handfast.engines.hardware.segment import RamSegment, Segment

SLOT = data.StructLayout({"valid": 1, "word": unsigned(6)})


@pytest.mark.parametrize("form", [Segment, RamSegment])
@pytest.mark.parametrize(("size", "at_once"), [(1, 1), (2, 1), (3, 1), (8, 1), (1, 3), (4, 2), (5, 2), (7, 3), (3, 8)])
def test_a_segment_holds_the_last_slots_that_entered(form: type[Segment], size: int, at_once: int) -> None:
    check_segment(form, size, at_once)


def check_segment(form: type[Segment], size: int, at_once: int = 1) -> None:
    segment = form(slot=SLOT, size=size, at_once=at_once)
    padding = [0] * (segment.groups * at_once - size)  # the last group is filled up with empty slots
    rng = random.Random(size)

    async def check(ctx: Any) -> None:
        held = deque([0] * size, maxlen=size)  # oldest first
        for _ in range(60):
            ctx.set(segment.index, 0)
            for _ in range(rng.randrange(3)):
                slot = rng.randrange(2**7)
                ctx.set(segment.entering.as_value(), slot)
                ctx.set(segment.shift, 1)
                assert held[0] == ctx.get(segment.leaving.as_value())
                await ctx.tick()
                held.append(slot)
                ctx.set(segment.shift, 0)
                assert held[0] == ctx.get(segment.leaving.as_value())
                await ctx.tick()  # no two shifts without a cycle between them
            read = []
            for index in range(segment.groups):
                ctx.set(segment.index, index)
                await ctx.tick()
                read += [ctx.get(slot.as_value()) for slot in segment.read]
                assert held[0] == ctx.get(segment.leaving.as_value())
            assert sorted([*held, *padding]) == sorted(read)

    simulator = Simulator(segment)
    simulator.add_clock(1e-8)
    simulator.add_testbench(check)
    simulator.run()
