"""Running a circuit: steps in, results with their cycles out, on Amaranth's own simulator or on Verilator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from amaranth.sim import Simulator
from numpy.typing import NDArray

from handfast.engines.hardware import verilator
from handfast.engines.hardware.circular.ring import RingCircuit
from handfast.engines.hardware.options import AMARANTH, VERILATOR
from handfast.engines.hardware.simulator import Feed, Run
from handfast.engines.hardware.simulator import Simulator as BuiltSimulator
from handfast.engines.hardware.stashed.line import LineCircuit
from handfast.engines.hardware.top import JoinCircuit
from handfast.errors import InternalError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a circuit.

    Attributes:
        results: Every result as a number.
        cycles: In which cycle each came out; the first step is offered in cycle 0.
        discarded: The numbers of the steps that admission control discarded.
        dropped: How many results it dropped.
    """

    results: list[int]
    cycles: list[int]
    discarded: list[int] = field(default_factory=list)
    dropped: int = 0


AnyCircuit = JoinCircuit | RingCircuit | LineCircuit


class Simulate(Protocol):
    """Runs a circuit from reset until it has given all.

    Step k is offered from cycle k · `every` on, until it is taken; with 0, as soon as the one before it was taken.
    """

    def __call__(self, top: AnyCircuit, steps: Sequence[int], *, every: int = 0) -> Outcome: ...


_WORD = 64  # bits in which Verilator's driver takes and gives numbers


def by_amaranth(
    top: AnyCircuit,
    steps: Sequence[int],
    *,
    every: int = 0,
    look: Callable[[Any], None] | None = None,
    waveform: Path | None = None,
) -> Outcome:
    """Run the circuit on Amaranth's own simulator: slow, but there is nothing to build.

    Args:
        top: The circuit.
        steps: What it is fed.
        every: How many cycles are between the steps; see `Simulate`.
        look: Is called in each cycle, with the simulator's context.
        waveform: A VCD to write.
    """
    found = Outcome([], [])
    dropped = 0

    async def drive(ctx: Any) -> None:
        nonlocal dropped
        cycle = fed = 0
        ctx.set(top.results.ready, 1)
        while fed < len(steps) or not ctx.get(top.idle):
            offers = fed < len(steps) and cycle >= fed * every
            ctx.set(top.steps.valid, offers)
            if offers:
                ctx.set(top.steps.payload, steps[fed])
                fed += ctx.get(top.steps.ready)
            if ctx.get(top.results.valid):
                found.results.append(ctx.get(top.results.payload))
                found.cycles.append(cycle)
            if look is not None:
                look(ctx)
            await ctx.tick()
            cycle += 1
            if ctx.get(top.discarded) > len(found.discarded):
                found.discarded.append(fed - 1)
        dropped = ctx.get(top.dropped)

    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    with nullcontext() if waveform is None else simulator.write_vcd(str(waveform)):
        simulator.run()
    return replace(found, dropped=dropped)


def by_verilator(top: AnyCircuit, steps: Sequence[int], *, every: int = 0) -> Outcome:
    """Run the circuit on Verilator: hundreds of times faster, once it has been built for this circuit."""
    return outcome_of(run_verilated(verilator.build(top), top, steps, every=every))


def run_verilated(built: BuiltSimulator, top: AnyCircuit, steps: Sequence[int], *, every: int = 0, **asked: Any) -> Run:
    """Run a built simulator of the circuit until it has given all; `asked` goes to its `run`."""
    fed = Feed(_in_words(steps, top.layout.step.size), at=np.arange(len(steps)) * every)
    run = built.run({"steps": fed}, quiet=top.silence, idle="idle", **asked)
    idle = run.probes["idle"].words
    if not run.finished or not idle.size or not int(idle[-1]):
        raise InternalError(f"The circuit stands still in cycle {run.cycles} before it has given every result")
    return run


def outcome_of(run: Run) -> Outcome:
    """What came out in a run on Verilator."""
    seen = run.outputs["results"]
    counted = run.probes["discarded"].cycles[1:]  # a step is counted in the cycle after it was offered
    return Outcome(
        results=_of_words(seen.words),
        cycles=[int(cycle) for cycle in seen.cycles],
        discarded=np.flatnonzero(np.isin(run.taken["steps"] + np.uint64(1), counted)).tolist(),
        dropped=int(run.probes["dropped"].words[-1]),
    )


SIMULATE: dict[str, Simulate] = {AMARANTH: by_amaranth, VERILATOR: by_verilator}


def _in_words(numbers: Sequence[int], bits: int) -> NDArray[np.uint64]:
    """Numbers of so many bits, each as words of 64 bits, the lowest first."""
    count = -(-bits // _WORD)
    words = [[number >> _WORD * k & (1 << _WORD) - 1 for k in range(count)] for number in numbers]
    array = np.array(words, np.uint64).reshape(len(numbers), count)
    return array[:, 0] if count == 1 else array


def _of_words(words: NDArray[np.uint64]) -> list[int]:
    rows = words.reshape(-1, 1 if words.ndim == 1 else words.shape[1]).tolist()
    return [sum(word << _WORD * k for k, word in enumerate(row)) for row in rows]
