"""Whatever is killed, fails, is forgotten or runs twice: the committed output has every match once."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from handfast.core.planner import make_plan
from handfast.engines.spark import engine, operator
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.pack import SEQUENCER
from handfast.engines.spark.sequence import SequenceProcessor
from handfast.errors import EngineError
from handfast.flow.block import Block
from tests.engines.spark import crash_job
from tests.engines.spark.crash_job import (
    PARTITIONS,
    Accident,
    Job,
    expected,
    finish,
    frames,
    runs,
    spec,
    to_files,
)
from tests.engines.spark.driven import Luck, State, Workers, arrivals, manifest_of, matches_of, plan, run
from tests.engines.spark.process import Process
from tests.judges.rows import multiset, result_of, schemas_of

JOINS = tuple(crash_job.JOINS)
EACH_JOIN = pytest.mark.parametrize("join", JOINS)
BOTH = tuple(range(PARTITIONS))
FEW = 3  # files, where so many are enough
SMALL = 8  # rows of a batch, where many batches are wanted

Result = Counter[tuple[Any, ...]]


def committed(spark: SparkSession, path: Path) -> Result:
    """What a reader sees who goes through Spark, which knows the files of committed batches."""
    return multiset(result_of(spark.read.parquet(str(path)).toArrow()))


def test_the_joins_are_routed_in_different_ways() -> None:
    layout = {join: (plan(join).routing.name, plan(join).join.counted) for join in JOINS}
    assert {"range": ("range", False), "meet": ("meet", False), "count": ("range", True)} == layout


# -- a driver killed in mid-batch ------------------------------------------------------------------------------------


def start_job(job: Job) -> Process:
    """The job in a process of its own."""
    return Process(Path(job.folder), "tests.engines.spark.crash_job", crash_job.asdict(job))


KILLS = (
    # the first batch: every state written, nothing committed
    (("range", "meet"), (Accident(0, 0), Accident(0, 1))),
    # a later one: a task amid its matches, the other at their end
    (JOINS, (Accident(2, 0, early=True), Accident(2, 1))),
)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All joins, run in a process that was killed in mid-batch time and again, in other batches."""
    folder = tmp_path_factory.mktemp("killed")
    crash_job.write_files(folder / "inputs")
    for joins, accidents in KILLS:
        places = tuple((a.batch, a.partition, a.early) for a in accidents)
        process = start_job(Job(str(folder), joins, f"local[{PARTITIONS * len(joins)}]", "block", places))
        try:
            process.wait_for([a.marker(folder / join) for join in joins for a in accidents])
        finally:
            process.kill()
        for join in joins:
            check_mid_batch(folder / join, accidents)
    return folder


def check_mid_batch(home: Path, accidents: tuple[Accident, ...]) -> None:
    """The batch was begun and not committed, though tasks had written the state that follows it."""
    batch = accidents[0].batch
    assert (home / "checkpoint" / "offsets" / str(batch)).exists()
    assert not (home / "checkpoint" / "commits" / str(batch)).exists()
    operators = [path for path in (home / "checkpoint" / "state").iterdir() if path.name.isdigit()]
    for accident in accidents:
        state = max(operators, key=lambda path: int(path.name)) / str(accident.partition)  # the last one joins
        versions = {int(path.name.split(".")[0].split("_")[0]) for path in state.rglob("*.changelog")}
        assert accident.early or batch + 1 in versions, f"{versions} in {state}"


@pytest.mark.spark
@EACH_JOIN
def test_a_driver_killed_in_mid_batch_loses_no_match_and_repeats_none(
    spark: SparkSession, killed: Path, join: str
) -> None:
    hf.configure(spark, cores=PARTITIONS)
    finish(to_files(hf.join(frames(spark, killed / "inputs"), spec(join)), killed / join))
    assert expected(join) == committed(spark, killed / join / "output")


# -- tasks that fail -------------------------------------------------------------------------------------------------

