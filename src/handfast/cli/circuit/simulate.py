"""`handfast simulate`: a pipeline's join run by its circuit, watched, and held against the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from handfast import api
from handfast.cli.circuit.files import written_whole
from handfast.cli.circuit.given import Given
from handfast.cli.circuit.options import Asked
from handfast.cli.screen import Screen
from handfast.engines.hardware.circular.job import RingJob
from handfast.engines.hardware.engine import Job
from handfast.engines.hardware.observe import Observation
from handfast.engines.hardware.options import DROP, MODEL, THROTTLE, TREE
from handfast.judge.difference import difference


def run(file: Path, circuit: Asked, *, vcd: Path | None, screen: Screen, progress: Screen) -> bool:
    """Run the circuit and show what it did; whether it found what the local engine finds."""
    with progress.stages() as begins:
        begins("reading the pipeline's rows")
        given = Given.read(file, circuit)
        with written_whole(vcd, "--vcd") if vcd is not None else nullcontext() as waveform:
            begins(f"running the circuit on {given.job.simulator}")
            seen = given.job.observed(waveform=waveform, progress=lambda cycles: begins(f"running: {cycles:,} cycles"))
        begins("joining on the local engine")
        lost = seen.outcome
        admitted = given.job.admitted(lost) if isinstance(given.job, Job) and lost.discarded else given.tables
        expected = api.join(admitted, given.spec)
        differs = difference(given.job.table(lost.results), expected)
    screen.say(f"join of {given.streams} in hardware")
    written = [] if vcd is None else [("waveform", str(vcd))]
    screen.list([("circuit", given.circuit), ("rows", given.rows), *_figures(given, seen), *written])
    equal = not differs
    if lost.dropped:  # what was dropped is missing, and nothing else
        missing = lost.dropped if isinstance(given.job, Job) else len(differs.missing)  # any number may have followed
        equal = len(differs.missing) == missing and not len(differs.extra)
    finds = f"the local engine finds {_found(given, len(expected), seen) if equal else 'something else'}"
    if equal and given.job.simulator == MODEL:  # a ✔ would claim more than was seen
        screen.say(f"{finds}; it must: the model takes what matches from the same kernels, and says when it comes out")
    else:
        screen.verdict(equal, finds)
    if not equal:
        screen.say(str(differs))
    return equal


def _found(given: Given, count: int, seen: Observation) -> str:
    """What the local engine finds where that is right."""
    matches = f"{count:,} match{'' if count == 1 else 'es'}"
    if seen.outcome.dropped:
        others = "as many others as were dropped" if isinstance(given.job, Job) else "others of what was dropped"
        return f"{matches}: these, and {others}"
    return f"the same {matches}" + (" of the rows that were not discarded" if seen.outcome.discarded else "")


def _figures(given: Given, seen: Observation) -> Iterator[tuple[str, str]]:
    tuples = sum(len(block) for block in given.job.blocks)
    results = len(seen.outcome.results)
    yield "simulator", given.job.simulator
    yield "matches", f"{results:,}"
    yield (
        "cycles",
        f"{seen.cycles:,}: {seen.cycles / tuples:.1f} for a tuple, {results / seen.cycles:.2f} results a cycle",
    )
    if isinstance(given.job, RingJob):
        yield from _of_ring(given.job, seen)
        return
    yield from _admission(given.job, given, seen)
    shape = given.job.design.shape
    behind = shape.inputs if shape.network == TREE else 0  # FIFOs that belong to cores and not to the network
    if behind:
        yield "core buffers", _fullest(seen.levels[:behind], shape.core_buffer)
    if len(seen.levels) > behind:
        yield "network", _fullest(seen.levels[behind:], given.job.design.options.network_buffer)


def _of_ring(job: RingJob, seen: Observation) -> Iterator[tuple[str, str]]:
    """How far the stages of a ring waited for each other."""
    shape = job.design.shape
    if shape.drops:
        yield "dropped", f"{seen.outcome.dropped:,} intermediates"
    yield "stood still", f"{seen.suspended / (seen.cycles * shape.stages):.0%} of all cycles of all stages"
    yield "network", _fullest(seen.levels, shape.network_buffer)


def _admission(job: Job, given: Given, seen: Observation) -> Iterator[tuple[str, str]]:
    """What admission control did."""
    kind = job.design.options.admission
    if kind == THROTTLE:
        lost = zip(given.spec.names, job.discarded(seen.outcome), job.blocks, strict=True)
        yield (
            "discarded",
            ", ".join(f"{len(places):,} of {len(block):,} rows of {name}" for name, places, block in lost),
        )
    elif kind == DROP:
        yield "dropped", f"{seen.outcome.dropped:,} results"
    else:
        yield "suspended", f"{seen.suspended:,} cycles, {seen.suspended / seen.cycles:.0%}"


def _fullest(levels: tuple[int, ...], depth: int) -> str:
    number = f"{len(levels)} buffer{'s' * (len(levels) > 1)}"
    return f"up to {max(levels)} of {depth} results in the fullest of {number}"
