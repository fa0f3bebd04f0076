"""Comparisons of one cycle: each match leaves once, in the order of the pairs, and in the cycles that are promised."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from handfast.engines.hardware.comparisons import Comparisons
from tests.engines.hardware.plain_chain import LAYOUT, Slot, same_key


@pytest.mark.parametrize("pairs", [1, 2, 3, 8])
def test_matches_leave_one_after_the_other_each_once(pairs: int) -> None:
    check_comparisons(Comparisons, pairs)


def check_comparisons(kind: type[Comparisons], pairs: int) -> None:
    circuit = kind(layout=LAYOUT, matches=same_key, pairs=pairs)
    rng = random.Random(pairs)

    async def bench(ctx: Any) -> None:
        for number in range(80):
            slots = [[Slot(number + k, rng.randrange(2)) for k in range(pairs)] for _ in (0, 1)]
            empty = [[rng.random() < 0.1 for _ in range(pairs)] for _ in (0, 1)]
            compared = rng.getrandbits(pairs) | rng.getrandbits(pairs)
            for k in range(pairs):
                for stream, port in ((0, circuit.r[k]), (1, circuit.s[k])):
                    ctx.set(port.as_value(), 0 if empty[stream][k] else slots[stream][k].word(stream))
            ctx.set(circuit.compared, compared)
            left = [
                (slots[0][k].seq, slots[1][k].seq)
                for k in range(pairs)
                if compared >> k & 1 and not empty[0][k] and not empty[1][k] and slots[0][k].key == slots[1][k].key
            ]
            waiting = done = False
            for _ in range(100):
                suspend, ready = rng.random() < 0.3, rng.random() < 0.7
                ctx.set(circuit.suspend, suspend)
                ctx.set(circuit.results.ready, ready)
                valid = bool(left) and (not suspend or waiting)
                assert valid == ctx.get(circuit.results.valid)
                if valid:
                    assert left[0] == LAYOUT.pair(ctx.get(circuit.results.payload))
                done = not left and not suspend
                if valid and ready:
                    left.pop(0)
                    done = not left
                assert done == ctx.get(circuit.done)
                waiting = valid and not ready
                await ctx.tick()
                if done:
                    break
            assert done

    simulator = Simulator(circuit)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
