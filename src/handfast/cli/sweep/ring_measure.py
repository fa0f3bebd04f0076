"""One ring or line of a sweep, run on the fast model: what is asked, the row of what came out, the best of many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from time import perf_counter
from typing import Any

import pyarrow as pa

from handfast.cli.reproduce.circular.experiments import RingJob, run_job
from handfast.cli.sweep.best import Row, fewest_cycles
from handfast.cli.sweep.ring_grid import RingConfiguration
from handfast.engines.hardware.options import HIGHEST, STASHED

RING_SCHEMA = pa.schema(
    [
        ("algorithm", pa.string()),
        ("streams", pa.int32()),
        ("window", pa.int64()),
        ("comparisons", pa.int32()),
        ("in_flight", pa.int32()),
        ("stage_buffer", pa.int32()),
        ("stash_size", pa.int64()),
        ("turn", pa.string()),
        ("network_buffer", pa.int32()),
        ("margin", pa.int32()),
        ("tuples", pa.int64()),
        ("match_probability", pa.float64()),
        ("pattern", pa.string()),
        ("seed", pa.int64()),
        ("results", pa.int64()),
        ("cycles", pa.int64()),  # until every result has come out
        ("busy", pa.float64()),  # the part of their cycles in which stages compare, until the last tuple entered
        ("waited", pa.float64()),  # the part in which what they have found has no room
        ("scans", pa.int64()),  # of all stages
        ("computed", pa.int64()),  # tuples for which pairs were computed again that the stash had lost
        ("seconds", pa.float64()),  # that the model took
    ]
)
RING_HEADINGS = ("windows", "mp", "keys", "circuit", "at once", "under way", "cycles", "compare")
_INPUT = ("streams", "window", "tuples", "match_probability", "pattern")
_CIRCUIT = (
    "algorithm",
    "comparisons",
    "in_flight",
    "stage_buffer",
    "stash_size",
    "turn",
    "network_buffer",
    "margin",
)
_FIGURES = ("cycles", "results", "busy", "waited")


def measure_ring(configuration: RingConfiguration) -> dict[str, Any]:
    """Run one configuration."""
    start = perf_counter()
    cost = run_job(RingJob(configuration.shape, configuration.input))
    return {
        **asdict(configuration),
        "results": cost.results,
        "cycles": cost.cycles,
        "busy": cost.utilisation,
        "waited": cost.waited,
        "scans": cost.scans,
        "computed": cost.computed,
        "seconds": perf_counter() - start,
    }


def best_rings(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """For each input the circuit with the fewest cycles; among equals, the one with the fewest slots of all kinds."""
    return fewest_cycles(rows, _INPUT, _CIRCUIT, _FIGURES, _slots)


def _slots(row: Row) -> int:
    return int(row["in_flight"] + row["stage_buffer"] + row["stash_size"] + row["network_buffer"])


def ring_cells(row: Row) -> tuple[str, ...]:
    """A row as text, as `RING_HEADINGS` say."""
    kept = f", {row['stash_size']:,} pairs" if row["algorithm"] == STASHED else ""
    kept += f", {HIGHEST}" if row["turn"] == HIGHEST else ""
    return (
        f"{row['streams']} × {row['window']:,}",
        f"{row['match_probability']:g}",
        row["pattern"],
        f"{row['algorithm']}{kept}",
        f"{row['comparisons']:,}",
        f"{row['in_flight']:,} + {row['stage_buffer']:,}",
        f"{row['cycles']:,.0f}",
        f"{row['busy']:.0%}",
    )
