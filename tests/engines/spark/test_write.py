"""`hf.write`: matches and refused rows in places of their own, each once, whatever is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from handfast import oracle
from handfast.engines.spark.output import LATE, MATCHES
from tests.agreement.door import adds_up, check_counters, late_cases
from tests.agreement.runs import streaming_frames
from tests.engines.spark import crash_job, write_job
from tests.engines.spark.crash_job import PARTITIONS, finish
from tests.engines.spark.process import Process
from tests.judges.rows import Row, multiset, result_of, schemas_of, tables_of

pytestmark = pytest.mark.spark

Rows = Counter[tuple[Any, ...]]


def read(spark: SparkSession, path: Path) -> Rows:
    """The rows at a place, without the numbers of their batches."""
    return multiset(result_of(spark.read.parquet(str(path)).drop("handfast_batch").toArrow()))


def refused(rows: Mapping[str, list[Row]]) -> dict[str, Rows]:
    """Rows that the oracle refuses, by stream."""
    own = {stream: [{c: row[c] for c in row if c != "#"} for row in found] for stream, found in rows.items()}
    return {stream: multiset(tuple(row.values()) for row in found) for stream, found in own.items()}


@pytest.mark.parametrize("number", [0, 1])
def test_every_row_is_at_the_place_where_the_oracle_puts_it(spark: SparkSession, tmp_path: Path, number: int) -> None:
    case = late_cases()[number]
    hf.configure(spark, cores=case.cores)
    places = {stream: tmp_path / f"late-{stream}" for stream in case.streams}
    query = hf.write(
        hf.join(streaming_frames(case, spark, tmp_path), case.spec),
        to=tmp_path / "matches",
        late_rows=places,
        rejected_rows=str(tmp_path / "rejected"),
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        name="to_their_places",
    )
    finish(query)
    assert "to_their_places" == query.name
    found = read(spark, tmp_path / "matches")
    assert case.expected_of_steps() == found, f"{case}"
    assert refused(case.admission.late) == {s: read(spark, path) for s, path in places.items()}, f"{case}"
    rejected = {stream: read(spark, tmp_path / "rejected" / stream) for stream in case.streams}
    assert refused(case.admission.rejected) == rejected, f"{case}"
    for progress in query.recentProgress:
        if progress.numInputRows:
            assert adds_up(hf.metrics(progress))
    check_counters(case, hf.metrics(query), sum(found.values()))


# -- killed between its writes ---------------------------------------------------------------------------------------

KILLS = {
    "time": ((1, LATE, 0), (3, MATCHES, None)),
    "count": ((2, LATE, 1),),
}


@pytest.mark.parametrize("windows", KILLS)
def test_a_query_killed_between_its_writes_loses_no_row_and_repeats_none(
    spark: SparkSession, tmp_path: Path, windows: str
) -> None:
    crash_job.write_files(tmp_path / "inputs")
    for batch, kind, stream in KILLS[windows]:
        job = write_job.Job(str(tmp_path), windows, batch, kind, stream)
        process = Process(tmp_path, "tests.engines.spark.write_job", asdict(job))
        try:
            process.wait_for([job.marker])
        finally:
            process.kill()
    hf.configure(spark, cores=PARTITIONS)
    query = write_job.start(spark, tmp_path / "inputs", tmp_path, windows)
    finish(query)
    batches = crash_job.steps()
    join = write_job.spec(windows).bind(schemas_of(batches[0]))
    admission = oracle.admit(join, map(tables_of, batches))
    assert all(admission.late.values())
    assert admission.rejected["s"]
    assert multiset(oracle.result(join, oracle.final(join, admission))) == read(spark, tmp_path / "matches")
    for name, expected in (("late", admission.late), ("rejected", admission.rejected)):
        assert refused(expected) == {stream: read(spark, tmp_path / name / stream) for stream in ("r", "s")}
    counted = hf.metrics(query)
    assert adds_up(counted)
    for stream, own in counted.streams.items():
        late, rejected = len(admission.late[stream]), len(admission.rejected[stream])
        sent = sum(step[stream].num_rows for step in batches)
        assert (sent, late, rejected) == (own.rows_in, own.late, own.rejected)


# -- places ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def matches(spark: SparkSession, tmp_path: Path) -> DataFrame:
    hf.configure(spark, cores=PARTITIONS)
    crash_job.write_files(tmp_path / "inputs", last=3)
    return hf.join(crash_job.frames(spark, tmp_path / "inputs"), write_job.spec("time"))


def test_functions_get_the_rows_and_the_number_of_each_batch_that_has_any(
    spark: SparkSession, tmp_path: Path, matches: DataFrame
) -> None:
    got: dict[str, list[tuple[int, int]]] = {"matches": [], "late": []}
    query = hf.write(
        matches,
        to=lambda rows, batch: got["matches"].append((batch, rows.count())),
        late_rows={"r": lambda rows, batch: got["late"].append((batch, rows.count())), "s": tmp_path / "late"},
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    finish(query)
    numbers = [batch for batch, _ in got["late"]]
    assert numbers == sorted(set(numbers))
    assert 0 not in numbers, "no row of the first batch is late"
    counted = hf.metrics(query)
    assert counted.matches == sum(rows for _, rows in got["matches"]) > 0
    assert counted.streams["r"].late == sum(rows for _, rows in got["late"]) > 0
    assert counted.streams["s"].late == spark.read.parquet(str(tmp_path / "late")).count() > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"to": 7}, "to must be a path or a function of a DataFrame and the batch's number, not 7"),
        ({"late_rows": print}, r"late_rows must be a path.*late_rows=\{'r': …, 's': …\}"),
        ({"late_rows": {"r": "x"}}, "late_rows has places for r, but the streams are r, s"),
        ({"late_rows": "x", "rejected_rows": "x/"}, "Two kinds of rows would be written to 'x/r'"),
    ],
)
def test_a_place_that_does_not_serve_is_refused(matches: DataFrame, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=message):
        hf.write(matches, **{"to": "matches", "checkpoint": "checkpoint", **changes})


def test_only_what_join_returned_has_late_rows(spark: SparkSession, matches: DataFrame) -> None:
    with pytest.raises(hf.SpecError, match=r"just as hf.join returned it.*to=lambda rows, batch"):
        hf.write(matches.where("r_x > 3"), to="x", checkpoint="y")
    with pytest.raises(hf.SpecError, match=r"the matches of batch inputs go out by matches.write"):
        hf.write(spark.range(3), to="x", checkpoint="y")
    with pytest.raises(hf.SpecError, match=r"that hf.join returned, not a Table"):
        hf.write(pa.table({}), to="x", checkpoint="y")


def test_a_query_without_a_join_has_no_counters(spark: SparkSession) -> None:
    query = spark.readStream.format("rate").load().writeStream.format("noop").start()
    try:
        with pytest.raises(hf.EngineError, match="no counters of a join yet"):
            hf.metrics(query)
    finally:
        query.stop()
