"""A checkpoint of an earlier version goes on: its query finds what one that was never stopped would have found."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import handfast as hf
from tests.engines.spark import write_fixture
from tests.engines.spark.crash_job import PARTITIONS, finish
from tests.engines.spark.outcome import Outcome
from tests.engines.spark.write_fixture import BATCHES, FIXTURES, JOINS, unpack

MORE = 2  # batches
SMALL = 300_000  # bytes of all archives


def test_the_archives_are_small() -> None:
    archives = {path.name: path.stat().st_size for path in FIXTURES.iterdir()}
    assert {f"{join}.tar.gz" for join in JOINS} == archives.keys()
    assert sum(archives.values()) < SMALL


@pytest.mark.spark
@pytest.mark.parametrize("join", JOINS)
def test_a_kept_checkpoint_goes_on_to_the_result_of_all_batches(spark: SparkSession, tmp_path: Path, join: str) -> None:
    asked, batches = write_fixture.spec(join), write_fixture.rows(BATCHES + MORE)
    first, rest, all_ = (Outcome.of(asked, own) for own in (batches[:BATCHES], batches[BATCHES:], batches))
    assert first.is_telling
    assert all_.matches - first.matches - rest.matches, "a query without the state would not find these"
    unpack(FIXTURES / f"{join}.tar.gz", tmp_path)
    first.check_matches(spark, tmp_path / "matches")
    first.check_refused(spark, tmp_path)
    hf.configure(spark, cores=PARTITIONS)
    query = write_fixture.start(spark, join, tmp_path, BATCHES + MORE)
    finish(query)
    assert MORE == sum(progress.numInputRows > 0 for progress in query.recentProgress)
    all_.check_matches(spark, tmp_path / "matches")
    all_.check_refused(spark, tmp_path)
    all_.check_counters(hf.metrics(query))
