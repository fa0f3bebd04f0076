"""Joins of other kinds than an inner join of two streams by time windows: every engine finds what both judges find."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_streaming, spark_written
from tests.sampling import sampled
from tests.strategies import MULTI, SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK = 50
HOW = ("left", "right", "full", "semi", "anti")
Record = Callable[[str, object], None]


def _counted(seed: int, *, for_spark: bool = False) -> Case:
    return Case.of(seed, for_spark=for_spark, shape=SHAPES[seed * 7 % len(SHAPES)]).counted(random.Random(seed))


def _outer(seed: int, *, for_spark: bool = False) -> Case:
    case = Case.of(seed, for_spark=for_spark, shape=SHAPES[seed * 11 % len(SHAPES)])
    case = case.counted(random.Random(seed)) if seed % 3 == 0 else case
    return case.asked(how=HOW[seed % len(HOW)])


def _several(seed: int, *, for_spark: bool = False) -> Case:
    case = Case.of(seed, for_spark=for_spark, shape=MULTI[seed % len(MULTI)])
    return case.counted(random.Random(seed)) if seed % 3 == 0 else case


KINDS: dict[str, tuple[Callable[..., Case], int]] = {
    "count and mixed windows": (_counted, 350),
    "left, right, full, semi, anti": (_outer, 450),
    "three and four streams": (_several, 200),
}
CHUNKS = [(kind, start) for kind, (_, cases) in KINDS.items() for start in range(0, cases, CHUNK)]


@pytest.mark.parametrize(("kind", "start"), sampled(CHUNKS, 4))
def test_local_equals_oracle_and_duckdb(kind: str, start: int, record_property: Record) -> None:
    given = early = 0
    for seed in range(start, start + CHUNK):
        case = KINDS[kind][0](seed)
        expected = case.expected()
        given += bool(expected)
        assert expected == case.judged(), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        early += bool(decided) and decided != closed
        assert case.expected_of_steps() == case.judged_of_steps(), f"judges differ on the steps, seed {seed}: {case}"
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
    record_property("local cases", CHUNK)
    assert given >= 0.6 * CHUNK
    assert early >= 0.1 * CHUNK  # some rows are certain before the end, some only then


@pytest.mark.spark
@pytest.mark.parametrize("start", [0])
@pytest.mark.parametrize("kind", KINDS)
def test_spark_batch_equals_the_oracle(spark: SparkSession, kind: str, start: int, record_property: Record) -> None:
    for seed in range(start, start + 10):
        case = KINDS[kind][0](seed, for_spark=True)
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"
    record_property("batch cases", 10)


@pytest.mark.spark
@pytest.mark.parametrize("seed", sampled(range(100, 104), 2))
@pytest.mark.parametrize("kind", KINDS)
def test_spark_streaming_equals_the_oracle_at_its_watermark(
    spark: SparkSession, tmp_path: Path, kind: str, seed: int, record_property: Record
) -> None:
    case = KINDS[kind][0](seed, for_spark=True)
    run = spark_written if seed % 4 == 0 else spark_streaming
    assert case.expected_of_steps() == run(case, spark, tmp_path), f"{case}"
    record_property("streaming cases", 1)
