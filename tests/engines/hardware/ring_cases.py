"""Random rings and lines with random inputs, and what is seen of their runs, in simulators and in the fast model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from amaranth.hdl import Cat, Module, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator

from handfast.engines.hardware import verilator
from handfast.engines.hardware.admission import COUNT_BITS
from handfast.engines.hardware.circular.job import RingJob
from handfast.engines.hardware.circular.ring import RingCircuit
from handfast.engines.hardware.engine import prepare
from handfast.engines.hardware.options import CIRCULAR, DROP, HIGHEST, ROUND_ROBIN, SUSPEND, HardwareOptions
from handfast.engines.hardware.simulator import Feed
from handfast.engines.hardware.stashed.line import LineCircuit
from handfast.spec.join import JoinSpec

STANDSTILL = 3_000  # cycles in which nothing moves: more than a small ring ever needs


@dataclass(frozen=True)
class RingCase:
    """A ring and its input.

    Attributes:
        spec: The join.
        tables: Its inputs.
        options: The circuit.
    """

    spec: JoinSpec
    tables: dict[str, pa.Table]
    options: HardwareOptions

    def job(self) -> RingJob:
        made = prepare(self.spec, self.tables, self.options)
        assert isinstance(made, RingJob)
        return made


@dataclass(frozen=True)
class RingSeen:
    """What was seen of a run: results and tuples with their cycles, every queue and FIFO in every cycle."""

    results: list[tuple[tuple[int, ...], int]]  # the places of the tuples, and the cycle
    taken: list[int]
    idle: int
    waited: list[int]  # by stage
    dropped: int
    levels: list[list[int]]  # by queue and FIFO


def random_ring(seed: int, *, most_streams: int, most_rows: int, algorithm: str = CIRCULAR) -> RingCase:
    """Any ring, or line with a stash: windows of rows and of time, equalities and bands, ties in time, tiny buffers."""
    rng = random.Random(seed)
    streams = min(rng.randint(3, most_streams) for _ in range(2))
    names = tuple("abcdefgh"[:streams])
    keys = rng.choice((1, 1, 2, 3, 8))
    parts = []
    for one, other in pairwise(names):
        parts.append(
            rng.choice(
                (f"{one}.k = {other}.k",) * 4
                + (f"ABS({one}.v - {other}.v) <= {rng.randint(0, 3)}", f"{one}.v + 1 < {other}.v + {other}.k")
            )
        )
    if rng.random() < 0.3:
        parts.append(f"{names[0]}.v + {names[1]}.v >= {names[-1]}.v")
    if rng.random() < 0.2:
        parts.append(f"{rng.choice(names)}.v > 1")
    shortest = 2 if keys < 3 else 4
    window: Any = {
        name: f"{rng.randint(1, shortest + 4)} rows" if rng.random() < 0.7 else f"{rng.randint(1, 30)} microseconds"
        for name in names
    }
    tables = {}
    span = rng.choice((4, 40, 200))  # with few moments, many tuples have the same time
    for name in names:
        rows = rng.randint(1, most_rows)
        start = rng.choice((0, 0, span // 2))
        times = sorted(rng.randint(start, span) for _ in range(rows))
        tables[name] = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us")),
                "k": pa.array([rng.randrange(keys) if rng.random() < 0.97 else None for _ in times], pa.int8()),
                "v": pa.array([rng.randint(0, 6) for _ in times], pa.int8()),
            }
        )
    options = HardwareOptions(
        comparisons=rng.choice((1, 1, 1, 2, 3, 7)),
        in_flight=rng.choice((1, 2, 3, 8, 40)),
        stage_buffer=rng.choice((1, 1, 2, 5)),
        network_buffer=rng.choice((1, 2, 8)) + 1,
        margin=1,
        turn=rng.choice((ROUND_ROBIN, ROUND_ROBIN, HIGHEST)),
        admission=rng.choice((SUSPEND,) * 6 + (DROP,)) if algorithm == CIRCULAR else SUSPEND,
        algorithm=algorithm,
        stash_size=rng.choice((0, 1, 2, 3, 5, 5, 8, 13, 60)),
        step_every=rng.choice((None, None, None, 1, 3, 17)),
    )
    spec = JoinSpec(names, on=" AND ".join(parts), window=window, time="ts")
    return RingCase(spec, tables, options)


class RingsSideBySide(wiring.Component):
    """Rings that have nothing to do with each other, so that Verilator builds them all at once."""

    def __init__(self, rings: Sequence[RingCircuit | LineCircuit]) -> None:
        self.rings = rings
        ports: dict[str, Any] = {}
        for k, each in enumerate(rings):
            ports[f"steps_{k}"] = In(stream.Signature(unsigned(each.layout.step.size)))
            ports[f"results_{k}"] = Out(stream.Signature(unsigned(each.layout.result_width)))
            ports |= {f"idle_{k}": Out(1), f"dropped_{k}": Out(COUNT_BITS)}
        super().__init__(ports | {"idle": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for k, each in enumerate(self.rings):
            m.submodules[f"ring_{k}"] = each
            connect(m, flipped(getattr(self, f"steps_{k}")), each.steps)
            connect(m, each.results, flipped(getattr(self, f"results_{k}")))
            for name in ("idle", "dropped"):
                m.d.comb += getattr(self, f"{name}_{k}").eq(getattr(each, name))
        m.d.comb += self.idle.eq(Cat(each.idle for each in self.rings).all())
        return m


def stages_of(ring: RingCircuit | LineCircuit) -> list[Any]:
    return [ring.first, *ring.others] if isinstance(ring, LineCircuit) else ring.stages


def levels_of(ring: RingCircuit | LineCircuit) -> list[Any]:
    """The levels of all queues, by stage and hop, and of the FIFOs behind the stages."""
    if isinstance(ring, LineCircuit):
        queues = [stage.queue.level for stage in stages_of(ring)]
    else:
        queues = [level for stage in ring.stages for level in stage.queues.levels]
    return queues + [fifo.level for fifo in ring.fifos]


def rings_by_verilator(jobs: Sequence[RingJob]) -> list[RingSeen]:
    """The runs in Verilator."""
    rings = [job.design.build() for job in jobs]
    probes = {str((k, n)): level for k, ring in enumerate(rings) for n, level in enumerate(levels_of(ring))}
    probes |= {
        str((k, "waits", n)): stage.waits for k, ring in enumerate(rings) for n, stage in enumerate(stages_of(ring))
    }
    built = verilator.build(RingsSideBySide(rings), probes=probes, optimize="-O0")  # built for one short run
    fed = {
        f"steps_{k}": Feed(_words(job), at=np.arange(len(job.steps)) * job.design.step_every)
        for k, job in enumerate(jobs)
    }
    run = built.run(fed, quiet=max(ring.silence for ring in rings), idle="idle")

    def seen(k: int, job: RingJob) -> RingSeen:
        idle, taken = run.probes[f"idle_{k}"], run.taken[f"steps_{k}"]
        assert len(taken) == len(job.steps) and int(idle.words[-1]), "it stands still"
        end = int(idle.cycles[-1])
        found = run.outputs[f"results_{k}"]
        words = found.words.reshape(-1, 1 if found.words.ndim == 1 else found.words.shape[1]).tolist()
        results = [sum(word << 64 * n for n, word in enumerate(own)) for own in words]
        count = len(levels_of(rings[k]))
        return RingSeen(
            [(job.design.layout.places(word), int(cycle)) for word, cycle in zip(results, found.cycles, strict=True)],
            taken.tolist(),
            end,
            [
                int(run.probes[str((k, "waits", n))].each_cycle(run.cycles)[:end].sum())
                for n in range(len(stages_of(rings[k])))
            ],
            int(run.probes[f"dropped_{k}"].words[-1]),
            [run.probes[str((k, n))].each_cycle(run.cycles)[: end + 1].tolist() for n in range(count)],
        )

    return [seen(k, job) for k, job in enumerate(jobs)]


def _words(job: RingJob) -> Any:
    """What a ring is fed, as words of 64 bits, the lowest first."""
    count = -(-job.design.layout.step.size // 64)
    words = np.array([[step >> 64 * n & (1 << 64) - 1 for n in range(count)] for step in job.steps], np.uint64)
    return words.reshape(-1) if count == 1 else words.reshape(-1, count)


def ring_by_amaranth(job: RingJob) -> RingSeen:
    """The run in Amaranth's own simulator."""
    ring, steps, every = job.design.build(), job.steps, job.design.step_every
    levels = levels_of(ring)
    results: list[tuple[tuple[int, ...], int]] = []
    taken: list[int] = []
    seen: list[int] = []
    waited = [0] * len(stages_of(ring))
    every_level = Cat(levels)
    dropped = 0

    async def drive(ctx: Any) -> None:
        nonlocal dropped
        cycle = moved = 0
        ctx.set(ring.results.ready, 1)
        while cycle - moved < STANDSTILL:
            offers = len(taken) < len(steps) and cycle >= len(taken) * every
            ctx.set(ring.steps.valid, offers)
            if offers:
                ctx.set(ring.steps.payload, steps[len(taken)])
            if offers and ctx.get(ring.steps.ready):
                taken.append(cycle)
                moved = cycle
            if ctx.get(ring.results.valid):
                results.append((job.design.layout.places(ctx.get(ring.results.payload)), cycle))
                moved = cycle
            seen.append(ctx.get(every_level))
            if not offers and len(taken) == len(steps) and ctx.get(ring.idle):
                dropped = ctx.get(ring.dropped)
                return
            waits = ctx.get(ring.waits)
            for n in range(len(waited)):
                waited[n] += waits >> n & 1
            await ctx.tick()
            cycle += 1
        raise AssertionError("it stands still")

    simulator = Simulator(ring)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    found, place = [], 0
    for level in levels:
        found.append([word >> place & (1 << len(level)) - 1 for word in seen])
        place += len(level)
    return RingSeen(results, taken, len(seen) - 1, waited, dropped, found)


def ring_by_model(job: RingJob) -> RingSeen:
    """The run in the fast model, with the levels of every cycle."""
    run = job.modelled(levels=True)
    assert run.levels is not None
    assert run.highest.tolist() == run.levels.max(axis=1).tolist()
    return RingSeen(
        [(tuple(places), cycle) for places, cycle in zip(run.results.tolist(), run.cycles.tolist(), strict=True)],
        run.taken.tolist(),
        run.idle,
        run.waited.tolist(),
        run.dropped,
        run.levels.tolist(),
    )


def ring_differences(expected: RingSeen, found: RingSeen) -> list[str]:
    """Where two runs differ first, in words."""
    lines = []
    for field in fields(RingSeen):
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
