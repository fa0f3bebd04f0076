"""What sweeps are of: chains of cores for two streams, rings and lines for more; how rows are kept and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from handfast.cli.sweep.asked import read_asked
from handfast.cli.sweep.best import HEADINGS, Row, best, cells
from handfast.cli.sweep.grid import Configuration, Grid
from handfast.cli.sweep.measure import SCHEMA, measure
from handfast.cli.sweep.ring_grid import RingConfiguration, RingGrid
from handfast.cli.sweep.ring_measure import RING_HEADINGS, RING_SCHEMA, best_rings, measure_ring, ring_cells

AnyConfiguration = Configuration | RingConfiguration
_OF_RINGS = ("streams", "algorithm")  # a grid that says one of these is one of rings


@dataclass(frozen=True)
class Kind:
    """A kind of circuit.

    Attributes:
        runs: The folder for its rows.
        schema: Of a row.
        headings, best, cells: Of the table of the best circuits.
        takes: What a circuit takes in 1,000 cycles, which the picture shows.
    """

    runs: str
    schema: pa.Schema
    headings: Sequence[str]
    best: Callable[[Iterable[Row]], list[dict[str, Any]]]
    cells: Callable[[Row], tuple[str, ...]]
    takes: str


CHAINS = Kind("runs", SCHEMA, HEADINGS, best, cells, "tuples of each stream")
RINGS = Kind("rings", RING_SCHEMA, RING_HEADINGS, best_rings, ring_cells, "tuples of all streams")


def read_grid(path: Path | None, options: Mapping[str, str | None]) -> Grid | RingGrid:
    """The grid of a file and of options, of one kind or the other: rings where it says how many streams there are."""
    asked = read_asked(path, options)
    where = str(path) if path is not None else "The grid"
    return (RingGrid if any(name in asked for name in _OF_RINGS) else Grid).of(asked, where)


def kind_of(grid: Grid | RingGrid) -> Kind:
    """What a grid is of."""
    return RINGS if isinstance(grid, RingGrid) else CHAINS


def kind_named(runs: str) -> Kind:
    """The kind whose rows are in this folder."""
    return next(kind for kind in (CHAINS, RINGS) if kind.runs == runs)


def measured(configuration: AnyConfiguration) -> dict[str, Any]:
    """Run a configuration; the row of what came out."""
    return measure_ring(configuration) if isinstance(configuration, RingConfiguration) else measure(configuration)
