"""Three, four, five and eight streams with keys that all, some or none share: Spark finds what both judges find."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
from tests.agreement.runs import spark_batch, spark_restarted, spark_streaming, spark_written
from tests.sampling import sampled
from tests.strategies.shared_keys import KINDS, STREAMS, keyed_case, routing_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Record = Callable[[str, object], None]

BATCH_CASES = 84  # every kind of condition with every number of streams, thrice
GROUPS = 11  # of batch cases, each of all kinds
STREAMING_CASES = range(0, 140, 5)


def _stops(seed: int, steps: int) -> tuple[int, ...]:
    """After which steps the query ends, and another goes on from its checkpoint: once, twice or never."""
    chance = random.Random(seed)
    return tuple(sorted(chance.sample(range(1, steps), min(chance.choice((0, 1, 2)), steps - 1))))


@pytest.mark.spark
@pytest.mark.parametrize("group", sampled(range(GROUPS), GROUPS))
def test_batch_equals_oracle_and_duckdb(spark: SparkSession, group: int, record_property: Record) -> None:
    seeds = range(group, BATCH_CASES, GROUPS)
    for seed in seeds:
        case = keyed_case(seed, for_spark=True)
        assert case.expected() == case.judged(), f"judges: {case}"
        assert case.expected() == spark_batch(case, spark), f"{case}"
    record_property("batch cases", len(seeds))


@pytest.mark.spark
@pytest.mark.parametrize("seed", sampled(STREAMING_CASES, len(STREAMING_CASES) // 2))
def test_streaming_with_restarts_equals_oracle_and_duckdb(
    spark: SparkSession, tmp_path: Path, seed: int, record_property: Record
) -> None:
    case = keyed_case(seed, for_spark=True)
    expected, stops = case.expected_of_steps(), _stops(seed, len(case.steps))
    assert expected == case.judged_of_steps(), f"judges: {case}"
    if stops:
        found = spark_restarted(case, spark, tmp_path, stops)
    else:
        found = (spark_written if seed % 2 else spark_streaming)(case, spark, tmp_path)
    assert expected == found, f"stopped after steps {stops}: {case}"
    record_property("streaming cases", 1)
    record_property("restarts", len(stops))


def test_the_cases_are_of_every_kind_and_have_something_to_tell() -> None:
    batch = [keyed_case(seed, for_spark=True) for seed in range(BATCH_CASES)]
    assert {(n, kind) for n in STREAMS for kind in KINDS} == {_kind(case.shape.name) for case in batch}
    streaming = [keyed_case(seed, for_spark=True) for seed in STREAMING_CASES]
    assert set(STREAMS) == {len(case.streams) for case in streaming}
    assert set(KINDS) == {_kind(case.shape.name)[1] for case in streaming}
    for cases, telling in (
        (batch, [case.expected() for case in batch]),
        (streaming, [c.expected_of_steps() for c in streaming]),
    ):
        assert {"hash", "hypercube", "spread"} == {routing_of(case) for case in cases}
        counting = [[isinstance(own.window, hf.CountWindow) for own in case.spec.streams] for case in cases]
        assert any(map(all, counting)) and any(any(own) and not all(own) for own in counting)
        assert sum(map(bool, telling)) > 0.6 * len(cases)
        assert all(
            any(found for case, found in zip(cases, telling, strict=True) if len(case.streams) == n) for n in STREAMS
        )
    assert any(any(case.admission.late.values()) for case in streaming)
    assert sum(len(_stops(seed, len(case.steps))) for seed, case in zip(STREAMING_CASES, streaming, strict=True)) > 14


def _kind(name: str) -> tuple[int, str]:
    streams, kind = name.split(" streams, ")
    return int(streams), kind
