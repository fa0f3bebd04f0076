"""A stash that says it is whole has every pair that is in the windows; it is not when it overwrote one of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from handfast.engines.hardware.stashed.design import LineDesign
from handfast.engines.hardware.stashed.stash import Stash
from tests.engines.hardware.circular.bench import run, stages


@pytest.mark.parametrize(("size", "comparisons"), [(1, 1), (3, 1), (8, 1), (4, 2), (5, 3)])
def test_a_whole_stash_has_every_live_pair(size: int, comparisons: int) -> None:
    check_stash(Stash, size, comparisons)


def check_stash(kind: type[Stash], size: int, comparisons: int) -> None:
    windows = dict.fromkeys("abc", "4 rows")
    design = stages("a.k = b.k", windows, rows=1_000, comparisons=comparisons, algorithm="stashed", in_flight=2)
    assert isinstance(design, LineDesign)
    stash = kind(layout=design.layout, size=size)
    rng = random.Random(f"{size} {comparisons}")

    async def bench(ctx: Any) -> None:
        every: list[tuple[int, int]] = []  # all pairs so far, by the places of their tuples
        low = [0, 0]  # where the windows begin
        newest = [0, 0]
        lost = overwritten = wholes = probes = 0
        for _ in range(500):
            # a tuple says where windows begin, and a probe follows or a pair
            for stream in (0, 1):
                newest[stream] += rng.choice((0, 0, 1))
                low[stream] = max(low[stream], newest[stream] - rng.choice((3, 4)))
                ctx.set(getattr(stash, f"low_{stream}"), low[stream])
            ctx.set(stash.knows, 3)
            live = [pair for pair in every if pair[0] >= low[0] and pair[1] >= low[1]]
            whole = bool(ctx.get(stash.whole))
            # it keeps count: what is not among the newest `count` pairs is gone or has expired
            held = every[len(every) - ctx.get(stash.count) :]
            if whole:
                wholes += 1
                assert set(live) <= set(held)
            if set(live) - set(held):
                lost += 1
                assert not whole
            group, bank, count = ctx.get(stash.group), ctx.get(stash.bank), ctx.get(stash.count)
            assert count <= stash.size
            if rng.random() < 0.4:
                # probe all, from the newest backwards
                probes += 1
                reach, found, left = 0, [], count
                while left > 0:
                    ctx.set(stash.at_group, group)
                    ctx.set(stash.at_bank, bank)
                    await ctx.tick()
                    ctx.set(stash.knows, 0)
                    read = [(each.of_0.seq, each.of_1.seq) for each in (ctx.get(own) for own in stash.read)]
                    for away in range(1, min(left, comparisons) + 1):
                        pair = read[(bank - away) % comparisons]
                        found.append(pair)
                        if pair in live:
                            reach = count - left + away
                    left -= comparisons
                    group = (group or stash.groups) - 1
                assert found == held[::-1]
                ctx.set(stash.trim, 1)
                ctx.set(stash.reach, reach)
            else:
                pair = (rng.randrange(low[0], newest[0] + 1), rng.randrange(low[1], newest[1] + 1))
                ctx.set(stash.keep, 1)
                ctx.set(stash.pair, {f"of_{k}": {"seq": pair[k]} for k in (0, 1)})
                gone = held[0] if len(held) == stash.size else None
                dies = gone is not None and gone[0] >= low[0] and gone[1] >= low[1]
                assert dies == ctx.get(stash.overwritten)
                overwritten += dies
                every.append(pair)
            await ctx.tick()
            ctx.set(stash.keep, 0)
            ctx.set(stash.trim, 0)
            ctx.set(stash.knows, 0)
        assert wholes and probes > 50
        assert (overwritten > 0) == (lost > 0)

    run(stash, bench)