FAILURES = (
    *(Accident(0, partition) for partition in BOTH),
    *(Accident(1, 0, early) for early in (True, False)),  # the same task twice
    Accident(1, 1, early=True),
    *(Accident(2, partition) for partition in BOTH),
)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All joins, run with tasks that failed and were run again."""
    folder = tmp_path_factory.mktemp("failing")
    crash_job.write_files(folder / "inputs", last=FEW)
    places = tuple((a.batch, a.partition, a.early) for a in FAILURES)
    start_job(Job(str(folder), JOINS, f"local[{PARTITIONS},4]", "fail", places)).finish()
    return folder


@pytest.mark.spark
@EACH_JOIN
def test_tasks_that_fail_and_run_again_lose_no_match_and_repeat_none(
    spark: SparkSession, failing: Path, join: str
) -> None:
    attempts = Counter((run.batch, run.partition) for run in runs(failing / join))
    failures = Counter((a.batch, a.partition) for a in FAILURES if a.marker(failing / join).exists())
    tasks = [(batch, partition) for batch in range(FEW) for partition in BOTH]
    assert Counter((a.batch, a.partition) for a in FAILURES) == failures
    assert {task: 1 + failures[task] for task in tasks} == attempts
    assert expected(join, files=FEW) == committed(spark, failing / join / "output")


# -- caches lost -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.spark
def test_workers_that_live_for_one_task_only_find_the_same(spark: SparkSession, tmp_path: Path) -> None:
    crash_job.write_files(tmp_path / "inputs", last=2)
    settings = (("spark.python.worker.reuse", "false"),)
    start_job(Job(str(tmp_path), ("range",), f"local[{PARTITIONS}]", settings=settings)).finish()
    found = runs(tmp_path / "range")
    assert len(found) == 2 * PARTITIONS == len({run.worker for run in found})
    assert not any(run.cached for run in found)
    assert expected("range", files=2) == committed(spark, tmp_path / "range" / "output")


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., DataFrame]:
    """A join over the files, its operator watched."""
    hf.configure(spark, cores=PARTITIONS)
    crash_job.write_files(tmp_path / "inputs", last=FEW)

    def start(join: str, *, forgetful: bool = False) -> DataFrame:
        monkeypatch.setattr(engine, "JoinProcessor", crash_job.watch(tmp_path / "runs", forgetful=forgetful))
        return hf.join(frames(spark, tmp_path / "inputs"), spec(join))

    return start


def by_batch(matches: DataFrame, folder: Path, write: Callable[[DataFrame, int], None]) -> None:
    """Hand every batch to a function of the user's, to the end."""
    query = matches.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    finish(query.trigger(availableNow=True).start())


@pytest.mark.spark
def test_killing_the_workers_between_batches_changes_nothing(
    spark: SparkSession, tmp_path: Path, start: Callable[..., DataFrame]
) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(tmp_path / "output" / str(number)))
        for worker in {found.worker for found in runs(tmp_path / "runs") if found.batch == number}:
            with suppress(ProcessLookupError):  # gone of its own accord: as good
                os.kill(worker, signal.SIGKILL)

    by_batch(start("range"), tmp_path, write)
    found = runs(tmp_path / "runs")
    assert len(found) == FEW * PARTITIONS
    assert not any(run.cached for run in found)
    assert expected("range", files=FEW) == committed(spark, tmp_path / "output" / "*")


@pytest.mark.spark
@EACH_JOIN
def test_caches_forgotten_before_every_batch_change_nothing(
    spark: SparkSession, tmp_path: Path, start: Callable[..., DataFrame], join: str
) -> None:
    finish(to_files(start(join, forgetful=True), tmp_path))
    found = runs(tmp_path / "runs")
    assert len(found) == FEW * PARTITIONS
    assert not any(run.cached for run in found)
    assert expected(join, files=FEW) == committed(spark, tmp_path / "output")


# -- the operator run more than once in a batch ----------------------------------------------------------------------


