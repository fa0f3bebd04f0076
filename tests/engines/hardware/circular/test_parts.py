"""Parts of a ring: windows keep what came last, queues their order, and tuples enter only while there is room."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from amaranth.hdl import unsigned
from amaranth.lib import data

from handfast.engines.hardware.circular.in_flight import InFlight
from handfast.engines.hardware.circular.stage_buffer import StageBuffer
from handfast.engines.hardware.circular.window import StageWindow
from tests.engines.hardware.circular.bench import run

WORD = data.StructLayout({"word": unsigned(8)})


@pytest.mark.parametrize(("groups", "banks"), [(1, 1), (2, 1), (5, 1), (3, 2), (2, 3), (1, 4)])
def test_a_window_reads_the_slots_before_any_place(groups: int, banks: int) -> None:
    check_window(StageWindow, groups, banks)


def check_window(kind: type[StageWindow], groups: int, banks: int) -> None:
    window = kind(slot=WORD, groups=groups, banks=banks)
    slots = groups * banks
    rng = random.Random(slots)

    async def bench(ctx: Any) -> None:
        held: list[int] = [0] * slots  # by place
        following = 0
        for _ in range(150):
            store, place = rng.random() < 0.6, rng.randrange(slots)
            word = rng.randrange(256)
            ctx.set(window.store, store)
            ctx.set(window.entering.as_value(), word)
            ctx.set(window.group, place // banks)
            ctx.set(window.bank, place % banks)
            before = list(held)
            await ctx.tick()
            expected = {p % banks: before[p] for p in ((place - 1 - back) % slots for back in range(banks))}
            assert [expected[bank] for bank in range(banks)] == [ctx.get(own.as_value()) for own in window.read]
            if store:
                held[following] = word
                following = (following + 1) % slots

    run(window, bench)


@pytest.mark.parametrize(("hops", "new", "depth"), [(1, 3, 1), (2, 1, 1), (3, 4, 2), (4, 2, 3), (7, 5, 1)])
def test_each_queue_of_a_stage_keeps_its_order(hops: int, new: int, depth: int) -> None:
    check_queues(StageBuffer, hops, new, depth)


def check_queues(kind: type[StageBuffer], hops: int, new: int, depth: int) -> None:
    buffer = kind(item=WORD, hops=hops, new=new, depth=depth)
    depths = [new, *[depth] * (hops - 1)]
    rng = random.Random(hops)

    async def bench(ctx: Any) -> None:
        queues: list[deque[int]] = [deque() for _ in range(hops)]
        shown = 0
        for _ in range(400):
            levels = [len(queue) for queue in queues]
            assert [ctx.get(own) for own in buffer.levels] == levels
            assert ctx.get(buffer.waiting) == sum((level > 0) << hop for hop, level in enumerate(levels))
            assert ctx.get(buffer.more) == sum((level > 1) << hop for hop, level in enumerate(levels))
            room = sum((level < own) << hop for hop, (level, own) in enumerate(zip(levels, depths, strict=True)))
            assert ctx.get(buffer.room) == room
            readable = levels[shown] > 0
            if readable:
                assert queues[shown][0] == ctx.get(buffer.oldest.as_value())
            pop = readable and rng.random() < 0.6
            word, hop = rng.randrange(256), rng.randrange(1, max(2, hops))
            enters = levels[0] < new and rng.random() < 0.5
            comes = hops > 1 and levels[hop] < depth and rng.random() < 0.5
            ctx.set(buffer.new_valid, enters)
            ctx.set(buffer.new.as_value(), word)
            ctx.set(buffer.valid, comes)
            ctx.set(buffer.hop, hop)
            ctx.set(buffer.item.as_value(), 255 - word)
            ctx.set(buffer.pop, pop)
            # as a stage looks: at what was there before this cycle
            choices = [h for h, level in enumerate(levels) if level > (pop and h == shown)]
            look = rng.choice(choices) if choices else shown
            ctx.set(buffer.look, look)
            await ctx.tick()
            if pop:
                queues[shown].popleft()
            if enters:
                queues[0].append(word)
            if comes:
                queues[hop].append(255 - word)
            shown = look
            if not choices:  # what came into an empty queue can be looked at a cycle later
                ctx.set(buffer.new_valid, 0)
                ctx.set(buffer.valid, 0)
                ctx.set(buffer.pop, 0)
                await ctx.tick()

    run(buffer, bench)


@pytest.mark.parametrize(("limit", "stages"), [(1, 3), (2, 1), (5, 3), (8, 8)])
def test_no_tuple_enters_that_is_too_far_behind_one_that_has_not_ended(limit: int, stages: int) -> None:
    check_in_flight(InFlight, limit, stages)


def check_in_flight(kind: type[InFlight], limit: int, stages: int) -> None:
    part = kind(limit=limit, stages=stages)
    rng = random.Random(limit)

    async def bench(ctx: Any) -> None:
        entered = 0
        running: set[int] = set()
        quiet = 0  # cycles in a row in which nothing ended
        for _ in range(600):
            oldest = min(running, default=entered)
            assert entered - oldest <= limit
            if quiet > limit:  # by then all ends have been seen
                assert (entered - oldest < limit) == ctx.get(part.room)
                assert (not running) == ctx.get(part.empty)
            if ctx.get(part.empty):
                assert not running
            enters = bool(ctx.get(part.room)) and rng.random() < 0.5
            ctx.set(part.enters, enters)
            assert not enters or entered % limit == ctx.get(part.number)
            ending = rng.sample(sorted(running), min(len(running), rng.choice((0, 0, 0, 1, stages))))
            for stage in range(stages):
                ends = stage < len(ending)
                ctx.set(part.ended[stage], ends)
                ctx.set(part.ended_number[stage], ending[stage] % limit if ends else rng.randrange(limit))
            quiet = 0 if ending else quiet + 1
            running -= set(ending[:stages])
            if enters:
                running.add(entered)
                entered += 1
            await ctx.tick()
        assert entered > 3 * limit

    run(part, bench)
