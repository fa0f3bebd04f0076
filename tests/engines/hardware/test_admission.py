"""Admission control: suspension in time; what is discarded or dropped is counted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from handfast.engines.hardware.adaptive import AdaptiveNetwork
from handfast.engines.hardware.admission import Drop, Suspend, Throttle, throttle_margin
from handfast.engines.hardware.fifo import Fifo
from handfast.engines.hardware.pipelined import PipelinedNetwork
from handfast.engines.hardware.tree import TreeNetwork
from handfast.errors import SpecError


def run(component: Any, bench: Any) -> None:
    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("delay", [1, 2])
def test_cores_are_suspended_while_any_flag_was_up_so_many_cycles_ago(delay: int) -> None:
    control = Suspend(n=3, delay=delay)
    rng = np.random.default_rng(delay)
    flags = np.where(rng.random(60) < 0.6, 0, rng.integers(0, 8, 60))
    seen = []

    async def bench(ctx: Any) -> None:
        for value in flags:
            ctx.set(control.almost_full, int(value))
            seen.append(ctx.get(control.suspend))
            await ctx.tick()

    run(control, bench)
    assert [0] * delay + [int(value > 0) for value in flags[:-delay]] == seen


class Suspended(wiring.Component):
    """Cores that give results while they are not suspended, whether or not they are taken, as in the thesis."""

    def __init__(self, network: Any, control: Suspend, fifo: Any = None) -> None:
        self.network, self.control = network, control
        self.cores = [fifo() for _ in range(network.n)] if fifo else network.inputs
        super().__init__({"gives": In(network.n), "refused": Out(network.n)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.network, m.submodules.control = self.network, self.control
        entries, flags = self.network.inputs, [self.network.almost_full]
        if self.cores is not entries:
            entries = [core.write for core in self.cores]
            for k, core in enumerate(self.cores):
                m.submodules[f"core{k}"] = core
                wiring.connect(m, core.read, self.network.inputs[k])
                flags.append(core.almost_full)
        for place, flag in enumerate(flags):
            m.d.comb += self.control.almost_full[place].eq(flag)
        for k, entry in enumerate(entries):
            m.d.comb += [
                entry.valid.eq(self.gives[k] & ~self.control.suspend),
                entry.payload.eq(k),
                self.refused[k].eq(entry.valid & ~entry.ready),
            ]
        return m


def results_lost(top: Suspended, *, seed: int, cycles: int = 250) -> tuple[int, int]:
    """How many results were refused, and how many left, where the cores give as much as they can."""
    rng = np.random.default_rng(seed)
    lost = left = 0

    async def bench(ctx: Any) -> None:
        nonlocal lost, left
        for _ in range(cycles):
            ctx.set(top.gives, int(rng.integers(0, 1 << top.network.n)) | int(rng.integers(0, 1 << top.network.n)))
            ctx.set(top.network.output.ready, int(rng.random() < 0.7))
            lost += ctx.get(top.refused).bit_count()
            left += ctx.get(top.network.output.valid & top.network.output.ready)
            await ctx.tick()

    run(top, bench)
    return lost, left


def check_tree_with_suspension(make: Any, margin: int, delay: int = 1) -> None:
    """With a margin of the delay, the output FIFO of no core overflows [OGE §4.4]."""
    network = TreeNetwork(n=4, width=4, depth=4, margin=margin)
    top = Suspended(network, Suspend(n=5, delay=delay), lambda: make(width=4, depth=4, margin=margin))
    lost, left = results_lost(top, seed=margin)
    assert 0 == lost
    assert left > 30


@pytest.mark.parametrize(("margin", "delay"), [(1, 1), (2, 1), (2, 2)])
def test_suspended_in_time_no_core_finds_its_fifo_full(margin: int, delay: int) -> None:
    check_tree_with_suspension(Fifo, margin, delay)


def test_suspended_in_time_no_core_finds_a_node_that_cannot_take_its_result() -> None:
    lost, left = results_lost(Suspended(AdaptiveNetwork(n=4, width=4, depth=8), Suspend(n=1)), seed=0)
    assert 0 == lost
    assert left > 100


def test_suspended_in_time_no_core_finds_the_fifo_of_a_pipelined_network_full() -> None:
    lost, left = results_lost(Suspended(PipelinedNetwork(n=4, width=4, depth=4, margin=1), Suspend(n=1)), seed=0)
    assert 0 == lost
    assert left > 100


def check_throttle(make: Any) -> None:
    """Every tuple is admitted or discarded, once and in order; discarded only while a flag is up; all are counted."""
    throttle = make(n=2, width=8)
    rng = np.random.default_rng(3)
    admitted, discarded, offers = [], [], []
    count = 0

    async def bench(ctx: Any) -> None:
        nonlocal count
        sent = 0
        for _ in range(200):
            flags = int(rng.integers(0, 4)) if rng.random() < 0.3 else 0
            ctx.set(throttle.throttle, flags)
            ctx.set(throttle.input.valid, 1)
            ctx.set(throttle.input.payload, sent)
            ctx.set(throttle.output.ready, int(rng.random() < 0.5))
            valid, ready = ctx.get(throttle.output.valid), ctx.get(throttle.output.ready)
            offers.append((valid, ready, sent))
            assert ctx.get(throttle.discarded) == len(discarded)
            if ctx.get(throttle.discard):
                assert flags
                assert not valid
                discarded.append(sent)
            elif valid and ready:
                admitted.append(ctx.get(throttle.output.payload))
            assert ctx.get(throttle.input.ready) == (len(admitted) + len(discarded) > sent)
            sent = len(admitted) + len(discarded)
            await ctx.tick()
        count = ctx.get(throttle.discarded)

    run(throttle, bench)
    assert sorted(admitted + discarded) == list(range(len(admitted) + len(discarded)))
    assert admitted == sorted(admitted)
    assert count == len(discarded) > 10
    for (valid, ready, word), (still, _, same) in pairwise(offers):
        assert not valid or ready or (still and word == same), "a tuple that was offered stays offered"


def test_every_tuple_is_admitted_or_discarded_and_counted() -> None:
    check_throttle(Throttle)


def test_a_count_of_discarded_tuples_stays_at_its_highest_value() -> None:
    throttle = Throttle(n=1, width=4, count_bits=2)
    seen = []

    async def bench(ctx: Any) -> None:
        ctx.set(throttle.throttle, 1)
        ctx.set(throttle.input.valid, 1)
        for _ in range(6):
            seen.append(ctx.get(throttle.discarded))
            await ctx.tick()

    run(throttle, bench)
    assert [0, 1, 2, 3, 3, 3] == seen


def check_drop(make: Any) -> None:
    """Every word goes on or is dropped, once and in order; dropped only where it is crowded; all are counted."""
    n = 3
    drop = make(n=n, width=8)
    rng = np.random.default_rng(4)
    gone: list[list[int]] = [[] for _ in range(n)]  # by FIFO: what went on
    lost: list[list[int]] = [[] for _ in range(n)]

    async def bench(ctx: Any) -> None:
        for _ in range(150):
            assert sum(map(len, lost)) == ctx.get(drop.dropped)
            valid, crowded, ready = (rng.random(n) < part for part in (0.8, 0.4, 0.5))
            for k in range(n):
                ctx.set(drop.inputs[k].valid, int(valid[k]))
                ctx.set(drop.inputs[k].payload, len(gone[k]) + len(lost[k]))
                ctx.set(drop.outputs[k].ready, int(ready[k]))
            ctx.set(drop.crowded, sum(int(flag) << k for k, flag in enumerate(crowded)))
            before = sum(map(len, lost))
            for k in range(n):
                word = ctx.get(drop.outputs[k].payload)
                moves, leaves = ctx.get(drop.outputs[k].valid) and ready[k], ctx.get(drop.inputs[k].ready) and valid[k]
                assert valid[k] == ctx.get(drop.outputs[k].valid)
                assert leaves == (valid[k] and (ready[k] or crowded[k]))
                if moves:
                    gone[k].append(word)
                elif leaves:
                    lost[k].append(word)
            assert sum(map(len, lost)) - before == ctx.get(drop.drops)
            await ctx.tick()

    run(drop, bench)
    for went, dropped in zip(gone, lost, strict=True):
        assert sorted(went + dropped) == list(range(len(went) + len(dropped)))
        assert went == sorted(went)
        assert len(dropped) > 10


def test_every_result_goes_on_or_is_dropped_and_counted() -> None:
    check_drop(Drop)


def test_a_count_of_dropped_results_stays_at_its_highest_value() -> None:
    drop = Drop(n=2, width=4, count_bits=3)
    seen = []

    async def bench(ctx: Any) -> None:
        ctx.set(drop.crowded, 3)
        for entry in drop.inputs:
            ctx.set(entry.valid, 1)
        for _ in range(6):
            seen.append(ctx.get(drop.dropped))
            await ctx.tick()

    run(drop, bench)
    assert [0, 2, 4, 6, 7, 7] == seen


def test_a_core_throttles_when_the_matches_of_one_more_tuple_would_not_fit() -> None:
    margin = throttle_margin(r_segment=8, s_segment=5)
    assert 7 == margin, "fewer than 8 slots are free"


def test_a_suspension_without_a_flip_flop_is_refused() -> None:
    with pytest.raises(SpecError, match="at least 1 flip-flop, not 0"):
        Suspend(n=2, delay=0)