@pytest.mark.spark
@EACH_JOIN
def test_two_writes_of_a_batch_both_have_every_match_once(
    spark: SparkSession, tmp_path: Path, start: Callable[..., DataFrame], join: str
) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(tmp_path / "one" / str(number)))
        batch.limit(1).collect()  # takes one match, and leaves the operator in the middle of its work
        batch.write.mode("overwrite").parquet(str(tmp_path / "other" / str(number)))

    by_batch(start(join), tmp_path, write)
    attempts = Counter((run.batch, run.partition) for run in runs(tmp_path / "runs"))
    assert all(attempts[batch, partition] >= 2 for batch in range(FEW) for partition in BOTH)
    assert expected(join, files=FEW) == committed(spark, tmp_path / "one" / "*")
    assert expected(join, files=FEW) == committed(spark, tmp_path / "other" / "*")


# -- a checkpoint of another join ------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[int, dict[str, Any], str]] = {
    "a wider window": (
        PARTITIONS,
        {"window": "4 seconds"},
        r"\(window of 'r' was 2 s, is 4 s; window of 's' was 3 s, is 4 s\)",
    ),
    "another predicate": (
        PARTITIONS,
        {"on": "r.x = s.a"},
        r"\(on was r\.x BETWEEN s\.a - 10 AND s\.a \+ 10, is r\.x = s\.a\)",
    ),
    "another lateness": (
        PARTITIONS,
        {"lateness": {"r": "1 second", "s": "5 seconds"}},
        r"\(lateness of 's' was 1 s, is 5 s\)",
    ),
    "more cores": (PARTITIONS + 1, {}, rf"\(cores was {PARTITIONS}, is {PARTITIONS + 1}\)"),
}
ASKED = {"on": crash_job.BAND, "window": crash_job.WINDOWS["short"], "lateness": "1 second"}
WRONG_CHECKPOINT = "The checkpoint was written by another join or for another number of cores"


def changed(changes: dict[str, Any]) -> hf.JoinSpec:
    """The join of `spec("range")`, but for some changes."""
    asked = ASKED | changes
    return hf.JoinSpec(("r", "s"), asked.pop("on"), time="ts", **asked)


