"""`handfast sweep`: on threads and on Spark the same rows, and what is there is not run again, whatever happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from handfast.cli import app
from handfast.cli.sweep import here
from handfast.engines.spark import embedded

GRID = ["--cores", "2,4", "--segment", "2", "--match-rate", "0.5,1"]
COUNT = 12  # two numbers of cores, three networks, two match rates


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["sweep", *arguments])


def rows(out: Path) -> list[dict[str, Any]]:
    """What was written, but for how long it took."""
    found = pq.read_table(out / "runs").drop_columns(["seconds"]).to_pylist()
    return sorted(found, key=lambda row: tuple(map(str, row.values())))


def test_a_sweep_writes_every_row_a_picture_and_the_best(tmp_path: Path) -> None:
    ran = invoke(*GRID, "--engine", "local", "--out", str(tmp_path))
    assert 0 == ran.exit_code, ran.output
    assert COUNT == len(rows(tmp_path))
    assert (tmp_path / "sweep.png").stat().st_size > 1000
    assert f"{COUNT} configurations\n" in ran.output
    assert f"{COUNT} of {COUNT} runs" in ran.output
    assert "for each input the circuit with the fewest cycles:\n tuples  match   input  cores " in ran.output
    for row in rows(tmp_path):
        assert (row["match_rate"] * row["tuples"]) ** 2 == row["results"]


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 == invoke(*GRID, "--engine", "local", "--out", str(tmp_path), "--match-rate", "1").exit_code
    before = rows(tmp_path)
    ran_now: list[float] = []
    measured = here.measured
    monkeypatch.setattr(here, "measured", lambda own: ran_now.append(own.match_rate) or measured(own))
    ran = invoke(*GRID, "--engine", "local", "--out", str(tmp_path))
    assert 0 == ran.exit_code, ran.output
    assert f"{COUNT} configurations, 6 of them already in" in ran.output
    assert [0.5] * 6 == ran_now
    assert all(row in rows(tmp_path) for row in before)


KILLED = """
import os, sys
from handfast.cli import app
replace, left = os.replace, [3]
def killed_at_the_fourth(*paths):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), 9)
    replace(*paths)
os.replace = killed_at_the_fourth
app()
"""


def test_a_sweep_that_was_killed_goes_on_and_nothing_half_is_read(tmp_path: Path) -> None:
    out = ["--engine", "local", "--workers", "1", "--out", str(tmp_path)]
    killed = subprocess.run([sys.executable, "-c", KILLED, "sweep", *GRID, *out], capture_output=True, check=False)
    assert -9 == killed.returncode, killed.stderr
    assert 3 == len(rows(tmp_path))
    assert 4 == len(list((tmp_path / "runs").iterdir()))  # the fourth is written, but is not called a row yet
    ran = invoke(*GRID, *out)
    assert f"{COUNT} configurations, 3 of them already in" in ran.output
    assert COUNT == len(rows(tmp_path)) == len(list((tmp_path / "runs").iterdir()))


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_spark_writes_the_rows_that_threads_write(tmp_path: Path) -> None:
    for engine in ("local", "spark"):
        ran = invoke(*GRID, "--engine", engine, "--out", str(tmp_path / engine))
        assert 0 == ran.exit_code, ran.output
    assert rows(tmp_path / "local") == rows(tmp_path / "spark")


@pytest.mark.spark
def test_each_configuration_is_a_task_of_its_own(spark: Any) -> None:
    parts = spark.range(0, 7, 1, 7).mapInArrow(lambda batches: iter([next(batches)]), "id long").rdd.glom().collect()
    assert [[n] for n in range(7)] == [[row.id for row in part] for part in parts]


def test_without_pyspark_the_extra_is_named_and_the_way_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_is_there", lambda package: False)
    ran = invoke(*GRID, "--out", str(tmp_path))
    assert 1 == ran.exit_code
    said = "handfast: A sweep on Spark (--engine local does without it) needs the 'spark' extra (pyspark is missing)"
    assert ran.stderr.startswith(said)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "abacus"), "A sweep's engine is one of 'spark', 'local', not 'abacus'"),
        (("--engine", "local", "--workers", "0"), "A sweep runs on 1 to 1,024 cores, not 0"),
        (("--cores", "none"), "The grid's cores must be a whole number from 1 on, not 'none'"),
        (("grid.toml",), "There is no file grid.toml"),
    ],
)
def test_what_is_asked_wrongly_is_named(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ran = invoke(*arguments, "--out", str(tmp_path / "out"))
    assert (2, f"handfast: {message}\n") == (ran.exit_code, ran.stderr)
    assert not (tmp_path / "out").exists()
