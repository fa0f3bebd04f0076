"""The best circuit of a sweep for each input, as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from handfast.engines.hardware.options import IMMEDIATE

HEADINGS = ("tuples", "match", "input", "cores", "network", "buffers", "cycles", "suspended", "slots")
_INPUT = ("window", "tuples", "match_rate", "pattern")
_CIRCUIT = (
    "cores",
    "segment",
    "comparisons",
    "scan",
    "network",
    "core_buffer",
    "network_buffer",
    "margin",
    "merger",
    "cycles_per_result",
)
_FIGURES = ("cycles", "results", "suspended")

Row = Mapping[str, Any]


def best(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """For each window and input the circuit with the fewest cycles; among equals, the one with the fewest slots."""
    return fewest_cycles(rows, _INPUT, _CIRCUIT, _FIGURES, lambda row: int(row["slots"]))


def fewest_cycles(
    rows: Iterable[Row],
    input_: Sequence[str],
    circuit: Sequence[str],
    figures: Sequence[str],
    slots: Callable[[Row], int],
) -> list[dict[str, Any]]:
    """For each input the circuit with the fewest cycles; among equals, the one with the fewest slots.

    Of a circuit that ran with several seeds, each figure is the median.
    """
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Row]]] = {}
    for row in rows:
        circuits = found.setdefault(tuple(row[name] for name in input_), {})
        circuits.setdefault(tuple(row[name] for name in circuit), []).append(row)
    chosen = []
    for _, circuits in sorted(found.items()):
        medians = [
            {**own[0], **{name: statistics.median(row[name] for row in own) for name in figures}}
            for own in circuits.values()
        ]
        chosen.append(min(medians, key=lambda row: (row["cycles"], slots(row))))
    return chosen


def cells(row: Row) -> tuple[str, ...]:
    """A row as text, as `HEADINGS` say."""
    scan = "" if row["scan"] == IMMEDIATE else f", {row['scan']}"
    scan += f", {row['comparisons']:,} at a time" if row["comparisons"] > 1 else ""
    of_core = f"{row['core_buffer']:,} + " if row["core_buffer"] else ""
    return (
        f"{row['tuples']:,}",
        f"{row['match_rate']:.0%}",
        row["pattern"],
        f"{row['cores']:,} × {row['segment']:,}{scan}",
        row["network"],
        f"{of_core}{row['network_buffer']:,}",
        f"{row['cycles']:,.0f}",
        f"{row['suspended'] / row['cycles']:.0%}",
        f"{row['slots']:,}",
    )


def per_thousand(row: Row) -> float:
    """How many tuples of each stream a circuit takes in 1,000 cycles: at 1 MHz, in a millisecond."""
    return float(1000 * row["tuples"] / row["cycles"])
