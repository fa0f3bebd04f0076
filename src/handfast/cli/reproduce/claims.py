"""What the thesis prints, held against what the circuits do here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log

from handfast.cli.reproduce import printed
from handfast.cli.reproduce.circuits import baseline, by_level, fifos, proposed, slots, uniform
from handfast.cli.reproduce.experiments import Evaluation, Job
from handfast.engines.hardware.options import ADAPTIVE, TREE

PREDICTED, HOLDS, FAILS, NOT_COMPARED = "prediction", "✔ holds", "✘ does not hold", "—"
_USED = "; used to choose"
CLOSE = 0.0002  # how near the figures must be that the choices were fixed from


@dataclass(frozen=True, slots=True)
class Claim:
    """A line of the comparison.

    Attributes:
        what: The figure.
        where: Its place in the thesis.
        printed: As the thesis prints it; empty where it prints none.
        ours: The same here.
        difference: Ours against the printed number, as a part of it; None where one of them is no number.
        verdict: What the comparison is worth.
    """

    what: str
    where: str
    printed: str
    ours: str
    difference: float | None
    verdict: str


def claims(made: Evaluation) -> list[Claim]:
    """Every number that the thesis prints about cycles and buffers."""
    of_cycles = [*_cycles(made), _constant(made), *_ratios(made), _crossing(made), _overhead(made)]
    return [*of_cycles, *_buffers(made), *_rams()]


def over_baseline(made: Evaluation) -> float:
    """How much faster the proposed circuit is than the baseline where all matches."""
    tree, ring = (made.cycles(made.random(shape, 1.0)[0]) for shape in (made.tree, made.ring))
    return tree / ring


def over_nested_loop(made: Evaluation) -> tuple[float, float]:
    """How much faster the proposed circuit is than the nested loop at its best, and at which match rate that is."""
    return max((estimate(made) / made.spread(made.random(made.ring, rate)).median, rate) for rate in made.scale.rates)


def crossing(made: Evaluation) -> float | None:
    """From which match rate on the nested loop is faster than the baseline; None if it never is.

    Between two rates that were run, the logarithm of the cycles is taken as a straight line, as it is drawn.
    """
    points = [(rate, made.spread(made.random(made.tree, rate)).median) for rate in made.scale.rates]
    for (low, fewer), (high, more) in pairwise(points):
        if fewer <= estimate(made) < more:
            return low + (high - low) * log(estimate(made) / fewer) / log(more / fewer)
    return None


def overhead(made: Evaluation) -> float:
    """How many more cycles than results the proposed circuit takes where all matches, as a part of the results."""
    job = made.random(made.ring, 1.0)[0]
    return made.cycles(job) / made.costs[job].results - 1


def estimate(made: Evaluation) -> int:
    """The cycles of the nested loop as the thesis estimates them: one for each pair of tuples."""
    return made.scale.tuples**2


def _cycles(made: Evaluation) -> list[Claim]:
    found = []
    for size, wanted in printed.CYCLES.items():
        ours = made.cycles(Job(uniform(made.tree, size), made.everything()))
        difference = ours / wanted - 1 if made.scale.is_printed else None
        verdict = NOT_COMPARED
        if difference is not None:
            close = f"✔ within {CLOSE:.2%}" if abs(difference) <= CLOSE else FAILS
            verdict = close + _USED if size in printed.FIXED_FROM else PREDICTED
        what = f"cycles of the baseline at 100% match, FIFOs of {size}"
        found.append(Claim(what, "§5.1", f"{wanted:,}", f"{ours:,}", difference, verdict))
    return found


def _constant(made: Evaluation) -> Claim:
    sizes = [size for size in made.scale.buffers if size >= printed.CONSTANT_FROM]
    cycles = {made.cycles(Job(uniform(made.tree, size), made.everything())) for size in sizes}
    ours = f"from {min(cycles):,} to {max(cycles):,}" if len(cycles) > 1 else "unchanged"
    what = f"cycles with FIFOs of {printed.CONSTANT_FROM} and more"
    if len(sizes) < 2:  # of a quick run: one size is no comparison
        return Claim(what, "§5.1", "unchanged", "", None, NOT_COMPARED)
    return Claim(what, "§5.1", "unchanged", ours, None, HOLDS if len(cycles) == 1 else FAILS)


def _ratios(made: Evaluation) -> list[Claim]:
    base = over_baseline(made)
    loop, rate = over_nested_loop(made)
    at_least = made.scale.is_printed
    return [
        Claim(
            "throughput of the proposed circuit ÷ the baseline's at 100% match",
            "§6.3.3",
            f"more than {printed.OVER_BASELINE}",
            f"{base:.2f}",
            base / printed.OVER_BASELINE - 1 if at_least else None,
            (HOLDS if base >= printed.OVER_BASELINE else FAILS) + _USED if at_least else NOT_COMPARED,
        ),
        Claim(
            f"the same ÷ the nested loop's as the thesis estimates it, at its best ({rate:.0%} match)",
            "§6.3.3",
            f"up to {printed.OVER_NESTED_LOOP}",
            f"{loop:.2f}",
            loop / printed.OVER_NESTED_LOOP - 1 if at_least else None,
            (HOLDS if round(loop, 1) >= printed.OVER_NESTED_LOOP else FAILS) if at_least else NOT_COMPARED,
        ),
    ]


def _crossing(made: Evaluation) -> Claim:
    rate = crossing(made)
    verdict = NOT_COMPARED
    if made.scale.is_printed:
        verdict = (HOLDS if rate is not None and rate <= printed.CROSSING else FAILS) + _USED
    ours = f"below {rate:.1%}" if rate is not None else "at no rate that was run"
    what = "match rates at which the baseline is faster than the nested loop"
    return Claim(what, "§6.3.3", f"only below {printed.CROSSING:.0%}", ours, None, verdict)


def _overhead(made: Evaluation) -> Claim:
    what = "cycles of the proposed circuit at 100% match beyond one for each result"
    return Claim(what, "", "", f"{overhead(made):.2%}", None, NOT_COMPARED)


def _buffers(made: Evaluation) -> list[Claim]:
    if not made.scale.is_printed:  # a smaller tree has not all levels of the table
        return []
    found = []
    for name, buffers in printed.TABLE_5_1.items():
        ours = slots(by_level(made.tree, buffers))
        verdict = HOLDS if ours == buffers.total else FAILS
        what = f"slots of all FIFOs, {name}"
        found.append(Claim(what, "Table 5.1", f"{buffers.total:,}", f"{ours:,}", ours / buffers.total - 1, verdict))
    return found


def _rams() -> list[Claim]:
    cores = printed.BLOCK_RAM_CORES
    each = -(-printed.RESULT_BITS // printed.BLOCK_RAM_BITS)
    found = []
    for name, make in ((TREE, baseline), (ADAPTIVE, proposed)):
        wanted, ours = printed.BLOCK_RAMS[name], each * fifos(make(cores, printed.SEGMENT))
        found.append(
            Claim(
                f"block RAMs at {cores} cores, {name}: computed, not synthesised: {each} for each FIFO of "
                f"{printed.RESULT_BITS}-bit results",
                "§6.3.2",
                f"{wanted}",
                f"{ours}",
                ours / wanted - 1,
                HOLDS if ours == wanted else FAILS,
            )
        )
    return found
