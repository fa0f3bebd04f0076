"""The command: what it answers, what it refuses, and with which exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

import handfast
from handfast.cli import app
from handfast.cli.demo import run as demo_run
from handfast.cli.demo.scenario import Scenario
from handfast.engines.spark import embedded

COMMAND = Path(sys.executable).with_name("handfast")
FORCES_COLOUR = ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
PIP = "pip install 'pandas<3,>=2.2' 'protobuf<8,>=6.33.5' 'pyspark==4.3.*'"


def handfast_says(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the installed command answers into a pipe."""
    kept = {name: value for name, value in os.environ.items() if name not in FORCES_COLOUR}
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, env=kept | environment, timeout=300, check=False
    )


def invoke(*arguments: str) -> tuple[int, str]:
    """The exit code, and what is printed as an error, in this process."""
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stderr


def test_the_version_is_the_packages():
    said = handfast_says("--version")
    assert (0, f"handfast {handfast.__version__}\n", "") == (said.returncode, said.stdout, said.stderr)


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_without_a_command_it_lists_the_commands(arguments):
    said = handfast_says(*arguments)
    for command, does in (
        ("demo", "Run a band join on Spark, live and as backfill, and check both."),
        ("explain", "Show how a pipeline's join is laid out, and why."),
        ("verify", "Check a pipeline's join on all rows its sources have now."),
        ("run", "Run a pipeline: its sources, its join, its sink."),
        ("sweep", "Run a grid of circuits on the fast model, into Parquet."),
        ("size", "Show the circuits, and the software, that meet a demand."),
        ("reproduce", "Run the evaluation of a paper again."),
    ):
        assert re.search(rf" {command} +{re.escape(does)}", said.stdout)
    assert "\x1b" not in said.stdout + said.stderr


def test_the_help_of_the_demo_names_every_option_and_needs_no_engine():
    said = handfast_says("demo", "--help", JAVA_HOME="/nowhere")
    assert 0 == said.returncode
    for option in fields(Scenario):
        assert f"--{option.name} " in said.stdout


def test_the_command_itself_loads_no_engine():
    heavy = ("numpy", "pyarrow", "sqlglot", "numba", "pandas", "pyspark")
    loaded = f"import sys, handfast.cli; print([name for name in {heavy} if name in sys.modules])"
    assert "[]" == subprocess.check_output([sys.executable, "-c", loaded], text=True).strip()


PIPELINE = Path(__file__).parents[2] / "examples" / "pipeline" / "pipeline.toml"
WITHOUT_PYSPARK = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None  # importing them is an error
from handfast.cli import app
app(standalone_mode=False)
print([name for name in sys.modules if name.startswith(("handfast.engines.spark", "handfast.connectors.spark"))])
"""


def test_without_pyspark_a_pipeline_is_explained_on_the_local_engine_and_nothing_of_sparks_is_loaded():
    command = [sys.executable, "-c", WITHOUT_PYSPARK, "explain", str(PIPELINE), "--engine", "local"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ("", 0) == (said.stderr, said.returncode)
    first, *_, loaded = said.stdout.splitlines()
    assert "join of trade and quote on local" == first
    assert "[]" == loaded


@pytest.mark.parametrize(
    ("runner", "not_its_own"),
    [
        ("local", ("pyspark", "py4j", "handfast.engines.spark", "handfast.connectors.spark")),
        ("spark", ("handfast.engines.local", "handfast.connectors.local")),
    ],
)
def test_a_runner_imports_nothing_of_the_other_engine(runner, not_its_own):
    loaded = f"import sys, handfast.cli.run.{runner}; print([n for n in sys.modules if n.startswith({not_its_own})])"
    assert "[]" == subprocess.check_output([sys.executable, "-c", loaded], text=True).strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", "0"), "The demo's rows must be a whole number from 1 to 500,000, not 0"),
        (("--rows", "500001"), "The demo's rows must be a whole number from 1 to 500,000, not 500,001"),
        (("--rate", "0"), "A workload's rate must be a whole number from 1 to 1,000,000,000, not 0"),
        (("--seed", "-1"), "A workload's seed must be a whole number from 0 to"),
        (("--backfill", "-1"), "The demo's backfill must be a whole number from 0 to 10,000,000, not -1"),
        (("--cores", "0"), "The demo's cores must be a whole number from 1 to 64, not 0"),
        (("--window", "soon"), "The window of stream 'r' must be a duration like '10 minutes', '500 ms' or"),
        (("--window", "0 s"), "The window of stream 'r' must be longer than nothing, not '0 s'"),
        (
            ("--window", "1 hour"),
            "20,000 rows of each stream at 200 rows/s with windows of 1 hour are 400,000,000 pairs",
        ),
    ],
)
def test_an_option_out_of_bounds_is_named_with_its_rule(arguments, message):
    code, said = invoke("demo", *arguments)
    assert 2 == code
    assert said.startswith(f"handfast: {message}")


@pytest.mark.parametrize("arguments", [("demo", "--rows", "many"), ("demo", "--speed", "1"), ("dance",)])
def test_what_it_does_not_know_is_a_usage_error(arguments):
    code, said = invoke(*arguments)
    assert 2 == code
    assert arguments[-2 if len(arguments) > 1 else 0] in said


def test_without_java_it_says_what_to_install(tmp_path):
    said = handfast_says("demo", PATH=str(tmp_path), JAVA_HOME="")
    assert (1, "") == (said.returncode, said.stdout)
    assert said.stderr.startswith(
        "handfast: Spark needs Java 17 or newer, and there is no java on the PATH; install one"
    )
    assert "sudo apt-get install openjdk-17-jre-headless" in said.stderr


def fake_java(folder: Path, version: str) -> str:
    """A JAVA_HOME whose java knows its version and fails at everything else."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\n[ "$1" = -version ] || exit 3\necho \'openjdk version "{version}"\' >&2\n')
    java.chmod(0o755)
    return str(folder)


