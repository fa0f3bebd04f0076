"""The Python of Spark's workers, where the `python3` on the PATH is one without handfast."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import handfast as hf

pytestmark = pytest.mark.spark

JOB = Path(__file__).with_name("worker_job.py")
SPARK = Path(pyspark.__file__).parent
SOON = 540  # seconds, on the busiest machine
STOPPED = (
    "The Spark session has been stopped; make a new one with SparkSession.builder.getOrCreate(), and call hf.configure "
    "with it"
)


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, str]:
    """An environment whose `python3` has PySpark and nothing else, and no setting that names another one."""
    script = tmp_path / "python3"
    libraries = ":".join(map(str, (SPARK / "python" / "lib").glob("*.zip")))
    script.write_text(f'#!/bin/sh\nPYTHONPATH={libraries} exec {sys.base_prefix}/bin/python3 "$@"\n')
    script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}


def said(environment: dict[str, str], *command: str) -> tuple[str, str]:
    """The last lines that the job prints: of its join, and of the session that it has stopped."""
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SOON, check=False)
    assert 0 == ran.returncode, ran.stderr[-4_000:]
    joined, stopped = ran.stdout.splitlines()[-2:]
    return joined, stopped


def test_on_a_local_master_workers_run_the_python_of_the_program(foreign: dict[str, str]) -> None:
    assert ("3 matches", STOPPED) == said(foreign, sys.executable, str(JOB), "local[2]")


def test_with_spark_submit_workers_run_the_python_of_the_program(foreign: dict[str, str]) -> None:
    chosen = foreign | {"PYSPARK_DRIVER_PYTHON": sys.executable}
    assert ("3 matches", STOPPED) == said(chosen, str(SPARK / "bin" / "spark-submit"), str(JOB), "local[2]")


def test_on_a_cluster_configure_says_what_the_workers_lack(foreign: dict[str, str]) -> None:
    error, _ = said(foreign, sys.executable, str(JOB), "local-cluster[2,1,1024]")
    assert error.startswith("Spark's workers cannot run joins: No module named '")
    way_out = "they run 'python3': set PYSPARK_PYTHON before the session starts, or with spark-submit --conf"
    assert f"{way_out} spark.pyspark.python=…, to a Python that has handfast {hf.__version__}" in error


def test_on_connect_configure_says_what_the_workers_lack(foreign: dict[str, str]) -> None:
    error, stopped = said(foreign, sys.executable, str(JOB), "connect local[2]")
    assert STOPPED == stopped
    assert error.startswith("Spark's workers cannot run joins: No module named '")
    assert "os.environ['PYSPARK_PYTHON'] = sys.executable before the session is made" in error
