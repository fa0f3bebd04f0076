"""Random circuits with random inputs, and what is seen of their runs, in simulators and in the fast model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator

from handfast.engines.hardware import verilator
from handfast.engines.hardware.admission import COUNT_BITS
from handfast.engines.hardware.layout import JoinLayout
from handfast.engines.hardware.model.circuit import EMPTY, STAYS, ModelRun, Pairs, Steps
from handfast.engines.hardware.options import (
    ADAPTIVE,
    DROP,
    EAGER,
    HANDSHAKE,
    IMMEDIATE,
    NESTED_LOOP,
    PIPELINED,
    SUSPEND,
    THROTTLE,
    TREE,
)
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.simulator import Feed
from handfast.engines.hardware.top import JoinCircuit
from handfast.engines.hardware.tree import level_sizes
from tests.engines.hardware.plain_chain import LAYOUT, same_key

STAMPED = JoinLayout(replace(LAYOUT.r, low=10), replace(LAYOUT.s, low=10))
STANDSTILL = 3_000  # cycles in which nothing moves: more than a small circuit ever needs


@dataclass(frozen=True)
class Case:
    """A circuit, its steps by the places of tuples, and the tuples of R and of S: each a key and a `low`."""

    shape: CircuitShape
    layout: JoinLayout
    steps: Steps
    tuples: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    every: int  # cycles between the steps

    def circuit(self) -> JoinCircuit:
        return self.shape.build(self.layout, same_key)

    def words(self) -> list[int]:
        """The steps as they enter the circuit."""

        def slot(stream: int, place: int) -> int | None:
            if place < 0:
                return None if place == STAYS else 0
            key, low = self.tuples[stream][place]
            return self.layout.of(stream).pack(place, low, (key,))

        pairs = zip(self.steps.r.tolist(), self.steps.s.tolist(), strict=True)
        return [self.layout.pack_step(slot(0, r), slot(1, s)) for r, s in pairs]

    def pairs(self) -> Pairs:
        """Which tuples match: by keys, or listed where stamps are compared."""
        r, s = self.tuples
        if not self.layout.compares_stamps:
            return Pairs.by_keys(*(np.array([key for key, _ in own], np.int64) for own in (r, s)))
        found = [
            (i, j)
            for i, (r_key, r_low) in enumerate(r)
            for j, (s_key, s_low) in enumerate(s)
            if r_key == s_key and i >= s_low and j >= r_low
        ]
        places = np.array(found, np.int64).reshape(-1, 2)
        return Pairs.of(places[:, 0], places[:, 1], (len(r), len(s)))


@dataclass(frozen=True)
class Observed:
    """What was seen of a run: results and steps with their cycles, every FIFO in every cycle until it is idle."""

    results: list[tuple[int, int, int]]  # the places of R and of S, and the cycle
    taken: list[int]
    idle: int
    suspended: int
    discarded: list[int]  # numbers of steps
    dropped: int
    levels: list[list[int]]  # by FIFO


def random_shape(rng: random.Random, most_cores: int) -> CircuitShape:
    """Any circuit that can be built, with every parameter drawn."""
    algorithm = rng.choice((HANDSHAKE,) * 6 + (NESTED_LOOP,))
    cores = 1 if algorithm == NESTED_LOOP else min(rng.randint(1, most_cores) for _ in range(3))
    margin = rng.choice((0, 1, 1, 2, 3))
    merger = rng.choice(("states", "round_robin"))
    cycles = rng.choice((3, 3, 4, 5))
    shape = CircuitShape(
        cores=cores,
        sizes=(rng.randint(1, 8), rng.randint(1, 8)),
        algorithm=algorithm,
        ram=rng.random() < 0.4,
        comparisons=rng.choice((1, 1, 1, 2, 3, 9)),
        scan=rng.choice((IMMEDIATE, EAGER)),
        network=rng.choice((TREE, ADAPTIVE, PIPELINED)),
        core_buffer=margin + rng.choice((1, 1, 2, 5)),
        network_buffer=margin + rng.choice((1, 1, 2, 5)),
        margin=margin,
        latency=rng.choice((1, 2)),
        merger=merger,  # type: ignore[arg-type]
        fan_in=rng.randint(2, 8) if merger == "round_robin" else 2,
        cycles=cycles,
        writes=rng.choice([(a, b) for b in range(2, cycles) for a in range(1, b)]),
        cycles_per_result=rng.choice((1, 1, 2, 4)),
        port_ties=rng.choice(("NEW", "NEW", "NWE", "ENW", "WNE", "EWN", "WEN")),  # type: ignore[arg-type]
        rank_ties=rng.choice(("E", "W")),  # type: ignore[arg-type]
        north_last=rng.choice(("almost_full", "full")),  # type: ignore[arg-type]
        stage_fan_in=rng.randint(2, 8),
        delay=rng.choice((1, 1, 2, 3)),
        admission=rng.choice((SUSPEND, SUSPEND, SUSPEND, THROTTLE, DROP)),
        merge_clock=rng.choice((1, 1, 1, 2, 3)),
    )
    if shape.admission == DROP:  # from the FIFOs behind the cores, which only a tree has
        shape = replace(shape, network=TREE)
    if shape.network == TREE and rng.random() < 0.3:
        levels = level_sizes(shape.inputs, shape.fan_in)
        shape = replace(shape, network_buffer=[margin + rng.choice((1, 2, 5)) for _ in levels])
    return shape


def random_case(seed: int, *, most_cores: int, most_steps: int) -> Case:
    """A random circuit with an input: bursts of one stream, both side by side, everything matching, nothing, some."""
    rng = random.Random(seed)
    shape = random_shape(rng, most_cores)
    keys = rng.choice((1, 1, 2, 4, 40))
    steps: list[list[int]] = []
    places = count(), count()
    bias, empty = rng.random(), rng.choice((0, 0, 0.1))
    both = rng.choice((0.2, 0.8, 1))
    for _ in range(rng.randint(most_steps // 4, most_steps)):
        if rng.random() < 0.1:
            bias = rng.choice((0, rng.random(), 1))
        shifts = (True, True) if rng.random() < both else (True, False) if rng.random() < bias else (False, True)
        if rng.random() < 0.02:
            shifts = (False, False)
        steps.append(
            [STAYS if not s else EMPTY if rng.random() < empty else next(places[k]) for k, s in enumerate(shifts)]
        )
    steps += [[EMPTY, EMPTY]] * shape.flush
    rows = next(places[0]), next(places[1])
    every = rng.choice((0, 0, 0, 1, 7, shape.cycles_per_step, 40))
    layout = STAMPED if rng.random() < 0.3 else LAYOUT
    tuples = tuple(
        [
            (rng.randrange(keys), max(0, own * rows[1 - k] // max(1, rows[k]) - rng.randint(0, 12)))
            for own in range(rows[k])
        ]
        for k in (0, 1)
    )
    entering = np.array(steps, np.int64)
    return Case(shape, layout, Steps(entering[:, 0], entering[:, 1]), (tuples[0], tuples[1]), every)


class SideBySide(wiring.Component):
    """Circuits that have nothing to do with each other, so that Verilator builds them all at once."""

    def __init__(self, circuits: Sequence[JoinCircuit]) -> None:
        self.circuits = circuits
        ports: dict[str, Any] = {}
        for k, each in enumerate(circuits):
            ports[f"steps_{k}"] = In(stream.Signature(unsigned(each.layout.step.size)))
            ports[f"results_{k}"] = Out(stream.Signature(unsigned(each.layout.result_width)))
            ports |= {f"idle_{k}": Out(1), f"discarded_{k}": Out(COUNT_BITS), f"dropped_{k}": Out(COUNT_BITS)}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for k, each in enumerate(self.circuits):
            m.submodules[f"circuit_{k}"] = each
            connect(m, flipped(getattr(self, f"steps_{k}")), each.steps)
            connect(m, each.results, flipped(getattr(self, f"results_{k}")))
            for name in ("idle", "discarded", "dropped"):
                m.d.comb += getattr(self, f"{name}_{k}").eq(getattr(each, name))
        return m


def by_verilator(cases: Sequence[Case]) -> list[Observed | None]:
    """The runs in Verilator; None where a circuit stands still before it has given every result."""
    circuits = [case.circuit() for case in cases]
    probes = {(k, place): fifo.level for k, each in enumerate(circuits) for place, fifo in enumerate(each.fifos)}
    probes |= {(k, "suspend"): each.chain.suspend for k, each in enumerate(circuits)}
    names = {str(name): signal for name, signal in probes.items()}
    built = verilator.build(SideBySide(circuits), probes=names, optimize="-O0")  # built for one short run
    fed = {
        f"steps_{k}": Feed(np.array(case.words(), np.uint64), at=np.arange(len(case.steps.r)) * case.every)
        for k, case in enumerate(cases)
    }
    run = built.run(fed, quiet=STANDSTILL)

    def observed(k: int, case: Case) -> Observed | None:
        idle, taken = run.probes[f"idle_{k}"], run.taken[f"steps_{k}"]
        if len(taken) < len(case.steps.r) or not int(idle.words[-1]):
            return None
        end = int(idle.cycles[-1])
        found = run.outputs[f"results_{k}"]
        levels = [run.probes[str((k, place))] for place in range(len(circuits[k].fifos))]
        return Observed(
            [(*case.layout.pair(int(word)), int(cycle)) for word, cycle in zip(found.words, found.cycles, strict=True)],
            taken.tolist(),
            end,
            int(run.probes[str((k, "suspend"))].each_cycle(run.cycles)[:end].sum()),
            # a step is counted in the cycle after it was offered
            np.flatnonzero(np.isin(taken + np.uint64(1), run.probes[f"discarded_{k}"].cycles[1:])).tolist(),
            int(run.probes[f"dropped_{k}"].words[-1]),
            [own.each_cycle(run.cycles)[: end + 1].tolist() for own in levels],
        )

    return [observed(k, case) for k, case in enumerate(cases)]


def by_amaranth(case: Case) -> Observed | None:
    """The run in Amaranth's own simulator; None where the circuit stands still before it has given every result."""
    top = case.circuit()
    words = case.words()
    results: list[tuple[int, int, int]] = []
    taken: list[int] = []
    levels: list[int] = []
    widths = [len(fifo.level) for fifo in top.fifos]
    suspended = dropped = 0
    discarded: list[int] = []
    all_levels = Cat(fifo.level for fifo in top.fifos)

    async def drive(ctx: Any) -> None:
        nonlocal suspended, dropped
        cycle = moved = 0
        ctx.set(top.results.ready, 1)
        while cycle - moved < STANDSTILL:
            left = len(taken) < len(words)
            offered = left and cycle >= len(taken) * case.every
            ctx.set(top.steps.valid, offered)
            if left and not offered:
                moved = cycle
            if offered:
                ctx.set(top.steps.payload, words[len(taken)])
                if ctx.get(top.steps.ready):
                    taken.append(cycle)
                    moved = cycle
            if ctx.get(top.results.valid):
                results.append((*case.layout.pair(ctx.get(top.results.payload)), cycle))
                moved = cycle
            levels.append(ctx.get(all_levels))
            if not left and ctx.get(top.idle):
                dropped = ctx.get(top.dropped)
                return
            suspended += ctx.get(top.chain.suspend)
            await ctx.tick()
            cycle += 1
            if ctx.get(top.discarded) > len(discarded):
                discarded.append(len(taken) - 1)
        levels.clear()

    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    if not levels:
        return None
    return Observed(results, taken, len(levels) - 1, suspended, discarded, dropped, _unpacked(levels, widths))