def test_a_java_that_is_too_old_is_named(tmp_path):
    home = fake_java(tmp_path, "1.8.0_402")
    said = handfast_says("demo", JAVA_HOME=home)
    assert 1 == said.returncode
    assert f"JAVA_HOME is {home}, but {home}/bin/java is Java 8; install one" in said.stderr


def test_a_java_home_without_java_is_named():
    assert (
        "JAVA_HOME is /nowhere, but /nowhere/bin/java does not run;"
        in handfast_says("demo", JAVA_HOME="/nowhere").stderr
    )


def test_if_spark_does_not_start_its_log_is_kept(tmp_path):
    (tmp_path / "java").mkdir()
    (tmp_path / "temporary").mkdir()
    home = fake_java(tmp_path / "java", "17.0.1")
    said = handfast_says("demo", "--rows", "10", JAVA_HOME=home, TMPDIR=str(tmp_path / "temporary"))
    (log,) = (tmp_path / "temporary").iterdir()
    assert 1 == said.returncode
    assert said.stderr.startswith("handfast: Spark failed: [JAVA_GATEWAY_EXITED] ")
    assert said.stderr.endswith(f"; its log is kept in {log}\n")


def test_without_pyspark_it_names_the_extra(monkeypatch):
    monkeypatch.setattr(embedded, "find_spec", lambda package: None)
    assert (1, f"handfast: The demo needs the 'spark' extra (pyspark is missing): {PIP}\n") == invoke("demo")


@pytest.mark.parametrize(("equal", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_the_results_are_equal(monkeypatch, equal, code):
    monkeypatch.setattr(demo_run, "run", lambda scenario, screen: equal)
    assert (code, "") == invoke("demo")


def test_a_pipeline_without_pyspark_names_the_extra(monkeypatch):
    monkeypatch.setattr(embedded, "find_spec", lambda package: None)
    expected = f"A pipeline on Spark needs the 'spark' extra (pyspark is missing): {PIP}\n"
    for command in ("run", "explain", "verify"):
        assert (1, f"handfast: {expected}") == invoke(command, str(PIPELINE))


def test_ctrl_c_is_no_error_of_ours(monkeypatch):
    def interrupted(scenario: object, screen: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_run, "run", interrupted)
    assert (130, "handfast: stopped\n") == invoke("demo")


def test_the_options_reach_the_demo(monkeypatch):
    seen = []
    monkeypatch.setattr(demo_run, "run", lambda scenario, screen: not seen.append(scenario))
    invoke("demo", "--rows", "7", "--rate", "5", "--window", "3 s", "--seed", "11", "--cores", "1", "--backfill", "9")
    assert [Scenario(rows=7, rate=5, window="3 s", seed=11, cores=1, backfill=9)] == seen
