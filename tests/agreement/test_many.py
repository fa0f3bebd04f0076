"""Many joins of every kind on Spark streaming, for those who have the time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agreement.runs import spark_streaming
from tests.strategies import MULTI, SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW = ("inner", "left", "right", "full", "semi", "anti")


def _case(seed: int) -> Case:
    pool = MULTI if seed % 5 == 4 else SHAPES
    case = Case.of(seed, for_spark=True, shape=pool[seed % len(pool)])
    if seed % 3 == 0:
        case = case.counted(random.Random(seed))
    if len(case.streams) == 2:
        case = case.asked(how=HOW[seed % len(HOW)])
    return case.asked(in_order=True) if seed % 7 == 0 else case


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10_000, 10_400))
def test_streaming_equals_the_oracle_at_its_watermark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = _case(seed)
    assert case.expected_of_steps() == spark_streaming(case, spark, tmp_path), f"{case}"
