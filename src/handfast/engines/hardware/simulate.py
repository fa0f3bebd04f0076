"""Running a circuit: steps in, results with their cycles out, on Amaranth's own simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.sim import Simulator

from handfast.engines.hardware.top import JoinCircuit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a circuit.

    Attributes:
        results: Every result as a number.
        cycles: In which cycle each came out; the first step is offered in cycle 0.
    """

    results: list[int]
    cycles: list[int]


Simulate = Callable[[JoinCircuit, Sequence[int]], Outcome]  # runs a circuit from reset until it has given all


def by_amaranth(top: JoinCircuit, steps: Sequence[int]) -> Outcome:
    """Run the circuit on Amaranth's own simulator: slow, but there is nothing to build."""
    found = Outcome([], [])

    async def drive(ctx: Any) -> None:
        cycle = fed = 0
        ctx.set(top.results.ready, 1)
        while fed < len(steps) or not ctx.get(top.idle):
            ctx.set(top.steps.valid, fed < len(steps))
            if fed < len(steps):
                ctx.set(top.steps.payload, steps[fed])
                fed += ctx.get(top.steps.ready)
            if ctx.get(top.results.valid):
                found.results.append(ctx.get(top.results.payload))
                found.cycles.append(cycle)
            await ctx.tick()
            cycle += 1

    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    return found
