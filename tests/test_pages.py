"""The pages of docs/ that have snippets: each runs from top to bottom, and prints what the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import handfast as hf
import handfast.testing as hft
from handfast.cli import app
from handfast.connectors import record
from handfast.connectors.local import open_source
from handfast.connectors.pipeline import Pipeline
from tests.pages import run_page, says

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.spark
def test_testing_runs_as_it_stands(spark: SparkSession) -> None:
    run_page(DOCS / "testing.md", spark=spark)


@pytest.mark.spark
def test_cluster_runs_as_it_stands(spark: SparkSession) -> None:
    run_page(DOCS / "cluster.md", spark=spark)


def test_local_runs_as_it_stands() -> None:
    run_page(DOCS / "local.md")


def test_windows_runs_as_it_stands() -> None:
    run_page(DOCS / "windows.md")


# --- pipeline.md ----------------------------------------------------------------------------------------------------

PIPELINE = (DOCS / "pipeline.md").read_text(encoding="utf-8")
EXAMPLE = DOCS.parent / "examples" / "pipeline"


RESULT = "trade_ts timestamp, trade_symbol string, trade_price double, quote_ts timestamp, quote_symbol string, \
quote_price double, match_time timestamp"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PIPELINE, re.MULTILINE | re.DOTALL)


def test_the_pipeline_on_the_page_is_the_example() -> None:
    assert (EXAMPLE / "pipeline.toml").read_text(encoding="utf-8") == blocks("toml")[0]


@pytest.mark.parametrize("part", blocks("toml")[1:])
def test_every_other_piece_of_a_pipeline_fits_into_it(part: str) -> None:
    whole, fragment = tomllib.loads(blocks("toml")[0]), tomllib.loads(part)
    sources = whole["sources"] | fragment.pop("sources", {})
    Pipeline.of(EXAMPLE / "pipeline.toml", whole | fragment | {"sources": sources})


def test_every_command_says_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(EXAMPLE, tmp_path / "example"))
    commands = blocks("console")
    assert 3 == len(commands)
    for block in commands:
        command, _, expected = block.partition("\n")
        result = CliRunner().invoke(app, command.removeprefix("$ handfast ").split())
        assert 0 == result.exit_code, result.output
        assert says(expected.strip(), result.stdout.strip()), f"{command} prints\n{result.stdout}"


def test_the_refusal_on_the_page_is_what_is_said() -> None:
    said = next(block for block in blocks("text") if "another join" in block)
    pipeline = Pipeline.read(EXAMPLE / "pipeline.toml")
    columns = dict.fromkeys(pipeline.spec.names, "ts timestamp, symbol string, price double")
    before = record.record_of(pipeline.spec, columns, 2, apart=False)
    now = {**before, "window of 'trade'": "2 s"}
    with pytest.raises(hf.SpecError) as error:
        record.check(before, now, f"{EXAMPLE}/checkpoint")
    assert says(said.strip(), f"handfast: {error.value}")


@pytest.mark.spark
def test_the_columns_of_kafka_are_what_the_page_says(spark: SparkSession) -> None:
    kafka = next(tomllib.loads(part) for part in blocks("toml")[1:] if '"kafka"' in part)["sources"]["trade"]
    sent = """SELECT CAST('{"ts": "2026-01-01T12:00:00Z", "symbol": "AB", "price": 1.5}' AS BINARY) AS value"""
    found = spark.sql(sent).selectExpr(*kafka["select"])
    hft.assert_same(found, "ts | symbol | price\n12:00:00 | AB | 1.5")


@pytest.mark.spark
def test_the_example_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    home = shutil.copytree(EXAMPLE, tmp_path / "example")
    command = [sys.executable, "-c", "from handfast.cli import app; app()", "run", str(home / "pipeline.toml")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert "13 of trade, 40 of quote in, 38 matches out" in ran.stdout.splitlines()[-1]
    found = spark.read.csv(str(home / "matches"), header=True, schema=RESULT)
    pipeline = Pipeline.read(home / "pipeline.toml")
    tables = {name: open_source(source).take_all() for name, source in pipeline.sources.items()}
    hft.assert_same(found, hf.join(tables, pipeline.spec))
