"""An event-time aggregation in Spark behind a join in order: it loses nothing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import handfast as hf
from tests.agreement.runs import streaming_frames
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVERY_PAIR = next(shape for shape in SHAPES if shape.name == "every pair")


def _counts(matches: DataFrame, window: str) -> DataFrame:
    from pyspark.sql import functions as F

    return matches.groupBy(F.window("match_time", window)).count().select("window.start", "count")


def _dense(seed: int, how: str) -> Case:
    """A case whose rows come out of order, none of them late, and most of whose matches are decided before the end."""
    while True:
        case = Case.of(seed, for_spark=True, shape=EVERY_PAIR).asked(how=how, in_order=True)
        early = case.expected_of_steps().total() > 0.6 * case.expected_at_close().total() > 30
        modern = case.admission.watermark > 10**15  # Spark's own watermark starts in 1970
        orderly = not any(case.admission.late.values()) and "disorder" in case.features()
        if early and modern and orderly and len(case.steps) > 3:
            return case
        seed += 1


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_an_aggregation_behind_a_join_in_order_equals_the_one_in_batch(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    case = _dense(random.Random(how).randrange(1_000), how)
    hf.configure(spark, cores=2)
    times = [row[-1] for row in case.expected()]
    window = f"{max(1, (max(times) - min(times)) // 5)} microseconds"
    still = {name: spark.createDataFrame(table) for name, table in case.admitted.items()}
    batch = {row["start"]: row["count"] for row in _counts(hf.join(still, **case.kwargs), window).collect()}
    live = streaming_frames(case, spark, tmp_path)
    matches = hf.join(live, **case.kwargs, lateness=case.lateness).withWatermark("match_time", "0 seconds")
    seen: dict[Any, int] = {}

    def keep(frame: DataFrame, number: int) -> None:
        for row in frame.collect():
            assert row["start"] not in seen
            seen[row["start"]] = row["count"]

    query = (
        _counts(matches, window)
        .writeStream.foreachBatch(keep)
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert seen
    # the last windows stay open: the watermark has not passed their end
    assert all(batch[start] == count for start, count in seen.items())
    assert all(start > max(seen) for start in batch.keys() - seen.keys())
