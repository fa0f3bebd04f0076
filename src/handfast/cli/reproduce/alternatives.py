"""What each undocumented choice would give otherwise, as rows of tables."""

from __future__ import annotations

from handfast.cli.reproduce import printed
from handfast.cli.reproduce.circuits import OF_RING, OF_TREE
from handfast.cli.reproduce.experiments import Evaluation

Row = tuple[str, ...]


def tree_rows(made: Evaluation) -> list[Row]:
    """The baseline's choices: cycles by the slots of every FIFO, with the difference from what is printed."""
    rows: list[Row] = []
    for choice in OF_TREE:
        for number, option in enumerate(choice.options):
            cycles = {size: made.cycles(job) for size, job in made.tree_jobs(option).items()}
            rows.append((*_heads(number, choice.name, choice.text), option.says, *_against_printed(made, cycles)))
    flushed = {size: made.cycles(job) for size, job in made.tree_jobs(OF_TREE[0].chosen).items()}
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
                    f"{cost.cycles:,}",
                    f"{cost.cycles / cost.results:.4f}",
                )
            )
    return rows


def stream_rows(made: Evaluation) -> list[Row]:
    """What the thesis leaves open about its inputs."""
    cycles: dict[str, list[str]] = {}
    for name, job in made.input_alternatives():
        cycles.setdefault(name, []).append(f"{made.cycles(job):,}")
    return [(name, *own) for name, own in cycles.items()]


def _heads(number: int, name: str, text: str) -> tuple[str, str]:
    """The name of a choice and what the text says, in its first line alone."""
    return (name, text) if number == 0 else ("", "")


def _against_printed(made: Evaluation, cycles: dict[int, int]) -> list[str]:
    if not made.scale.is_printed:
        return [f"{own:,}" for own in cycles.values()]
    return [f"{own:,} ({own / printed.CYCLES[size] - 1:+.2%})" for size, own in cycles.items()]
