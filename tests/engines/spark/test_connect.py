"""The same joins on Spark Connect: only the public API is used, so they run there too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines.spark.connect_job import cases

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
SOON = 540  # seconds, on the busiest machine


def test_joins_of_every_kind_equal_the_oracle_on_connect(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert all(case.expected() for case in cases().values())
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.engines.spark.connect_job", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SOON, check=False)
    assert (tmp_path / "report.json").exists(), ran.stderr[-4_000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["session"].startswith("pyspark.sql.connect")
    assert report["differ"] == []
    record_property("connect cases", report["cases"])
