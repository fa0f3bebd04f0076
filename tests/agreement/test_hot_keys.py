"""On Spark, hot keys and hot ranges that are split give what both judges find, in batch and streaming."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import handfast as hf
from tests.agreement.runs import spark_batch, spark_streaming
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOINS: tuple[tuple[str, hf.SparkOptions, dict[str, Any]], ...] = (
    ("r.k = s.k AND r.x <= s.x", hf.SparkOptions(hot_keys=[7]), {"how": "left"}),
    ("r.k BETWEEN s.k - 1 AND s.k + 1", hf.SparkOptions(hot_ranges=[(5, 9)]), {}),
    ("r.t = s.t AND r.k = s.k", hf.SparkOptions(hot_keys=[("hot", 7), ("cold", 1)]), {"how": "semi"}),
    ("r.k = s.k", hf.SparkOptions(hot_keys=[7]), {"window": {"r": "5 rows", "s": "2 seconds"}, "sequence": "n"}),
    ("r.k = s.k", hf.SparkOptions(hot_keys=[7, 8]), {"how": "right"}),
    ("r.t = s.t", hf.SparkOptions(hot_keys=["hot"]), {"how": "anti"}),
    ("ABS(r.k - s.k) <= 2", hf.SparkOptions(hot_ranges=[(0, 8)]), {"how": "right"}),
)


def skewed(seed: int, on: str, more: dict[str, Any]) -> Case:
    """A case most of whose rows have one key."""
    chance = random.Random(seed)
    steps = [{name: _rows(chance, step, name) for name in "rs"} for step in range(3)]
    tables = {name: pa.concat_tables([step[name] for step in steps]) for name in "rs"}
    kwargs = {"on": on, "window": "3 seconds", "time": "ts", **more}
    return Case(SHAPES[0], ("r", "s"), kwargs, "1 second", tables, steps, 3, origin=f"skewed({seed})")


def _rows(chance: random.Random, step: int, name: str) -> pa.Table:
    count = chance.randint(10, 25)
    times = [chance.choice([*range(step * 2_000_000, step * 2_000_000 + 4_000_000, 250_000), None])] * count
    times = [chance.choice([time, chance.randrange(step * 2_000_000, step * 2_000_000 + 4_000_000)]) for time in times]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array([chance.choice([7, 7, 7, 7, 8, 1, 20, None]) for _ in range(count)], pa.int32()),
            "t": [chance.choice(["hot", "hot", "hot", "cold", None]) for _ in range(count)],
            "x": [chance.choice([0.5, 1.0, None]) for _ in range(count)],
            "n": pa.array(range(step * 100, step * 100 + count), pa.int64()),
        }
    )


@pytest.mark.parametrize("number", sampled(range(len(JOINS)), 3))
def test_batch_with_split_keys(
    spark: SparkSession, number: int, record_property: Callable[[str, object], None]
) -> None:
    on, options, more = JOINS[number]
    case = skewed(number, on, more)
    expected = case.expected()
    assert expected and expected == case.judged(), f"judges: {case}"
    assert expected == spark_batch(case, spark, options), f"{case}"
    record_property("cases of hot keys", 1)


@pytest.mark.parametrize("number", sampled(range(len(JOINS)), 2))
def test_streaming_with_split_keys(
    spark: SparkSession, tmp_path: Path, number: int, record_property: Callable[[str, object], None]
) -> None:
    on, options, more = JOINS[number]
    case = skewed(number, on, more)
    expected = case.expected_of_steps()
    assert expected and expected == case.judged_of_steps(), f"judges: {case}"
    assert expected == spark_streaming(case, spark, tmp_path, options), f"{case}"
    record_property("cases of hot keys", 1)


def test_what_cannot_be_split_is_refused(spark: SparkSession) -> None:
    hf.configure(spark, cores=2, quiet=True)
    case = skewed(0, "r.k = s.k", {})
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    keys, ranges = hf.SparkOptions(hot_keys=[7]), hf.SparkOptions(hot_ranges=[(5, 9)])
    asked = {"window": "1 second", "time": "ts"}
    for on, options, how in (
        ("r.x < s.x", keys, "inner"),
        ("r.k = s.k", keys, "full"),
        ("r.k = s.k", ranges, "inner"),
        ("r.k BETWEEN s.k - 1 AND s.k + 1", keys, "inner"),
    ):
        with pytest.raises(hf.SpecError, match="is for two streams that"):
            hf.join(frames, on=on, options=options, how=how, **asked)
    with pytest.raises(hf.SpecError, match="do not fit k"):
        hf.join(frames, on="r.k = s.k", options=hf.SparkOptions(hot_keys=["seven"]), **asked)
    with pytest.raises(hf.SpecError, match=r"hot_keys=…\) is a list, not 7"):
        hf.SparkOptions(hot_keys=7)  # type: ignore[arg-type]
    with pytest.raises(hf.SpecError, match=r"hot_keys=…\) holds values of columns, not \[\{'k': 7\}\]"):
        hf.SparkOptions(hot_keys=[{"k": 7}])
    with pytest.raises(hf.SpecError, match="leave one out"):
        hf.SparkOptions(hot_keys=[7], hot_ranges=[(1, 2)])


def test_explain_names_the_split(spark: SparkSession) -> None:
    hf.configure(spark, cores=2, quiet=True)
    case = skewed(0, "r.k = s.k", {})
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    asked = {"window": "1 second", "time": "ts"}
    text = hf.explain(frames, on="r.k = s.k", options=hf.SparkOptions(hot_keys=[7]), **asked)
    assert "routing    hash, 1 hot key split, over 2 cores" in text
    text = hf.explain(frames, on="ABS(r.k - s.k) <= 2", options=hf.SparkOptions(hot_ranges=[(5, 9)]), **asked)
    assert "range, with copies at the borders, 1 hot range split, over 2 cores" in text
