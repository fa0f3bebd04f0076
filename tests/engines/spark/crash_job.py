"""Streaming joins that meet with accidents: the stages that cause them, and the job that is killed.

`python -m tests.engines.spark.crash_job` runs joins in a process of its own, whose death leaves the tests alive.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import handfast as hf
from handfast.connectors.generate import CellJoin, Workload
from handfast.engines.spark import engine, operator
from handfast.judge import oracle
from handfast.plan import Plan
from tests.judges.rows import multiset, schemas_of, tables_of

# Workers take the classes below from the driver: this file may lie outside of their path.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

FILES = 4  # of each stream; one of each is a batch
PARTITIONS = 2  # cores, and so tasks of the stateful operator
SOON = 300.0  # seconds in which anything that will happen has happened, on the busiest machine
BAND = "r.x BETWEEN s.a - 10 AND s.a + 10"
JOINS = {"range": (BAND, "short"), "meet": ("(r.x + s.a) % 23 = 0 AND r.y < s.b", "short"), "count": (BAND, "mixed")}
WINDOWS: dict[str, Any] = {
    "short": {"r": "2 seconds", "s": "3 seconds"},  # many tuples expire
    "long": "40 seconds",  # blocks are merged
    "mixed": {"r": "100 rows", "s": "3 seconds"},  # a sequencer stands before the cores
}

_ROWS = 80  # in a file: 1.6 seconds of event time
_LATENESS = timedelta(seconds=1)
_WORKLOAD = Workload(CellJoin(domain=1_500), seed=20, rate=50, disorder=_LATENESS)


# -- the joins -------------------------------------------------------------------------------------------------------


def spec(join: str, window: str | None = None) -> hf.JoinSpec:
    """One of the joins, with its own windows or with others."""
    predicate, own = JOINS[join]
    return hf.JoinSpec(("r", "s"), predicate, window=WINDOWS[window or own], time="ts", lateness=_LATENESS)


def rows(stream: str, first: int, last: int) -> pa.Table:
    """Rows `first` up to `last` of a stream, in the order of their arrival; some without a value."""
    return with_gaps(_WORKLOAD.table(stream, first, last))


def with_gaps(table: pa.Table) -> pa.Table:
    """The rows, some of them without a value."""
    for number, name in enumerate(table.column_names[2:]):
        missing = pc.equal(pc.bit_wise_and(table["id"], 15), number)
        table = table.set_column(2 + number, name, pc.if_else(missing, None, table[name]))
    return table


def steps(size: int = _ROWS, files: int = FILES) -> list[dict[str, pa.Table]]:
    """The rows of the first files, in batches of such a size."""
    cuts = range(0, files * _ROWS, size)
    return [{stream: rows(stream, cut, min(cut + size, files * _ROWS)) for stream in ("r", "s")} for cut in cuts]


def write_files(folder: Path, first: int = 0, last: int = FILES) -> None:
    """Write the inputs: files `first` up to `last` of both streams."""
    write_batches(folder, steps()[first:last], first)


def write_batches(folder: Path, batches: Sequence[Mapping[str, pa.Table]], first: int = 0) -> None:
    """Write a file of every stream for each batch, numbered from `first` on."""
    for number, step in enumerate(batches, first):
        for stream, table in step.items():
            path = folder / stream / f"{number:04d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times


@cache
def expected(join: str, window: str | None = None, *, files: int = FILES) -> Counter[tuple[Any, ...]]:
    """What the oracle says is decided when the first files have come, and more may."""
    batches = steps(files=files)
    bound = spec(join, window).bind(schemas_of(batches[0]))
    admission = oracle.admit(bound, map(tables_of, batches))
    assert not any(admission.late.values())
    found = multiset(oracle.result(bound, oracle.final(bound, admission)))
    assert found
    return found


def frames(spark: SparkSession, inputs: Path, streams: Sequence[str] = ("r", "s")) -> dict[str, DataFrame]:
    """The streams, a file of each at a time."""
    found = {}
    for stream in streams:
        schema = spark.read.parquet(str(inputs / stream)).schema
        found[stream] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(inputs / stream))
    return found


def to_files(matches: DataFrame, folder: Path) -> StreamingQuery:
    """Write all there is to Spark's file sink."""
    return (
        matches.writeStream.format("parquet")
        .option("path", str(folder / "output"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def finish(query: StreamingQuery, within: float = SOON) -> None:
    """Wait until the query ends of its own accord."""
    try:
        assert query.awaitTermination(within), f"The query did not end in time: {query.status}"
    finally:
        query.stop()


# -- the accidents ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accident:
    """What befalls one task of the operator: as soon as the stage behind it sees matches, or after all of them."""

    batch: int
    partition: int
    early: bool = False

    def marker(self, folder: Path) -> Path:
        """The file that says that it has happened."""
        return folder / f"accident-{self.batch}-{self.partition}-{'early' if self.early else 'late'}"


def block() -> None:
    """Wait to be killed."""
    time.sleep(SOON)  # so that a worker which nobody kills does not stay for ever
    raise RuntimeError("nobody killed this task")


def fail() -> None:
    """What a task of a user may do at any time."""
    raise RuntimeError("a failure on purpose")


@dataclass(frozen=True)
class Stage:
    """A user's stage behind the join: passes matches on, and meets with accidents, with each of them once."""

    folder: Path
    accidents: tuple[Accident, ...]
    happen: Callable[[], None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batch, partition = task()
        due = [a for a in self.accidents if (a.batch, a.partition) == (batch, partition)]
        for matches in batches:
            self._meet([a for a in due if a.early])
            yield matches
        self._meet([a for a in due if not a.early])  # the operator is done with its state: its output has ended

    def _meet(self, accidents: list[Accident]) -> None:
        for accident in accidents:
            marker = accident.marker(self.folder)
            if not marker.exists():
                marker.touch()
                self.happen()


@dataclass(frozen=True)
class Run:
    """One run of the operator in one task: where, and whether it found its core in the cache."""

    batch: int
    partition: int
    worker: int
    cached: bool


class WatchedProcessor(operator.JoinProcessor):
    """The operator, writing down its runs; it forgets its caches first where it is told to."""

    def __init__(self, plan: Plan, *, folder: Path, forgetful: bool = False) -> None:
        super().__init__(plan)
        self._folder = folder
        self._forgetful = forgetful

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        if self._forgetful:
            operator.forget()
        yield from super().handleInputRows(key, rows, timerValues)

    def _recall(self, owner: Any) -> Any:
        cached = {id(core) for core in operator._cores.cores}
        recalled = super()._recall(owner)
        run = Run(*task(), os.getpid(), id(recalled[-1]) in cached)
        with (self._folder / f"run-{time.monotonic_ns()}-{os.getpid()}").open("w") as file:
            json.dump(asdict(run), file)
        return recalled


def watch(folder: Path, *, forgetful: bool = False) -> Callable[[Plan], WatchedProcessor]:
    """What to put in the place of the operator, to have its runs written down in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return partial(WatchedProcessor, folder=folder, forgetful=forgetful)


def runs(folder: Path) -> list[Run]:
    """The runs written down so far, in their order."""
    paths = sorted(folder.glob("run-*"), key=lambda path: int(path.name.split("-")[1]))
    return [Run(**json.loads(path.read_text())) for path in paths]


def task() -> tuple[int, int]:
    """The batch and the partition of this task."""
    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty("streaming.sql.batchId") or -1), context.partitionId()


# -- the job ---------------------------------------------------------------------------------------------------------


def session(master: str, folder: Path | str, settings: Sequence[tuple[str, str]] = ()) -> SparkSession:
    """A session that is ready for joins, with a folder of its own."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.local.dir", f"{folder}/local")
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    for name, value in settings:
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    hf.configure(spark, cores=PARTITIONS)
    return spark


@dataclass(frozen=True)
class Job:
    """What the process does: run joins over the same inputs, with accidents."""

    folder: str
    joins: tuple[str, ...]
    master: str
    happen: str = "fail"
    accidents: tuple[tuple[int, int, bool], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def run(self) -> None:
        """Run to the end."""
        spark = session(self.master, Path(self.folder), self.settings)
        if self.happen == "block":  # all at once: they wait for the same end
            for query in [self._start(spark, join) for join in self.joins]:
                finish(query)
        for join in self.joins:
            finish(self._start(spark, join))
        spark.stop()

    def _start(self, spark: SparkSession, join: str) -> StreamingQuery:
        inputs, home = Path(self.folder) / "inputs", Path(self.folder) / join
        home.mkdir(exist_ok=True)
        engine.JoinProcessor = watch(home)  # type: ignore[assignment, misc]
        matches = hf.join(frames(spark, inputs), spec(join))
        accidents = tuple(Accident(*accident) for accident in self.accidents)
        happen = {"block": block, "fail": fail}[self.happen]
        return to_files(matches.mapInArrow(Stage(home, accidents, happen), matches.schema), home)


if __name__ == "__main__":
    # The module as the workers know it, not __main__.
    from tests.engines.spark import crash_job

    crash_job.Job(**json.loads(sys.argv[1])).run()
