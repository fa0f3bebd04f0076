"""A stage finds what its items match, each once and in order, whenever there is room, and says when a tuple ends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from handfast.engines.hardware.circular.stage import RingStage
from tests.engines.hardware.circular.bench import ring, run

LENGTH, IN_FLIGHT = 4, 6  # of the window; tuples under way
ITEMS = 100
MOST = 5_000  # cycles that they take


@pytest.mark.parametrize("turn", ["round_robin", "highest"])
@pytest.mark.parametrize(("comparisons", "buffer"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_a_stage_finds_each_match_once_and_in_order(comparisons: int, buffer: int, turn: str) -> None:
    check_stage(RingStage, comparisons, buffer, turn)


def check_stage(kind: type[RingStage], comparisons: int, buffer: int, turn: str = "round_robin") -> None:
    """The stage of b among a, b, c, d: hop 0 brings tuples of a, hop 1 those of d with a, hop 2 of c with d and a."""
    windows = dict.fromkeys("abcd", f"{LENGTH} rows")
    sizes = {"comparisons": comparisons, "in_flight": IN_FLIGHT, "stage_buffer": buffer}
    design = ring("a.k = b.k", windows, **sizes)
    layout = design.layout
    stage = kind(place=1, layout=layout, matches=design._matches, buffer=buffer, turn=turn)
    rng = random.Random(f"{comparisons} {buffer} {turn}")
    places = layout.groups(1) * comparisons
    kinds = 3 if comparisons == 1 else 2  # of keys: several matches in a group

    async def bench(ctx: Any) -> None:
        keys: list[int] = []  # of the window's tuples
        number = [hop * 1_000 for hop in range(3)]  # of the tuple whose items come now, by hop
        expected: list[list[tuple[str, int, int]]] = [[], [], []]  # what is to come out, by hop
        unfinished = [False] * 3  # an item of this tuple has come at this hop, and found something
        ended: list[int] = []
        to_end: list[int] = []
        given = queued = cycles = 0
        while given < ITEMS or queued:
            cycles += 1
            assert cycles < MOST, "the stage is stuck"
            # a tuple for the window, while nothing that waits looks for what it overwrites
            fills = len(keys) < min(3 * places, 2 + given)  # no items come until there is room for a tuple
            stores = queued == 0 and fills
            key = rng.randrange(kinds)
            ctx.set(stage.store, stores)
            ctx.set(stage.slot.as_value(), layout.slot(1).pack(len(keys) % 32, 0, [key]))
            # an item
            hop = rng.randrange(3)
            comes = not fills and given < ITEMS and (ctx.get(stage.room) >> hop & 1) and rng.random() < 0.5
            held = min(len(keys), rng.randrange(LENGTH + 1))
            marker = hop > 0 and rng.random() < 0.3
            own_key = rng.randrange(kinds)
            place = len(keys) % places
            range_ = {"group": place // comparisons, "held": held}
            if comparisons > 1:
                range_["bank"] = place % comparisons
            item = {"number": number[hop] % IN_FLIGHT, "valid": not marker, "last": marker or hop == 0}
            member = {"seq": 1, "columns": {"k": {"value": own_key, "null": 0}}}
            item |= {"of_0": {"member": member}, "of_1": {"range": range_}}
            ctx.set(stage.new, comes and hop == 0)
            ctx.set(stage.new_item, item)
            ctx.set(stage.valid, comes and hop > 0)
            ctx.set(stage.hop, hop)
            ctx.set(stage.item, item)
            room = rng.getrandbits(3)
            ctx.set(stage.onward_room, room)
            ctx.set(stage.results.ready, rng.random() < 0.6)
            if comes:
                given += 1
                queued += 1
                found = [] if marker else [p for p in range(len(keys) - held, len(keys)) if keys[p] == own_key]
                # newest first; of one group, the lowest bank first
                found.sort(key=lambda p: ((len(keys) - 1 - p) // comparisons, p % comparisons))
                expected[hop] += [("match", number[hop] % IN_FLIGHT, p % 32) for p in found]
                unfinished[hop] |= bool(found)
                if marker or hop == 0:
                    if unfinished[hop] and hop < 2:
                        expected[hop].append(("marker", number[hop] % IN_FLIGHT, 0))
                    else:
                        to_end.append(number[hop] % IN_FLIGHT)
                    unfinished[hop] = False
                    number[hop] += 1
            # what comes out
            if ctx.get(stage.onward_valid):
                going = ctx.get(stage.onward)
                at = ctx.get(stage.onward_hop) - 1
                assert room >> at + 1 & 1, "it goes on only where there is room"
                assert expected[at], "nothing is found"
                kind_, own, seq = expected[at].pop(0)
                assert (kind_ == "match", own) == (going.valid, going.number)
                assert (kind_ == "marker") == going.last
                assert kind_ == "marker" or seq == going.of_1.member.seq
            if ctx.get(stage.results.valid) and ctx.get(stage.results.ready):
                assert expected[2], "nothing is found"
                _, _, seq = expected[2].pop(0)
                assert seq == layout.places(ctx.get(stage.results.payload))[1]
            if ctx.get(stage.ended):
                ended.append(ctx.get(stage.ended_number))
            await ctx.tick()
            if stores:
                keys.append(key)
            queued = sum(ctx.get(level) for level in stage.queues.levels)
        assert not any(expected)
        assert sorted(to_end) == sorted(ended)

    run(stage, bench)
