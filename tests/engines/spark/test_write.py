"""`hf.write`: matches and refused rows in places of their own, each once, whatever is killed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from handfast.engines.spark.output import MATCHES
from handfast.engines.spark.rows import LATE
from tests.agreement.admission import adds_up, check_counters, late_cases
from tests.agreement.runs import streaming_frames
from tests.engines.spark import crash_job, write_job
from tests.engines.spark.crash_job import PARTITIONS, finish
from tests.engines.spark.outcome import Outcome, read, refused
from tests.engines.spark.process import Process

pytestmark = pytest.mark.spark


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


@pytest.mark.parametrize("windows", [pytest.param("time", marks=pytest.mark.slow), "count"])
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
    outcome = Outcome.of(write_job.spec(windows), crash_job.steps())
    assert outcome.is_telling
    outcome.check_matches(spark, tmp_path / "matches")
    outcome.check_refused(spark, tmp_path)
    outcome.check_counters(hf.metrics(query))


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


def test_a_place_belongs_to_the_checkpoint_that_filled_it(
    spark: SparkSession, tmp_path: Path, matches: DataFrame
) -> None:
    def written(checkpoint: str, **changes: Any) -> Any:
        places: dict[str, Any] = {"to": tmp_path / "matches", "late_rows": tmp_path / "late", **changes}
        return hf.write(matches, checkpoint=tmp_path / checkpoint, trigger={"availableNow": True}, **places)

    finish(written("first"))
    rows = {place: read(spark, tmp_path / place) for place in ("matches", "late/r", "late/s")}
    assert all(rows.values())
    refusal = "which belongs to the checkpoint .*/first; take another path, or go on with that checkpoint"
    with pytest.raises(hf.SpecError, match=f"hf.write: to writes to .*/matches, {refusal}"):
        written("second")
    for kind in ("late_rows", "rejected_rows"):
        with pytest.raises(hf.SpecError, match=f"hf.write: {kind} of 'r' writes to .*/late/r, {refusal}"):
            written("second", **{"to": tmp_path / "other", "late_rows": None, kind: tmp_path / "late"})
    assert not (tmp_path / "second").exists(), "what is refused is not begun"
    finish(written("first"))
    assert rows == {place: read(spark, tmp_path / place) for place in rows}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"to": 7}, "to must be a path or a function of a DataFrame and the batch's number, not 7"),
        ({"late_rows": print}, r"late_rows must be a path.*late_rows=\{'r': …, 's': …\}"),
        ({"late_rows": {"r": "x"}}, "late_rows has places for r, but the streams are r, s"),
        ({"late_rows": "x", "rejected_rows": "x/"}, "Two kinds of rows would be written to 'x/r'"),
        ({"late_rows": {"r": "x", "s": "./y/../x"}}, "Two kinds of rows would be written to './y/../x'"),
        ({"late_rows": {"r": "/x", "s": "file:///x"}}, "Two kinds of rows would be written to 'file:///x'"),
        (
            {"late_rows": "matches/late"},
            "late_rows of 'r' at matches/late/r and to at matches lie one inside the other",
        ),
        ({"checkpoint": "matches"}, "to at matches and checkpoint at matches lie one inside the other; give each"),
        ({"checkpoint": "matches/checkpoint"}, "lie one inside the other; give each a folder of its own"),
        ({"checkpoint": None}, "checkpoint must be the path of a folder, not None"),
        ({"to": ""}, "to must be the path of a folder, not ''"),
        ({"trigger": True}, "trigger must be like '10 seconds' or {'availableNow': True}, not True"),
    ],
)
def test_a_place_that_does_not_serve_is_refused(matches: DataFrame, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(hf.SpecError, match=message):
        hf.write(matches, **{"to": "matches", "checkpoint": "checkpoint", **changes})


def test_a_column_that_would_be_taken_for_the_batch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS k", "value AS Handfast_Batch")
    matches = hf.join({"r": rows, "s": rows}, on="r.k = s.k", window="1 second", time="ts", lateness="0 seconds")
    with pytest.raises(hf.SpecError, match="late_rows of 'r' has a column 'Handfast_Batch', which in the folder is"):
        hf.write(matches, to=tmp_path / "to", late_rows=tmp_path / "late", checkpoint=tmp_path / "checkpoint")


def test_a_place_that_is_added_later_can_be_read(spark: SparkSession, matches: DataFrame, tmp_path: Path) -> None:
    def run(**places: Any) -> None:
        where = {"to": tmp_path / "matches", "checkpoint": tmp_path / "checkpoint", **places}
        finish(hf.write(matches, trigger={"availableNow": True}, **where))

    run()
    run(rejected_rows=tmp_path / "rejected")
    assert not read(spark, tmp_path / "rejected" / "r")


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
