"""What each undocumented choice would give otherwise, as rows of tables."""

from __future__ import annotations

from dataclasses import dataclass

from handfast.cli.reproduce import printed
from handfast.cli.reproduce.circuits import COMBINATIONS, OF_RING, OF_TREE, Option
from handfast.cli.reproduce.claims import estimate
from handfast.cli.reproduce.experiments import Cost, Evaluation

Row = tuple[str, ...]


def tree_rows(made: Evaluation) -> list[Row]:
    """The baseline's choices: cycles by the slots of every FIFO, with the difference from what is printed."""
    rows: list[Row] = []
    for choice in OF_TREE:
        for number, option in enumerate(choice.options):
            cycles = {size: made.cycles(job) for size, job in made.uniform_jobs([option]).items()}
            rows.append((*_heads(number, choice.name, choice.text), option.says, *_against_printed(made, cycles)))
    flushed = {size: made.cycles(job) for size, job in made.uniform_jobs([OF_TREE[0].chosen]).items()}
    rows.append(
        ("flush", "nothing", f"{made.tree.flush} empty steps behind the streams", *_against_printed(made, flushed))
    )
    short = {size: made.costs[made.unflushed(size)] for size in printed.CYCLES}
    given = next(iter(short.values())).results
    rows.append(
        (
            "",
            "",
            f"none: only {given:,} of {made.everything().results:,} results",
            *_against_printed(made, {size: cost.cycles for size, cost in short.items()}),
        )
    )
    return rows


@dataclass(frozen=True, slots=True)
class Combination:
    """One way to decide what the figures for FIFOs of 8 and 16 leave open, and what it gives.

    Attributes:
        cycles: By slots of every FIFO, where all matches.
        over_baseline: How much faster the proposed circuit is than the baseline, where all matches.
        over_nested_loop: The same of the baseline over the nested loop at the match rate where it must be slower.
    """

    options: tuple[Option, ...]
    cycles: dict[int, int]
    over_baseline: float
    over_nested_loop: float

    @property
    def is_possible(self) -> bool:
        """Whether it agrees with what is printed about the throughput [OGE §6.3.3]."""
        return self.over_baseline > printed.OVER_BASELINE and self.over_nested_loop < 1


def combinations(made: Evaluation) -> list[Combination]:
    """Every combination, the chosen one first."""
    ring = made.cycles(made.random(made.ring, 1.0)[0])
    found = []
    for options in COMBINATIONS:
        cycles = {size: made.cycles(job) for size, job in made.uniform_jobs(options).items()}
        all_match, some_match = map(made.cycles, made.baseline_jobs(options))
        found.append(Combination(options, cycles, all_match / ring, estimate(made) / some_match))
    return found


def combination_rows(made: Evaluation) -> list[Row]:
    """The combinations as rows; a mark says which of them agree with what is printed."""
    return [
        (
            *(option.says for option in own.options),
            *(f"{own.cycles[size]:,}" for size in printed.FIXED_FROM),
            f"{own.over_baseline:.2f}",
            f"{own.over_nested_loop:.2f}",
            ("✔" if own.is_possible else "") if made.scale.is_printed else "",
            *(f"{cycles:,}" for size, cycles in own.cycles.items() if size not in printed.FIXED_FROM),
        )
        for own in combinations(made)
    ]


def ring_rows(made: Evaluation) -> list[Row]:
    """The proposed circuit's choices."""
    rows: list[Row] = []
    for choice in OF_RING:
        for number, option in enumerate(choice.options):
            cost = made.costs[made.ring_job(option)]
            rows.append(
                (
                    *_heads(number, choice.name, choice.text),
                    option.says,
                    *_ring_figures(cost),
                )
            )
    return rows


def stream_rows(made: Evaluation) -> list[Row]:
    """What the thesis leaves open about its inputs."""
    cycles: dict[str, list[str]] = {}
    for name, job in made.input_alternatives():
        cycles.setdefault(name, []).append(f"{made.cycles(job):,}")
    return [(name, *own) for name, own in cycles.items()]


def _ring_figures(cost: Cost) -> tuple[str, str]:
    if not cost.ends:
        return "never ends", "a result circles above empty FIFOs"
    return f"{cost.cycles:,}", f"{cost.cycles / cost.results:.4f}"


def _heads(number: int, name: str, text: str) -> tuple[str, str]:
    """The name of a choice and what the text says, in its first line alone."""
    return (name, text) if number == 0 else ("", "")


def _against_printed(made: Evaluation, cycles: dict[int, int]) -> list[str]:
    if not made.scale.is_printed:
        return [f"{own:,}" for own in cycles.values()]
    return [f"{own:,} ({own / printed.CYCLES[size] - 1:+.3%})" for size, own in cycles.items()]