def test_without_a_change_it_is_the_same_join() -> None:
    assert spec("range") == changed({})


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A join that has seen two of three files."""
    folder = tmp_path_factory.mktemp("stopped")
    crash_job.write_files(folder / "inputs", last=2)
    hf.configure(spark, cores=PARTITIONS)
    finish(to_files(hf.join(frames(spark, folder / "inputs"), spec("range")), folder))
    crash_job.write_files(folder / "inputs", first=2, last=3)
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_join_is_refused(spark: SparkSession, stopped: Path, change: str) -> None:
    cores, changes, words = CHANGES[change]
    hf.configure(spark, cores=cores)
    asked: dict[str, Any] = {
        "on": spec("range").on,
        "window": {"r": "2 seconds", "s": "3 seconds"},
        "lateness": "1 second",
    }
    matches = hf.join(frames(spark, stopped / "inputs"), time="ts", **asked | changes)
    with pytest.raises(StreamingQueryException, match=rf"EngineError: {WRONG_CHECKPOINT} {words}"):
        finish(to_files(matches, stopped))


@pytest.mark.spark
def test_spark_itself_refuses_a_checkpoint_where_a_window_began_to_count(spark: SparkSession, stopped: Path) -> None:
    hf.configure(spark, cores=PARTITIONS)
    matches = hf.join(frames(spark, stopped / "inputs"), changed({"window": "100 rows"}))
    with pytest.raises(StreamingQueryException, match="STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"):
        finish(to_files(matches, stopped))


@pytest.mark.spark
def test_the_join_it_was_started_with_goes_on_after_others_were_refused(spark: SparkSession, stopped: Path) -> None:
    hf.configure(spark, cores=PARTITIONS)
    finish(to_files(hf.join(frames(spark, stopped / "inputs"), spec("range")), stopped))
    assert expected("range", files=3) == committed(spark, stopped / "output")


# -- the operator on a state store of our own, where every accident can be had at will -------------------------------


@pytest.fixture
def luck(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Luck:
    return Luck(random.Random(request.param), Workers(3, monkeypatch))


SEEDS = pytest.mark.parametrize("luck", range(2), indirect=True)


@SEEDS
@pytest.mark.parametrize("window", ["short", "long"])
@pytest.mark.parametrize("join", ["range", "meet"])
def test_a_core_is_right_whatever_became_of_earlier_attempts(join: str, window: str, luck: Luck) -> None:
    asked, found = plan(join, window), []
    for core in BOTH:
        state = State()
        for tables in crash_job.steps(SMALL):
            state, output = luck.attempts(lambda: JoinProcessor(asked), state, arrivals(asked, tables, core))
            found += matches_of(output)
            ids = {id_ for own in manifest_of(state).blocks for id_ in own}
            assert ids == state.blocks.keys(), "the state holds the blocks of its manifest and no others"
        assert (window == "long") == any(len(Block.decode(block)) > SMALL for block in state.blocks.values()), "merged"
    assert expected(join, window) == multiset(found)


@SEEDS
def test_the_sequencer_is_right_whatever_became_of_earlier_attempts(luck: Luck) -> None:
    asked, found, state, cores = plan("count"), [], State(), [State() for _ in BOTH]
    for tables in crash_job.steps(SMALL):
        rows = arrivals(asked, tables, SEQUENCER)
        state, sent = luck.attempts(lambda: SequenceProcessor(asked), state, rows)
        assert state.value is not None
        waiting = {id_ for own in json.loads(state.value[0])[-1] for id_ in own}
        assert waiting == state.blocks.keys(), "the state holds the blocks that wait and no others"
        for core in BOTH:
            own = sent[sent["core"] == core_key(core)]
            cores[core], output = luck.attempts(lambda: JoinProcessor(asked), cores[core], own)
            found += matches_of(output)
    assert expected("count") == multiset(found)


def test_a_core_restored_from_its_blocks_goes_on_as_the_one_that_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stragglers of `r`; the old block between eight young ones expires, and the eight become one."""
    Workers(1, monkeypatch).be(0)
    join = hf.JoinSpec(("r", "s"), "r.x = s.x", window="4 seconds", time="ts", lateness="10 seconds")
    young = [{"r": [8.5]}] * 4
    timeline = [
        {"r": [30.0], "s": [17.0]},
        *young,
        {"r": [7.0, 8.0]},
        *young,
        {"s": [22.2]},
        {"s": [13.0]},
        {"r": [13.0]},
    ]
    tables = [{stream: seconds(step.get(stream, [])) for stream in ("r", "s")} for step in timeline]
    asked = make_plan(join.bind(schemas_of(tables[0])), 1)
    lasting, restored = State(), State()
    workers = Workers(2, monkeypatch)
    for number, step in enumerate(tables):
        rows = arrivals(asked, step, 0)
        workers.be(0)
        once = run(asked, lasting, rows)
        workers.be(1)
        operator.forget()
        assert once == run(asked, restored, rows)
        assert lasting.contents() == restored.contents(), f"after batch {number}"
    held = [Block.decode(lasting.blocks[id_]) for id_ in manifest_of(lasting).blocks[0]]
    assert [1, 8, 1] == [len(block) for block in held]  # at 30, the eight, at 13


def seconds(times: list[float]) -> pa.Table:
    """Rows at these seconds."""
    stamps = pa.array([int(second * 1_000_000) for second in times], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "x": pa.array([1] * len(times), pa.int32())})


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "not cached"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_operator_refuses_a_state_of_another_join(
    monkeypatch: pytest.MonkeyPatch, change: str, cached: bool
) -> None:
    Workers(1, monkeypatch).be(0)
    asked, state, tables = plan("range"), State(), crash_job.steps()[0]
    run(asked, state, arrivals(asked, tables, 0))
    cores, changes, words = CHANGES[change]
    other = make_plan(changed(changes).bind(schemas_of(tables)), cores)
    if not cached:
        operator.forget()
    with pytest.raises(EngineError, match=f"{WRONG_CHECKPOINT} {words}; go back to the join it was started with"):
        run(other, state, arrivals(other, tables, 0))
