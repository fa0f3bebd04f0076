"""Killed at any moment, a driver, an executor or a Python worker: every row and every counter is as the oracle says."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from handfast.flow.metrics import Metrics
from tests.agreement.admission import adds_up
from tests.engines.spark.crash_job import PARTITIONS, write_batches
from tests.engines.spark.kill_job import FILE_SINK, FILES, JOINS, LAST, WRITE, Job, batches, spec
from tests.engines.spark.outcome import Outcome
from tests.engines.spark.process import Process, executors, workers
from tests.sampling import sampled

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


class Drivers:
    """A driver for each kind of victim, which runs one join after another: what starts one is not what is tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Process] = {}

    def of(self, victim: str) -> Process:
        """The driver that runs, or a new one."""
        if victim not in self._running or not self._running[victim].is_alive:
            home = self._folder / victim
            home.mkdir(exist_ok=True)
            argument = {"master": MASTERS[victim], "folder": str(home)}
            self._running[victim] = Process(home, "tests.engines.spark.kill_job", argument)
        return self._running[victim]

    def kill(self, victim: str) -> None:
        if victim in self._running:
            self._running.pop(victim).kill()


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    drivers = Drivers(tmp_path_factory.mktemp("drivers"))
    yield drivers
    for victim in VICTIMS:
        drivers.kill(victim)


@pytest.mark.parametrize("seed", sampled(range(len(JOINS)), 9))
def test_a_kill_at_any_moment_changes_nothing(
    spark: SparkSession, drivers: Drivers, tmp_path: Path, seed: int, record_property: Any
) -> None:
    record_property(f"kill {seed}", survive(spark, drivers, tmp_path, Draw.of(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(JOINS), 200))
def test_no_kill_of_many_changes_anything(
    spark: SparkSession, drivers: Drivers, tmp_path: Path, seed: int, record_property: Any
) -> None:
    record_property(f"kill {seed}", survive(spark, drivers, tmp_path, Draw.of(seed)))


def survive(spark: SparkSession, drivers: Drivers, folder: Path, draw: Draw) -> str:
    """Run a join, kill as drawn, let it end, and compare all there is with the oracle; what was killed when."""
    sent = batches(draw.join, draw.seed)
    write_batches(folder / "inputs", sent)
    job = Job(str(folder), draw.join, draw.sink)
    try:
        process = drivers.of(draw.victim)
        process.tell(asdict(job))
        moment = kill(drivers, job, draw)
        if draw.victim == DRIVER:
            forget_beginning(folder / "checkpoint")
            process = drivers.of(DRIVER)
            process.tell(asdict(job))
        process.wait_for([job.counters])
    except BaseException:
        drivers.kill(draw.victim)  # it is in the middle of something
        raise
    assert Outcome.of(spec(draw.join), sent).is_telling
    outcome = Outcome.of(spec(draw.join), cut(folder / "checkpoint", sent))
    outcome.check_matches(spark, folder / "output")
    if draw.sink == WRITE:
        outcome.check_refused(spark, folder)
    counted = [Metrics.decode(own) for own in json.loads(job.counters.read_text())]
    assert all(map(adds_up, counted))
    outcome.check_counters(counted[-1])
    return moment


# -- the kill --------------------------------------------------------------------------------------------------------


def kill(drivers: Drivers, job: Job, draw: Draw) -> str:
    """Kill the victim at the moment that is drawn, or at the gate, and open the gate; what was killed when."""
    seen: set[str] = set()

    def is_due() -> bool:
        seen.update(files_of(job.home))
        return len(seen) >= draw.files or job.gate.reached.exists()

    process = drivers.of(draw.victim)
    process.wait_until(is_due, f"{draw.files} files")
    time.sleep(draw.seconds)
    if draw.victim == DRIVER:
        drivers.kill(DRIVER)
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


def forget_beginning(checkpoint: Path) -> None:
    """Delete what Spark refuses to start with: a driver was killed while it wrote the very first offsets."""
    if not numbers(checkpoint / "offsets") and list(checkpoint.glob("offsets/.*")):
        shutil.rmtree(checkpoint)


def cut(checkpoint: Path, sent: Sequence[Mapping[str, pa.Table]]) -> list[dict[str, pa.Table]]:
    """The rows of every batch as the query has cut them: which of them are late goes by that.

    A batch is a file of each stream, but for a kill before its offsets are written: then a source may go on with the
    next file.
    """
    batches, begins = [], [0] * len(sent[0])
    for number in range(len(numbers(checkpoint / "offsets"))):
        lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()[2:]
        ends = [json.loads(line)["logOffset"] + 1 for line in lines]
        batch = {}
        for stream, begin, end in zip(sent[0], begins, ends, strict=True):
            batch[stream] = pa.concat_tables([sent[0][stream][:0], *(own[stream] for own in sent[begin:end])])
        batches.append(batch)
        begins = ends
    assert [len(sent)] * len(sent[0]) == begins, "every file was read"
    assert numbers(checkpoint / "offsets") == numbers(checkpoint / "commits") == list(range(len(batches)))
    for source, stream in enumerate(sent[0]):
        for number in range(len(sent)):
            (entry,) = (checkpoint / "sources" / str(source) / str(number)).read_text().splitlines()[1:]
            assert f"{stream}/{number:04d}.parquet" == "/".join(Path(json.loads(entry)["path"]).parts[-2:])
    return batches
