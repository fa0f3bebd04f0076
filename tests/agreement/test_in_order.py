"""In order: rows stand by the rank of their last tuple, from batch to batch too, and nothing is lost for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import handfast as hf
from tests.agreement.order import Rows, groups, stands_in_order
from tests.agreement.runs import open_session, streaming_frames
from tests.judges.rows import multiset, result_of, tables_of
from tests.sampling import sampled
from tests.strategies import MULTI, SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CASES = 210
CHUNK = 42
HOW = ("inner", "left", "right", "full", "semi", "anti")


def _case(seed: int, *, for_spark: bool = False) -> Case:
    pool = MULTI if seed % 7 == 3 else SHAPES
    case = Case.of(seed, for_spark=for_spark, shape=pool[seed * 13 % len(pool)])
    if seed % 5 < 2:
        case = case.counted(random.Random(seed))
    return case.asked(how=HOW[seed % 7 % 6] if pool is SHAPES else "inner", in_order=True)


def _rows(batches: list[pa.RecordBatch]) -> Rows:
    return [row for batch in batches for row in result_of(pa.Table.from_batches([batch]))]


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 4))
def test_local_gives_rows_in_the_order_of_rank(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        case = _case(seed)
        bounded = result_of(hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores)))
        assert stands_in_order(bounded, groups(case, tables_of(case.tables))), f"bounded, seed {seed}: {case}"
        given: Rows = []
        with open_session(case) as session:
            for number, step in enumerate(case.steps, 1):
                given += _rows(session.push_together(step))
                if number in (len(case.steps) // 2, len(case.steps)):
                    so_far = replace(case, steps=case.steps[:number])
                    assert multiset(given) == so_far.expected_of_steps(), f"step {number}, seed {seed}: {case}"
                    assert multiset(given) == so_far.judged_of_steps(), f"judges, step {number}, seed {seed}: {case}"
        closed = [*given, *_rows(session.close())]
        assert stands_in_order(closed, groups(case, tables_of(case.admitted))), f"steps, seed {seed}: {case}"
    record_property("local cases", CHUNK)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(7))
def test_spark_batch_gives_rows_in_the_order_of_rank(
    spark: SparkSession, seed: int, record_property: Callable[[str, object], None]
) -> None:
    case = _case(seed, for_spark=True)
    hf.configure(spark, cores=case.cores)
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    given = result_of(hf.join(frames, **case.kwargs).toArrow())
    assert stands_in_order(given, groups(case, tables_of(case.tables))), f"{case}"
    record_property("batch cases", 1)


@pytest.mark.spark
@pytest.mark.parametrize("seed", sampled([*range(7), 9], 3))
def test_spark_streaming_gives_rows_in_order_from_batch_to_batch(
    spark: SparkSession, tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    case = _case(seed + 40, for_spark=True)
    hf.configure(spark, cores=case.cores)
    batches: list[list[Rows]] = []

    def keep(frame: DataFrame, number: int) -> None:
        parts = frame.selectExpr("spark_partition_id() AS part", "*").toArrow()
        rows = result_of(parts)
        batches.append([[row[1:] for row in rows if row[0] == part] for part in sorted({row[0] for row in rows})])

    matches = hf.join(streaming_frames(case, spark, tmp_path), **case.kwargs, lateness=case.lateness)
    query = (
        matches.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    given = [row for parts in batches for rows in parts for row in rows]
    assert multiset(given) == case.expected_of_steps(), f"{case}"
    latest = -(2**63)
    for parts in batches:
        times = [row[-1] for rows in parts for row in rows]
        assert all(time >= latest for time in times), f"{case}"
        assert all([row[-1] for row in rows] == sorted(row[-1] for row in rows) for rows in parts), f"{case}"
        latest = max([latest, *times])
    record_property("streaming cases", 1)
