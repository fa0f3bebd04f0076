"""The door: what is late or rejected on every engine is what the oracle says, and it never joins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
from tests.agreement.door import adds_up, bounded_in_time, check_counters, late_cases
from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_query
from tests.judges import duckdb_judge
from tests.judges.rows import multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 200
CHUNK = 50


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_rows_outside_of_the_valid_times_join_nowhere(start: int) -> None:
    rejected = 0
    for seed in range(start, start + CHUNK):
        case = bounded_in_time(seed)
        expected = case.expected()
        rejected += any(case.admission.rejected.values())
        assert expected == multiset(duckdb_judge.result(case.spec, case.tables)), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
    assert rejected >= 0.8 * CHUNK


@pytest.mark.spark
def test_rows_outside_of_the_valid_times_join_nowhere_on_spark(spark: SparkSession) -> None:
    for seed in range(8):
        case = bounded_in_time(seed, for_spark=True)
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"


@pytest.mark.spark
@pytest.mark.parametrize("number", [2, 3])
def test_a_query_counts_what_the_oracle_counts_and_every_batch_adds_up(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    case = late_cases()[number]
    result, query = spark_query(case, spark, tmp_path)
    assert case.expected_of_steps() == result, f"{case}"
    for progress in query.recentProgress:
        if progress.numInputRows:
            assert adds_up(hf.metrics(progress)), f"{hf.metrics(progress)}"
    check_counters(case, hf.metrics(query), sum(result.values()))