def of_model(run: ModelRun) -> Observed:
    """The run in the fast model, with the levels of every cycle."""
    assert run.levels is not None
    assert run.highest.tolist() == run.levels.max(axis=1).tolist()
    assert run.total == (int(run.cycles[-1]) + 1 if len(run.cycles) else 0)
    return Observed(
        list(zip(run.r.tolist(), run.s.tolist(), run.cycles.tolist(), strict=True)),
        run.taken.tolist(),
        run.idle,
        run.suspended,
        run.discarded.tolist(),
        run.dropped,
        run.levels.tolist(),
    )


def differences(expected: Observed, found: Observed) -> list[str]:
    """Where two runs differ first, in words."""
    lines = []
    for field in fields(Observed):
        one, other = getattr(expected, field.name), getattr(found, field.name)
        if one == other:
            continue
        if not isinstance(one, list):
            lines.append(f"{field.name}: {one} expected, {other} found")
            continue
        at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        lines.append(f"{field.name}: {len(one)} expected, {len(other)} found, number {at} differs first")
        if field.name == "levels" and at < min(len(one), len(other)):
            cycle = next((t for t, (a, b) in enumerate(zip(one[at], other[at], strict=False)) if a != b), -1)
            lines.append(f"  from cycle {cycle} on")
        elif at < min(len(one), len(other)):
            lines.append(f"  {one[at]} expected, {other[at]} found")
    return lines


def _unpacked(packed: Sequence[int], widths: Sequence[int]) -> list[list[int]]:
    found, place = [], 0
    for width in widths:
        found.append([word >> place & (1 << width) - 1 for word in packed])
        place += width
    return found
