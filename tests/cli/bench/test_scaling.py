"""`handfast bench scaling`: it runs from end to end, verifies before it measures, and writes what it says it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import handfast as hf
from handfast.cli import app
from handfast.cli.bench.measure import Ratio, Speed, checked, scan_speed, speed, stolen_seconds
from handfast.cli.bench.workload import Bench
from handfast.kernels import pairs
from handfast.kernels.sizes import KernelSizes, Vectors

PICTURES = ("scaling.png", "simd.png", "local-joins.png", "latency.png", "bubble.png")


def test_the_quick_run_prints_every_figure_and_draws_every_picture(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["bench", "scaling", "--quick", "--out", str(tmp_path / "out")])
    assert 0 == ran.exit_code, ran.output
    written = json.loads((tmp_path / "out" / "scaling.json").read_text())
    figures = {"scan 2/1", "index 2/1", "merge/scan", "merge 2/1", "simd", "slow core", "modelled", "law", "burst"}
    chains = {"chain 1", "chain 2", "chain 2/1", "model 1", "model 2", "chain 2, 10 minutes", "chain 2, 15 minutes"}
    assert figures | chains <= written["figures"].keys()
    assert all((tmp_path / "out" / name).stat().st_size > 1000 for name in PICTURES)
    assert "≥ 1.8" in ran.output
    assert "written to" in ran.output


def test_what_is_wrong_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, options = Bench(500, domain=50), [hf.LocalOptions(), hf.LocalOptions(local_join="scan")]
    assert checked(bench, options, block=200) > 0
    scan = pairs.PairKernels.scan
    monkeypatch.setattr(
        pairs.PairKernels, "scan", lambda *args: (tuple(own[1:] for own in pair) for pair in scan(*args))
    )
    with pytest.raises(hf.EngineError, match="matches of the oracle: nothing is measured"):
        checked(bench, options, block=200)


@pytest.mark.parametrize("vectors", [Vectors(), Vectors(lanes=1), Vectors(lanes=16, group=4, block=1)])
def test_a_scan_with_any_number_of_lanes_finds_what_a_session_finds(vectors: Vectors) -> None:
    bench = Bench(3_000, domain=100)
    usual = speed(bench, hf.LocalOptions(local_join="scan"), block=64, blocks=2)
    timed = scan_speed(bench, KernelSizes(vectors), block=64, blocks=2)
    assert (usual.matches, usual.pairs) == (timed.matches, timed.pairs)
    assert usual.matches > 0


def test_what_the_host_took_is_read_as_linux_counts_it(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  10 20 30 40 50 60 70 250 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n")
    assert pytest.approx(250 / os.sysconf("SC_CLK_TCK")) == stolen_seconds(stat)
    assert 0.0 == stolen_seconds(tmp_path / "none")


def test_a_folder_that_cannot_be_made_is_named() -> None:
    ran = CliRunner().invoke(app, ["bench", "scaling", "--quick", "--out", "/proc/nowhere"])
    assert 2 == ran.exit_code
    assert "The folder /proc/nowhere cannot be made" in ran.output


def test_the_rate_is_where_all_pairs_are_tried_in_time() -> None:
    measured = Speed(seconds=2.0, tuples=1, pairs=3_600_000, matches=10)
    rate = measured.rate(900.0)
    assert pytest.approx(measured.pairs_per_second) == 2 * rate * rate * 900


def test_a_ratio_is_the_median_over_turns() -> None:
    ratio = Ratio.of([2.0, 4.0, 1.0, 3.0, 5.0], [1.0] * 5)
    assert Ratio(3.0, 2.0, 4.0) == ratio
    assert "3.00 (2.00–4.00)" == str(ratio)
