"""Killed at any moment, a driver, an executor or a Python worker: every row and every counter is as the oracle says."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from handfast.flow.metrics import Metrics
from tests.agreement.door import adds_up
from tests.engines.spark.crash_job import PARTITIONS, write_batches
from tests.engines.spark.kill_job import FILE_SINK, FILES, JOINS, LAST, WRITE, Job, batches, spec
from tests.engines.spark.outcome import Outcome
from tests.engines.spark.process import Process, executors, workers

pytestmark = pytest.mark.spark

DRIVER, EXECUTOR, WORKER = VICTIMS = ("driver", "executor", "worker")
MASTERS = {
    DRIVER: f"local[{PARTITIONS}]",
    EXECUTOR: "local-cluster[2,1,1024]",
    WORKER: f"local[{PARTITIONS},4]",  # a task is tried four times, as it is in a cluster
}
MOST_FILES = 60  # that have come when the last batch is at the gate, or fewer
LONGEST = 0.4  # seconds from a file to the kill


@dataclass(frozen=True)
class Draw:
    """What a seed says: who is killed in which join, so many seconds after so many files have come."""

    seed: int
    join: str
    sink: str
    victim: str
    files: int
    seconds: float

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Joins, victims and sinks by turns, each with each; the moment by chance."""
        chance = random.Random(seed)
        return cls(
            seed,
            tuple(JOINS)[seed % len(JOINS)],
            FILE_SINK if seed % 5 == 3 else WRITE,
            VICTIMS[(seed + seed // len(JOINS)) % len(VICTIMS)],
            chance.randint(1, MOST_FILES),
            chance.uniform(0, LONGEST),
        )


def test_the_draws_are_of_every_kind() -> None:
    draws = [Draw.of(seed) for seed in range(len(JOINS) * len(VICTIMS))]
    assert {(join, victim) for join in JOINS for victim in VICTIMS} == {(draw.join, draw.victim) for draw in draws}
    few = draws[: len(JOINS)]
    assert (set(JOINS), set(VICTIMS)) == ({draw.join for draw in few}, {draw.victim for draw in few})
    assert {WRITE, FILE_SINK} == {draw.sink for draw in few}


@pytest.mark.parametrize("seed", range(len(JOINS)))
def test_a_kill_at_any_moment_changes_nothing(
    spark: SparkSession, tmp_path: Path, seed: int, record_property: Any
) -> None:
    record_property(f"kill {seed}", survive(spark, tmp_path, Draw.of(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(JOINS), 200))
def test_no_kill_of_many_changes_anything(spark: SparkSession, tmp_path: Path, seed: int, record_property: Any) -> None:
    record_property(f"kill {seed}", survive(spark, tmp_path, Draw.of(seed)))


def survive(spark: SparkSession, folder: Path, draw: Draw) -> str:
    """Run a join, kill as drawn, let it end, and compare all there is with the oracle; what was killed when."""
    sent = batches(draw.join, draw.seed)
    write_batches(folder / "inputs", sent)
    job = Job(str(folder), draw.join, draw.sink, MASTERS[draw.victim])
    process = start(job)
    try:
        moment = kill(process, job, draw)
        if draw.victim == DRIVER:
            process = start(job)
        process.finish()
    finally:
        process.kill()
    check_cut(folder / "checkpoint", spec(draw.join).names)
    outcome = Outcome.of(spec(draw.join), sent)
    assert outcome.is_telling
    outcome.check_matches(spark, folder / "output")
    if draw.sink == WRITE:
        outcome.check_refused(spark, folder)
    counted = [Metrics.decode(own) for own in json.loads(job.counters.read_text())]
    assert all(map(adds_up, counted))
    outcome.check_counters(counted[-1])
    return moment


def start(job: Job) -> Process:
    return Process(job.home, "tests.engines.spark.kill_job", asdict(job))


# -- the kill --------------------------------------------------------------------------------------------------------


def kill(process: Process, job: Job, draw: Draw) -> str:
    """Kill the victim at the moment that is drawn, or at the gate, and open the gate; what was killed when."""
    seen: set[str] = set()

    def is_due() -> bool:
        seen.update(files_of(job.home))
        return len(seen) >= draw.files or job.gate.reached.exists()

    process.wait_until(is_due, f"{draw.files} files")
    time.sleep(draw.seconds)
    if draw.victim == DRIVER:
        process.kill()
    else:
        find = executors if draw.victim == EXECUTOR else workers
        process.kill_one(find, random.Random(draw.seed))
    begun, done = (numbers(job.home / "checkpoint" / log) for log in ("offsets", "commits"))
    assert seen, "the query had begun"
    assert LAST not in done, "and had not ended: the last batch is held back until now"
    job.gate.is_open.touch()
    return (
        f"{draw.join}: {draw.victim} after {len(seen)} files, {len(done)} of {FILES} batches done, {len(begun)} begun"
    )


def files_of(home: Path) -> list[str]:
    """The files that the query has written so far; those not yet in their place have hidden names."""
    places = [home / "checkpoint", home / "output"]
    found = [(folder, name) for place in places for folder, _, names in os.walk(place) for name in names]
    return [f"{folder}/{name}" for folder, name in found if not name.startswith(".")]


def numbers(log: Path) -> list[int]:
    """The batches in a log."""
    return sorted(int(path.name) for path in log.glob("*") if path.name.isdigit())


# -- the batches -----------------------------------------------------------------------------------------------------


def check_cut(checkpoint: Path, streams: tuple[str, ...]) -> None:
    """Every batch was one file of each stream, the same before and after: which rows are late goes by that."""
    assert list(range(FILES)) == numbers(checkpoint / "offsets") == numbers(checkpoint / "commits")
    for batch in range(FILES):
        offsets = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
        assert [{"logOffset": batch}] * len(streams) == [json.loads(offset) for offset in offsets]
        logs = [checkpoint / "sources" / str(number) / str(batch) for number in range(len(streams))]
        read = [Path(json.loads(line)["path"]) for log in logs for line in log.read_text().splitlines()[1:]]
        wanted = [f"{stream}/{batch:04d}.parquet" for stream in streams]
        assert wanted == [f"{path.parent.name}/{path.name}" for path in read]
