"""Ctrl-C: a real process, a real signal; the next run goes on, and every match is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
import handfast.testing as hft
from handfast.connectors.generate import Workload
from tests.cli.run.conftest import JOIN, Write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMAND = [sys.executable, "-c", "from handfast.cli import app; app()", "run"]
WORKLOAD = Workload.named("equality", match_rate=0.02, rate=100, disorder="1 second")
SINK = 'format = "parquet"\npath = "out"'


def interrupt(file: Path, after: str) -> tuple[int, list[str], str]:
    """Start a pipeline, press Ctrl-C when it has said `after`; its exit code, what it said, its errors."""
    # a group of its own: Ctrl-C reaches all processes of a terminal's group, so Spark's as well
    process = subprocess.Popen(
        [*COMMAND, str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line.rstrip())
        if line.startswith(after):
            os.killpg(process.pid, signal.SIGINT)
            break
    try:
        rest, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, [*said, *rest.splitlines()], errors


def test_ctrl_c_without_spark(write: Write, tmp_path: Path) -> None:
    file = write('engine = "local"', 'trigger = "50 ms"', sink=SINK, rows=1_000_000)
    code, said, errors = interrupt(file, "step 3:")
    assert (130, "handfast: stopped\n") == (code, errors)
    assert said[-1].startswith("stopped: ")
    assert [] == list((tmp_path / "out").glob(".*"))


@pytest.mark.spark
@pytest.mark.parametrize(
    "refused",
    [
        pytest.param("", id="alone", marks=pytest.mark.slow),
        pytest.param('[late_rows]\nformat = "json"\npath = "late"\n', id="late_rows"),
    ],
)
def test_ctrl_c_on_spark_and_then_the_rest(spark: SparkSession, write: Write, tmp_path: Path, refused: str) -> None:
    checkpoint = 'checkpoint = "checkpoint"'
    code, said, errors = interrupt(write(checkpoint, join=JOIN + refused, sink=SINK, rows=500), "step 2:")
    assert (130, "handfast: stopped\n") == (code, errors)
    assert said[-1].startswith("stopped; the next run goes on from the checkpoint: ")
    before = len(spark.read.parquet(str(tmp_path / "out")).collect())

    again = write('trigger = "available now"', checkpoint, join=JOIN + refused, sink=SINK, rows=500)
    ran = subprocess.run([*COMMAND, str(again)], capture_output=True, text=True, timeout=300, check=False)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert f"going on from the checkpoint {tmp_path / 'checkpoint'}" in ran.stdout.splitlines()
    tables = {name: WORKLOAD.table(name, 0, 500) for name in "rs"}
    expected = hf.join(tables, on="r.key = s.key", window="2 seconds", time="ts")
    assert 0 < before < len(expected)
    assert f"done: 500 of r, 500 of s in, {len(expected):,} matches out; " in ran.stdout  # of both runs together
    hft.assert_same(spark.read.parquet(str(tmp_path / "out")).drop("handfast_batch"), expected)


@pytest.mark.spark
def test_ctrl_c_stops_a_batch_on_spark(write: Write) -> None:
    endless = JOIN.replace("r.key = s.key", "r.key < s.key").replace("2 seconds", "1 day")
    code, said, errors = interrupt(write('mode = "batch"', join=endless, rows=10_000_000), "… Spark joins")
    assert (130, "handfast: stopped\n", "… Spark joins") == (code, errors, said[-1])
