"""Spark, batch and streaming, finds what both judges find."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agreement.runs import spark_batch, spark_streaming, spark_written
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BATCH_CASES = 70
STREAMING_CASES = 24


@pytest.mark.parametrize("start", sampled(range(0, BATCH_CASES, 10), 2))
def test_batch_equals_oracle_and_duckdb(
    spark: SparkSession, start: int, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(start, start + 10):
        case = Case.random(random.Random(seed), for_spark=True, shape=SHAPES[seed % len(SHAPES)])
        assert case.expected() == case.judged(), f"judges, seed {seed}: {case}"
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"
    record_property("batch cases", 10)


@pytest.mark.parametrize("seed", sampled(range(STREAMING_CASES), 3))
def test_streaming_equals_oracle_and_duckdb(
    spark: SparkSession, tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    case = Case.random(random.Random(seed), for_spark=True, shape=SHAPES[(seed * 3 + 1) % len(SHAPES)])
    expected = case.expected_of_steps()
    assert expected == case.judged(case.admitted), f"judges: {case}"
    run = spark_written if seed % 4 == 0 else spark_streaming
    assert expected == run(case, spark, tmp_path), f"{case}"
    record_property("streaming cases", 1)
