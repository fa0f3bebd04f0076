"""Joins fed step by step: the same rows in, the same matches out after every step, on each engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import handfast as hf
import handfast.testing as hft
from tests.judges.rows import result_of
from tests.scenarios.timeline import Scenario, count, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = hf.JoinSpec(("r", "s"), "r.k = s.k", window="5 seconds", time="ts", lateness="2 seconds")
STREAMS = {"r": "ts: timestamp | k: int", "s": "ts: timestamp | k: int"}
LIVE = [s for s in scenarios() if all(own.lateness is not None for own in s.spec.streams) and "clock" not in s.text]


def by_hand(spark: SparkSession | None) -> None:
    """The steps of one small story."""
    with hft.steps(SPEC, STREAMS, spark=spark, cores=2) as join:
        assert 0 == len(join.matches) == len(join.step())
        hft.assert_same(join.step(r="ts | k\n+10s | 1"), "r_ts | r_k | s_ts | s_k | match_time")
        hft.assert_same(
            join.step(s="ts | k\n+12s | 1\n+12s | 2", r="ts | k\n+11s | 2"),
            """
            r_ts | r_k | s_ts | s_k | match_time
            +10s | 1   | +12s | 1   | +12s
            +11s | 2   | +12s | 2   | +12s
            """,
        )
        # the watermark is at +9s: this row of +9s is in time, that of +8s is late
        hft.assert_same(
            join.step(s="ts | k\n+9s | 1\n+8s | 1"),
            "r_ts | r_k | s_ts | s_k | match_time\n+10s | 1 | +9s | 1 | +10s",
        )
        assert 3 == len(join.matches)


def test_steps_in_this_process() -> None:
    by_hand(None)


@pytest.mark.spark
def test_steps_on_spark(spark: SparkSession) -> None:
    before = dict(spark.conf.getAll)
    by_hand(spark)
    assert before == dict(spark.conf.getAll)


@pytest.mark.parametrize("scenario", LIVE, ids=lambda scenario: scenario.title)
def test_a_timeline_fed_step_by_step_gives_what_a_person_finds(scenario: Scenario) -> None:
    with hft.steps(scenario.spec, scenario.tables) as join:
        for step in scenario.steps:
            join.step(**step)
        late = {row["name"] for table in join.late_rows().values() for row in table.to_pylist()}
        join.end()
    assert scenario.late == late
    assert count(scenario.matches) == count(scenario.named(result_of(join.matches)))


def test_all_streams_of_a_step_are_judged_by_the_watermark_before_it() -> None:
    with hft.steps(SPEC, STREAMS) as join:
        join.step(r="ts | k\n+1s | 1", s="ts | k\n+20s | 1")
        join.step(r="ts | k\n+20s | 1", s="ts | k\n+3s | 1")  # r alone would have moved the watermark to +18s
        assert [0, 0] == [len(rows) for rows in join.late_rows().values()]
        join.step(s="ts | k\n+17s | 1")
        assert [0, 1] == [len(rows) for rows in join.late_rows().values()]


def test_what_waits_comes_at_the_end() -> None:
    spec = hf.JoinSpec(("r", "s"), "TRUE", window="1 row", time="ts", lateness="0 seconds")
    with hft.steps(spec, STREAMS) as join:
        assert 0 == len(join.step(r="ts | k\n+1s | 1", s="ts | k\n+1s | 1"))
        assert 1 == len(join.end()) == len(join.matches)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(hf.SpecError, match="steps needs to know what stream 's' looks like"):
        hft.steps(SPEC, {"r": STREAMS["r"]})
    with hft.steps(SPEC, STREAMS) as join:
        with pytest.raises(hf.SpecError, match="The join has no stream 't'; it has r, s"):
            join.step(t="ts | k")
        with pytest.raises(hf.SpecError, match="A step of stream 'r' has the columns ts; it must have ts, k"):
            join.step(r="ts\n+1s")
        with pytest.raises(hf.SpecError, match="A step of stream 'r' does not fit its columns"):
            join.step(r=pa.table({"ts": hft.table("ts\n+1s")["ts"], "k": [1 << 40]}))


@pytest.mark.spark
def test_what_spark_cannot_show_is_said(spark: SparkSession) -> None:
    with hft.steps(SPEC, STREAMS, spark=spark) as join:
        with pytest.raises(hf.UnsupportedError, match="A stream on Spark has no end"):
            join.end()
        with pytest.raises(hf.UnsupportedError, match="Spark does not show late rows here"):
            join.late_rows()
