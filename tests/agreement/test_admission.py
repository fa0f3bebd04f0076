"""Admission: what is late or rejected on every engine is what the oracle says, and it never joins."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
from handfast.judge import oracle
from tests.agreement.admission import adds_up, bounded_in_time, check_counters, late_cases
from tests.agreement.runs import (
    local_bounded,
    local_steps_and_close,
    session_watermarks,
    spark_batch,
    spark_query,
)
from tests.judges.rows import tables_of
from tests.sampling import sampled
from tests.strategies import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 200
CHUNK = 50


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 4))
def test_rows_outside_of_the_valid_times_join_nowhere(start: int) -> None:
    rejected = 0
    for seed in range(start, start + CHUNK):
        case = bounded_in_time(seed)
        expected = case.expected()
        rejected += any(case.admission.rejected.values())
        assert expected == case.judged(), f"judges differ, seed {seed}: {case}"
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


# -- idle streams ----------------------------------------------------------------------------------------------------


def idle(seed: int, *, for_spark: bool = False) -> Case:
    """A case whose streams may fall idle; every second one counts."""
    chance = random.Random(seed)
    case = Case.of(seed, for_spark=for_spark)
    return (case.counted(chance) if seed % 2 else case).idle(chance)


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 4))
def test_the_watermark_does_not_wait_for_idle_streams(start: int) -> None:
    moved = 0
    for seed in range(start, start + CHUNK):
        case = idle(seed)
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
        patient = replace(case, kwargs={**case.kwargs, "idle_timeout": None}, clock=None)
        moved += patient.admission.watermark < case.admission.watermark
    assert moved >= 0.1 * CHUNK


def test_the_watermark_is_the_oracles_after_every_batch_and_never_goes_back() -> None:
    returned = 0
    for seed in range(400):
        case = replace(idle(seed).asked(on="TRUE"), cores=1)  # the watermark is not about the matches
        assert case.clock is not None
        before = -math.inf
        for number, watermark in enumerate(session_watermarks(case), 1):
            expected = oracle.admit(case.join, map(tables_of, case.steps[:number]), case.clock).watermark
            assert expected == watermark, f"seed {seed}: {case}"
            assert before <= expected
            before = expected
        patient = replace(case, kwargs={**case.kwargs, "idle_timeout": None}, clock=None)
        returned += patient.admission.watermark > -math.inf and patient.admission.watermark < before
    assert returned >= 20, "a stream that was not waited for has sent again"


def impatient(*, counted: bool) -> Case:
    """A case some of whose rows are late because the watermark did not wait for the other stream."""
    for seed in range(int(counted), 1_000, 2):
        case = idle(seed, for_spark=True)
        case = replace(case, kwargs={**case.kwargs, "idle_timeout": "1 ms"}, clock=tuple(range(0, 10**6, 10**4)))
        patient = replace(case, kwargs={**case.kwargs, "idle_timeout": None})
        if any(case.admission.late.values()) and not any(patient.admission.late.values()):
            return case
    raise AssertionError("no such case")


@pytest.mark.spark
@pytest.mark.parametrize("counted", [False, True])
def test_spark_goes_by_the_time_it_has_written_down_for_a_batch(
    spark: SparkSession, tmp_path: Path, counted: bool
) -> None:
    case = impatient(counted=counted)
    result, query = spark_query(case, spark, tmp_path)
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    clock = tuple(json.loads(path.read_text().splitlines()[1])["batchTimestampMs"] * 1_000 for path in offsets)
    case = replace(case, clock=clock)
    assert len(clock) == len(case.steps)
    assert any(case.admission.late.values())
    assert case.expected_of_steps() == result, f"{case}"
    check_counters(case, hf.metrics(query), sum(result.values()))
