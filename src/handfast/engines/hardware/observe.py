"""A circuit watched while it runs: how long it took, how full its buffers got, how long its cores were suspended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from handfast.engines.hardware import verilator
from handfast.engines.hardware.options import AMARANTH, VERILATOR
from handfast.engines.hardware.simulate import AnyCircuit, Outcome, by_amaranth, outcome_of, run_verilated
from handfast.engines.hardware.simulator import Seen
from handfast.errors import UnsupportedError

Progress = Callable[[int], None]  # is told now and then how many cycles have passed


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a run.

    Attributes:
        outcome: The results.
        cycles: From the first step until every result has come out and no core works any more.
        levels: The most words that each FIFO held, in the order of the circuit's `fifos`.
        suspended: Cycles in which admission control let all cores stand still; of a ring, cycles of stages that stood
            still because what they had found had nowhere to go.
    """

    outcome: Outcome
    cycles: int
    levels: tuple[int, ...]
    suspended: int


def observe(
    top: AnyCircuit,
    steps: Sequence[int],
    *,
    simulator: str,
    every: int = 0,
    waveform: Path | None = None,
    progress: Progress | None = None,
) -> Observation:
    """Run a circuit and watch it.

    Args:
        top: The circuit.
        steps: What it is fed.
        simulator: What it runs on.
        every: How many cycles are between the steps; see `Simulate`.
        waveform: A VCD to write.
        progress: Is told how far it has come.
    """
    if simulator not in _OBSERVE:
        known = " or ".join(map(repr, _OBSERVE))
        raise UnsupportedError(f"A circuit cannot be watched on simulator={simulator!r}; use {known}")
    return _OBSERVE[simulator](top, steps, every, waveform, progress or (lambda _: None))


def _on_amaranth(
    top: AnyCircuit, steps: Sequence[int], every: int, waveform: Path | None, progress: Progress
) -> Observation:
    highest = [0] * len(top.fifos)
    cycles = suspended = 0

    def look(ctx: Any) -> None:
        nonlocal cycles, suspended
        suspended += int(ctx.get(top.standing)).bit_count()
        for place, fifo in enumerate(top.fifos):
            highest[place] = max(highest[place], ctx.get(fifo.level))
        cycles += 1
        if cycles % _TURN == 0:
            progress(cycles)

    outcome = by_amaranth(top, steps, every=every, look=look, waveform=waveform)
    return Observation(outcome, cycles, tuple(highest), suspended)


def _on_verilator(
    top: AnyCircuit, steps: Sequence[int], every: int, waveform: Path | None, progress: Progress
) -> Observation:
    levels = {f"level {place}": fifo.level for place, fifo in enumerate(top.fifos)}
    built = verilator.build(top, probes={"standing": top.standing} | levels, waveform=waveform is not None)
    run = run_verilated(built, top, steps, every=every, waveform=waveform, progress=progress)
    cycles = int(run.probes["idle"].cycles[-1])  # idle for good
    highest = tuple(int(run.probes[name].words.max()) for name in levels)
    return Observation(outcome_of(run), cycles, highest, _high(run.probes["standing"], cycles))


def _high(flag: Seen, cycles: int) -> int:
    """In how many of the first cycles flags were 1, all together; they are recorded when they change."""
    ends = np.append(flag.cycles[1:], np.uint64(cycles))
    lasted = np.minimum(ends, cycles) - np.minimum(flag.cycles, cycles)
    return int((lasted * np.bitwise_count(flag.words)).sum())


_TURN = 1_000  # cycles of Amaranth's simulator between two reports
_OBSERVE: dict[str, Callable[[AnyCircuit, Sequence[int], int, Path | None, Progress], Observation]] = {
    AMARANTH: _on_amaranth,
    VERILATOR: _on_verilator,
}
