"""`handfast simulate` shows what admission control did: what is lost is counted, and all else is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast.cli import app

PIPELINE = """
[sources.r]
format = "handfast"
options = { workload = "equality", matchRate = 0.5, stream = "r", rate = 100, rows = 40 }

[sources.s]
format = "handfast"
options = { workload = "equality", matchRate = 0.5, stream = "s", rate = 100, rows = 40 }

[join]
on = "r.key = s.key"
window = "8 rows"
time = "ts"
lateness = "1 second"

[sink]
format = "none"
"""
CROWDED = ("--network", "tree", "--cores", "2", "--core-buffer", "2", "--network-buffer", "2", "--margin", "1")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("--admission", "throttle", "--step-every", "9"), r"discarded\s+(\d+) of 40 rows of r, \d+ of 40 rows of s"),
        (("--admission", "drop", "--scan", "eager", "--comparisons", "4"), r"dropped\s+(\d+) results"),
        (("--merge-clock", "2"), r"suspended\s+([\d,]+) cycles"),
    ],
)
def test_what_admission_control_did_is_shown_and_the_matches_are_right(
    asked: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE)
    run = CliRunner().invoke(app, ["simulate", str(file), "--simulator", "amaranth", *CROWDED, *asked])
    assert 0 == run.exit_code, run.output
    lost = re.search(says, run.output)
    assert lost is not None, run.output
    assert int(lost[1].replace(",", "")) > 0
