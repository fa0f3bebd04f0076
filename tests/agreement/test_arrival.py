"""Count windows by the order of arrival: every engine finds what the judges find."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
from tests.agreement.admission import adds_up, check_counters
from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_query
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 200
CHUNK = 50


def arriving(seed: int, *, for_spark: bool = False) -> Case:
    """A case by the order of arrival, of any form of join."""
    chance = random.Random(seed)
    case = Case.of(seed, for_spark=for_spark, shape=SHAPES[seed * 7 % len(SHAPES)]).arriving(chance)
    how = chance.choice(("inner", "inner", "left", "full", "semi", "anti"))
    return case.asked(how=how, in_order=chance.random() < 0.3)


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 4))
def test_local_equals_oracle_and_duckdb(start: int) -> None:
    matched = unlike_event = 0
    for seed in range(start, start + CHUNK):
        case = arriving(seed)
        expected = case.expected()
        assert expected == case.judged(), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
        matched += bool(expected)
        unlike_event += expected != case.asked(order="event").expected()
    assert matched >= 0.6 * CHUNK
    assert unlike_event >= 0.4 * CHUNK


@pytest.mark.spark
def test_spark_batch_equals_the_oracle(spark: SparkSession) -> None:
    for seed in range(6):
        case = arriving(seed, for_spark=True)
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", sampled(range(3), 3))
def test_spark_streaming_goes_by_batch_stream_and_row(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = arriving(seed + 20, for_spark=True)
    result, query = spark_query(case, spark, tmp_path)
    assert case.expected_of_steps() == result, f"{case}"
    counted = hf.metrics(query)
    assert adds_up(counted)
    check_counters(case, counted, sum(result.values()))
    assert not any(own.late or own.waiting for own in counted.streams.values())
