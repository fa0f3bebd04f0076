"""`handfast sweep --streams`: grids of rings and of lines with a stash, as of chains; a grid says which it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.sweep import here, picture
from handfast.cli.sweep.grid import Grid
from handfast.cli.sweep.kinds import CHAINS, RINGS, kind_of, read_grid
from handfast.cli.sweep.ring_grid import RingConfiguration, RingGrid
from handfast.cli.sweep.ring_measure import best_rings, measure_ring
from handfast.engines.hardware.circular.workload import RingStreams
from handfast.engines.hardware.model.circular import run
from handfast.errors import SpecError

RINGS_OF = ["--streams", "3,4", "--window", "32", "--match-probability", "0.001,0.02"]
LINES = """
streams = 3
window = 16
algorithm = ["circular", "stashed"]
pattern = "one key"
stash_size = [4, 64]
turn = ["round_robin", "highest"]
"""


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["sweep", *arguments])


def rows(out: Path) -> list[dict[str, Any]]:
    """What was written, but for how long it took."""
    found = pq.read_table(out / "rings").drop_columns(["seconds"]).to_pylist()
    return sorted(found, key=lambda row: tuple(map(str, row.values())))


def test_a_sweep_of_rings_writes_every_row_a_picture_and_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = invoke(*RINGS_OF, "--engine", "local", "--out", str(tmp_path), "--comparisons", "1,4")
    assert 0 == ran.exit_code, ran.output
    assert 8 == len(rows(tmp_path))
    assert (tmp_path / "sweep.png").stat().st_size > 1000
    assert "8 configurations\n" in ran.output
    best = best_rings(rows(tmp_path))
    assert [(3, 0.001), (3, 0.02), (4, 0.001), (4, 0.02)] == [
        (own["streams"], own["match_probability"]) for own in best
    ]
    assert all(4 == own["comparisons"] for own in best)  # four at a time are always faster
    shown = ran.stdout.partition(
        "for each input the circuit with the fewest cycles:\n windows     mp        keys   circuit  at once "
    )[2]
    assert all(f"{own['cycles']:,}" in shown for own in best)

    ran_now: list[int] = []
    measured = here.measured
    monkeypatch.setattr(here, "measured", lambda own: ran_now.append(own.comparisons) or measured(own))
    before = rows(tmp_path)
    ran = invoke(*RINGS_OF, "--engine", "local", "--out", str(tmp_path), "--comparisons", "1,2,4")
    assert 0 == ran.exit_code, ran.output
    assert "12 configurations, 8 of them already in" in ran.output
    assert [2] * 4 == ran_now
    assert all(row in rows(tmp_path) for row in before)


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_a_sweep_of_rings_on_spark_writes_the_same_rows(tmp_path: Path) -> None:
    for engine in ("spark", "local"):
        ran = invoke(*RINGS_OF, "--engine", engine, "--out", str(tmp_path / engine))
        assert 0 == ran.exit_code, ran.output
    assert rows(tmp_path / "spark") == rows(tmp_path / "local")


def test_a_row_has_what_the_model_says() -> None:
    (made,) = RingGrid(streams=(4,), window=(16,), match_probability=(0.05,), tuples=(200,)).configurations
    row = measure_ring(made)
    streams = RingStreams(4, 16, 0.05, 200)
    ran = run(made.shape, streams.entering(), streams.lists())
    assert (len(ran.results), ran.idle, int(ran.scans.sum())) == (row["results"], row["cycles"], row["scans"])
    assert row["results"] > 0 and 0 < row["busy"] <= 1


def test_what_an_algorithm_has_no_part_for_is_not_varied(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(LINES)
    grid = read_grid(tmp_path / "grid.toml", {"match_probability": "0.01"})
    assert isinstance(grid, RingGrid)
    made = [(own.algorithm, own.turn, own.stash_size) for own in grid.configurations]
    rings = [("circular", "round_robin", 0), ("circular", "highest", 0)]
    assert sorted([*rings, ("stashed", "", 4), ("stashed", "", 64)]) == sorted(made)
    assert len({own.name for own in grid.configurations}) == len(made)
    found = [measure_ring(own) for own in grid.configurations]
    assert 1 == len({row["results"] for row in found})  # the input is one, and every circuit is exact
    assert 1 == len(best_rings(found))


@pytest.mark.parametrize(
    "options",
    [
        {"match_probability": "0.01"},
        {"match_probability": "0.001,0.01"},
        {"match_probability": "0.01", "window": "8,16"},
        {"match_probability": "0.01", "turn": "round_robin,highest"},
    ],
)
def test_every_grid_of_rings_has_its_picture(options: dict[str, str], tmp_path: Path) -> None:
    grid = read_grid(None, {"streams": "3", "window": "16", "tuples": "96"} | options)
    found = [measure_ring(own) for own in grid.configurations if isinstance(own, RingConfiguration)]
    picture.draw(tmp_path / "sweep.png", found, grid.varied, RINGS.takes)
    assert (tmp_path / "sweep.png").stat().st_size > 1000


def test_a_grid_is_of_rings_where_it_says_how_many_streams_there_are() -> None:
    assert kind_of(read_grid(None, {"streams": "3", "cores": None})) is RINGS
    assert kind_of(read_grid(None, {"streams": None, "cores": "4"})) is CHAINS
    assert isinstance(read_grid(None, {}), Grid)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streams": "2"}, "The grid's streams must be a whole number from 3 to 8, not 2"),
        ({"streams": "3", "cores": "4"}, "The grid has 'cores', which is no parameter of a grid"),
        ({"window": "64"}, "The grid has 'window', which is no parameter of a grid"),
        (
            {"streams": "3", "match_probability": "0"},
            "The grid's match_probability must be a number above 0 and up to 1",
        ),
        ({"streams": "3", "network_buffer": "3"}, "The grid's network_buffer must be more than its margin=3, not 3"),
        ({"streams": "3", "algorithm": "stashed"}, "The grid's pattern must be 'one key' for algorithm='stashed'"),
        (
            {"streams": "8", "match_probability": "0.1"},
            "With windows of 1,024 rows and a match probability of 0.1, 32,768",
        ),
        ({"streams": "3", "window": "1000000000"}, "The model has room for 4,194,304 rows of each stream, not for"),
        ({"streams": "3", "match_probability": "1e-30"}, "A match probability is 1e-18 at least, not 1e-30"),
        ({"streams": "3", "stage_buffer": "0"}, "The grid's stage_buffer must be a whole number from 1 on"),
    ],
)
def test_what_is_asked_wrongly_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        read_grid(None, options)
    assert str(raised.value).startswith(message)
