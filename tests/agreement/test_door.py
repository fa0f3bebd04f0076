"""The door: what is late or rejected on every engine is what the oracle says, and it never joins."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handfast as hf
from handfast import oracle
from handfast.flow.metrics import Metrics
from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_query
from tests.judges import duckdb_judge
from tests.judges.rows import multiset
from tests.strategies import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 200
CHUNK = 50


def bounded_in_time(seed: int, *, for_spark: bool = False) -> Case:
    """A case with bounds on its times; every second one counts."""
    chance = random.Random(seed)
    case = Case.of(seed, for_spark=for_spark)
    return (case.counted(chance) if seed % 2 else case).valid(chance)


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


def check_counters(case: Case, found: Metrics, matches: int) -> None:
    """The counters at the end of a case are those of the oracle's door."""
    admission = case.admission
    final = oracle.final(case.join, admission)
    assert matches == found.matches
    assert admission.watermark == (-math.inf if found.watermark is None else found.watermark)
    for name in case.streams:
        own, sent = found.streams[name], case.tables[name].num_rows
        late, rejected = len(admission.late[name]), len(admission.rejected[name])
        waiting = len(admission.admitted[name]) - len(final[name])
        assert (sent, waiting, late, rejected) == (own.rows_in, own.waiting, own.late, own.rejected), f"{name}: {case}"


def adds_up(found: Metrics) -> bool:
    """Whether every row is accounted for."""
    return all(
        own.rows_in == own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
        for own in found.streams.values()
    )


@pytest.mark.spark
@pytest.mark.parametrize("seeds", [range(0, 8), range(8, 16)], ids=str)
def test_a_query_counts_what_the_oracle_counts_and_every_batch_adds_up(
    spark: SparkSession, tmp_path: Path, seeds: range
) -> None:
    late = rejected = 0
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        case = bounded_in_time(seed, for_spark=True)
        result, query = spark_query(case, spark, folder)
        assert case.expected_of_steps() == result, f"seed {seed}: {case}"
        if not any(table.num_rows for table in case.tables.values()):
            continue
        for progress in query.recentProgress:
            if progress.numInputRows:
                assert adds_up(hf.metrics(progress)), f"seed {seed}: {hf.metrics(progress)}"
        check_counters(case, hf.metrics(query), sum(result.values()))
        late += any(case.admission.late.values())
        rejected += any(case.admission.rejected.values())
    assert late
    assert rejected
