"""Left, right, full, semi and anti joins: every engine finds what both judges find, when it is certain."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_streaming
from tests.judges import duckdb_judge
from tests.judges.rows import multiset
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 500
CHUNK = 50
HOW = ("left", "right", "full", "semi", "anti")


def _case(seed: int, *, for_spark: bool = False) -> Case:
    case = Case.of(seed, for_spark=for_spark, shape=SHAPES[seed * 11 % len(SHAPES)])
    if seed % 3 == 0:
        case = case.counted(random.Random(seed))
    return case.asked(how=HOW[seed % len(HOW)])


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_local_equals_oracle_and_duckdb(start: int, record_property: Callable[[str, object], None]) -> None:
    given = early = 0
    for seed in range(start, start + CHUNK):
        case = _case(seed)
        expected = case.expected()
        given += bool(expected)
        assert expected == multiset(duckdb_judge.result(case.spec, case.tables)), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == case.judged_of_steps(), f"judges differ on the steps, seed {seed}: {case}"
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        early += bool(decided) and decided != closed
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
    assert given >= 0.8 * CHUNK
    assert early >= 0.3 * CHUNK  # some rows are certain before the end, some only then
    record_property("local cases", CHUNK)


@pytest.mark.spark
@pytest.mark.parametrize("start", range(0, 20, 10))
def test_spark_batch_equals_the_oracle(
    spark: SparkSession, start: int, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(start, start + 10):
        case = _case(seed, for_spark=True)
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"
    record_property("batch cases", 10)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(8))
def test_spark_streaming_equals_the_oracle_at_its_watermark(
    spark: SparkSession, tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    case = _case(seed + 200, for_spark=True)
    assert case.expected_of_steps() == spark_streaming(case, spark, tmp_path), f"{case}"
    record_property("streaming cases", 1)
