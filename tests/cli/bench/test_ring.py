"""The model of the ring: work is shared by stages and CPUs, and what Python does is shared by nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import handfast as hf
from handfast.cli import app
from handfast.cli.bench.multiway import check
from handfast.cli.bench.ring import Feed, Machine, throughput
from handfast.engines.local.multiway.stages import Stages
from handfast.errors import SpecError

FREE = Machine(pair_seconds=1e-9, piece_seconds=0.0, row_seconds=0.0)
SCANS = Feed(window=1 << 14, rows=1 << 12, piece=1 << 9, partners=0.0)
ONE = 1 / (SCANS.window * FREE.pair_seconds)  # rows a second that one stage scans


@pytest.mark.parametrize("stages", [3, 5, 8])
@pytest.mark.parametrize("cpus", [1, 2, 8])
def test_n_stages_on_c_cpus_do_the_work_of_the_fewer(stages: int, cpus: int) -> None:
    at_once = min(stages, cpus)
    assert pytest.approx(at_once * ONE, rel=0.1) == throughput(FREE, stages, cpus, SCANS)


def test_python_and_the_driver_bound_what_any_number_of_stages_does() -> None:
    pieces = Machine(pair_seconds=1e-12, piece_seconds=1e-3, row_seconds=0.0)
    assert pytest.approx(SCANS.piece / 1e-3, rel=0.01) == throughput(pieces, 8, 8, SCANS)
    rows = Machine(pair_seconds=1e-15, piece_seconds=0.0, row_seconds=1e-6)
    assert pytest.approx(1e6, rel=0.01) == throughput(rows, 8, 8, SCANS)


def test_partners_are_looked_for_at_every_further_stage() -> None:
    many = Feed(SCANS.window, SCANS.rows, SCANS.piece, partners=1.0)
    assert pytest.approx(ONE / 4, rel=0.01) == throughput(FREE, 5, 1, many)  # each row is scanned for at four stages


@pytest.mark.parametrize(
    ("values", "said"), [((0.0, 0.0, 0.0), "A pair must cost"), ((1e-9, -1.0, 0.0), "A piece and a row must cost")]
)
def test_a_machine_checks_itself(values: tuple[float, float, float], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        Machine(*values)


def test_a_ring_has_stages_and_cpus() -> None:
    with pytest.raises(SpecError, match="number of stages must be at least 2, not 1"):
        throughput(FREE, 1, 1, SCANS)
    with pytest.raises(SpecError, match="number of CPUs must be at least 1, not 0"):
        throughput(FREE, 3, 0, SCANS)


def test_the_quick_run_prints_every_figure_and_draws_the_picture(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["bench", "multiway", "--quick", "--out", str(tmp_path / "out")])
    assert 0 == ran.exit_code, ran.output
    written = json.loads((tmp_path / "out" / "multiway.json").read_text())
    assert {"machine", "measured", "modelled", "growth over linear"} <= written["figures"].keys()
    assert (tmp_path / "out" / "ring.png").stat().st_size > 1000
    assert "≥ 0.9 of linear" in ran.output


def test_a_ring_that_is_wrong_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(3) > 0
    find = Stages.find
    monkeypatch.setattr(Stages, "find", lambda *args: list(find(*args))[1:])
    with pytest.raises(hf.EngineError, match="ring of 3 stages does not find what plain probing finds"):
        check(3)
