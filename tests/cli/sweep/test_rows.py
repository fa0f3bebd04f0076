"""The rows of a sweep: one configuration's, where they are kept, the best of them, and their picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from handfast.cli.sweep import picture
from handfast.cli.sweep.best import HEADINGS, best, cells, per_thousand
from handfast.cli.sweep.folder import SweepFolder
from handfast.cli.sweep.grid import Grid
from handfast.cli.sweep.measure import SCHEMA, measure
from handfast.engines.hardware.layout import JoinLayout, TupleLayout
from handfast.engines.hardware.model.circuit import run
from handfast.errors import SpecError

SMALL = Grid(cores=(4,), segment=(2,), match_rate=(0.5, 1.0))


def test_a_row_has_what_was_asked_and_what_the_model_says() -> None:
    layout = JoinLayout(TupleLayout((), 4), TupleLayout((), 4))
    for made in SMALL.configurations:
        row = measure(made)
        ran = run(made.shape, made.streams.steps(made.shape.flush), made.streams.pairs())
        assert set(SCHEMA.names) == row.keys()
        assert (made.cores, made.network, 8) == (row["cores"], row["network"], row["window"])
        assert (made.streams.results, ran.idle, ran.suspended) == (row["results"], row["cycles"], row["suspended"])
        assert row["highest"] == ran.highest.max()
        assert sum(fifo.depth for fifo in made.shape.build(layout, lambda m, r, s: 1).fifos) == row["slots"]


# --- the folder -----------------------------------------------------------------------------------------------------


def test_a_row_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "deep" / "out")
    made = SMALL.configurations
    rows = [measure(own) for own in made]
    with folder.taken():
        for own, row in zip(made, rows, strict=True):
            assert not folder.has(own)
            folder.write(own, row)
            assert folder.has(own)
    assert rows == folder.rows(made)
    assert len(made) == pq.read_table(folder.runs).num_rows  # the folder is a dataset


def test_what_is_stopped_while_it_is_written_is_not_there_and_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, made = SweepFolder(tmp_path), SMALL.configurations[0]

    def stop(*paths: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with folder.taken(), pytest.raises(KeyboardInterrupt):
        folder.write(made, measure(made))
    assert not folder.has(made)
    assert 1 == len(list(folder.runs.iterdir()))
    with folder.taken():
        assert [] == list(folder.runs.iterdir())


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        SweepFolder(tmp_path).taken(),
        pytest.raises(SpecError, match="Another sweep writes to"),
        SweepFolder(tmp_path).taken(),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with (
        pytest.raises(SpecError, match="The folder /proc/nowhere cannot be made"),
        SweepFolder(Path("/proc/nowhere")).taken(),
    ):
        pass


# --- the best, and the picture --------------------------------------------------------------------------------------


def row(**changes: Any) -> dict[str, Any]:
    """A row of a small circuit."""
    plain = {"cores": 4, "segment": 8, "comparisons": 1, "scan": "immediate", "network": "tree", "core_buffer": 8}
    plain |= {"network_buffer": 8, "margin": 3, "merger": "states", "cycles_per_result": 1, "seed": 1, "window": 32}
    plain |= {"tuples": 32, "match_rate": 0.5, "pattern": "random", "slots": 56, "results": 256, "cycles": 1000}
    return plain | {"suspended": 100} | changes


def test_the_best_has_the_fewest_cycles_and_among_equals_the_fewest_slots() -> None:
    rows = [
        row(cycles=900, cores=8, slots=100),
        row(cycles=900, cores=16, slots=90),
        row(cycles=950),
        row(match_rate=1.0, cycles=5000),
    ]
    assert [(0.5, 16), (1.0, 4)] == [(own["match_rate"], own["cores"]) for own in best(rows)]


def test_seeds_are_one_circuit_with_the_median() -> None:
    rows = [row(seed=seed, cycles=cycles) for seed, cycles in enumerate((100, 700, 800))] + [row(cores=8, cycles=750)]
    (found,) = best(rows)
    assert (4, 700) == (found["cores"], found["cycles"])


def test_a_row_of_the_table_has_a_cell_for_every_heading() -> None:
    assert len(HEADINGS) == len(cells(row()))
    assert ("32", "50%", "random", "4 × 8", "tree", "8 + 8", "1,000", "10%", "56") == cells(row())
    assert "8" == cells(row(network="adaptive", core_buffer=0))[5]
    assert "4 × 8, eager, 2 at a time" == cells(row(scan="eager", comparisons=2))[3]
    assert 32.0 == per_thousand(row())


GRIDS = {
    "one configuration": Grid(match_rate=(1.0,), network=("tree",)),
    "match rates and networks": Grid(match_rate=(0.2, 1.0)),
    "words alone": Grid(network=("tree", "adaptive"), pattern=("random", "burst"), match_rate=(0.5,)),
    "buffers along the axis": Grid(network_buffer=(4, 8, 16), match_rate=(1.0,), network=("tree",)),
    "panels, bands and seeds": Grid(
        cores=(4, 8), network_buffer=(4, 8, 16, 32), margin=(1, 2, 3), seed=(1, 2), match_rate=(0.5, 1.0)
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_the_picture_shows_every_grid(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    grid = GRIDS[name]
    rows = [
        {
            **row(),
            **{own: getattr(made, own) for own in ("cores", "network", "network_buffer", "margin", "pattern", "seed")},
            "match_rate": made.match_rate,
            "cycles": round(100 * made.cores * (1 + made.match_rate) + 10 * made.margin + made.seed),
        }
        for made in grid.configurations
    ]
    picture.draw(tmp_path / "sweep.png", rows, grid.varied)
    pixels = imread(tmp_path / "sweep.png")
    inked = (pixels[..., :3] < 0.9).any(axis=2)
    assert 600 == pixels.shape[0]
    assert inked.mean() > 0.005
    assert len(np.unique((pixels[..., :3].sum(axis=2) * 255).astype(int))) > 50
