"""Joins that are killed at any moment: their rows, what the oracle says of them, and the job that runs them.

`python -m tests.engines.spark.kill_job` is a driver that runs one after another, as it is told, in a process of its
own, whose death leaves the tests alive.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import handfast as hf
from handfast.connectors.generate import CellJoin, Workload
from tests.engines.spark.crash_job import BAND, PARTITIONS, SOON, finish, frames, session, task, to_files, with_gaps

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as in crash_job

FILES = 5  # of each stream; one of each is a batch
LAST = FILES - 1
WRITE, FILE_SINK = "hf.write", "Spark's file sink"

_ROWS = 40  # in a file: 0.8 seconds of event time
_FIRST_VALID = 1_577_836_800_300_000  # 0.3 seconds after the first row of all
STREAMS = ("r", "s", "t", "u", "v", "w", "x", "y")
_TIMED = {"window": {"r": "1 second", "s": "1500 ms"}}

JOINS: dict[str, dict[str, Any]] = {
    "left by range": {"on": BAND, "how": "left", **_TIMED},
    "counted": {"on": BAND, "window": {"r": "40 rows", "s": "1 second"}},
    "full by hash, in order": {"on": "r.x % 40 = s.a % 40", "how": "full", "in_order": True, **_TIMED},
    "semi in order": {"on": BAND, "how": "semi", "in_order": True, **_TIMED},
    "three streams": {"on": "r.x % 9 = s.a % 9 AND ABS(s.b - t.b) < 150", "window": "400 ms"},
    "by arrival": {"on": BAND, "order": "arrival", "window": {"r": "60 rows", "s": "30 rows"}},
    "four streams by hypercube": {
        "on": "r.x % 5 = s.a % 5 AND s.b < t.b AND t.a % 3 = u.a % 3",
        "window": "150 ms",
    },
    "five streams by time and count": {
        "on": "r.x % 3 = s.a % 3 AND t.a % 2 = u.a % 2 AND ABS(u.b - v.b) < 300",
        "window": {"r": "100 ms", "s": "3 rows", "t": "80 ms", "u": "4 rows", "v": "100 ms"},
    },
    "eight streams without a key": {
        "on": "r.x < s.a AND s.b <> t.b AND t.a < u.a AND v.b < w.b AND x.a + y.a < 1500",
        "window": "50 ms",
    },
}
CORES = {"four streams by hypercube": 6, "eight streams without a key": 3}


# -- the joins -------------------------------------------------------------------------------------------------------


def spec(join: str) -> hf.JoinSpec:
    """One of the joins, for which some rows come too late, and some have no valid time."""
    asked = JOINS[join]
    late = {} if asked.get("order") == "arrival" else {"lateness": "400 ms"}
    streams = tuple(stream for stream in STREAMS if f"{stream}." in asked["on"])
    valid = {stream: _FIRST_VALID if stream == "s" else None for stream in streams}
    return hf.JoinSpec(streams, time="ts", valid_from=valid, **late, **asked)


def batches(join: str, seed: int) -> list[dict[str, pa.Table]]:
    """The rows of every batch, out of order; the third stream and those behind it are other second ones."""
    streams = {"r": ("r", 2 * seed), "s": ("s", 2 * seed), "t": ("s", 2 * seed + 1)}
    streams |= {name: ("s", 2 * seed + 1_000 * number) for number, name in enumerate(STREAMS[3:], 1)}
    return [{name: _rows(*streams[name], number) for name in spec(join).names} for number in range(FILES)]


def _rows(stream: str, seed: int, number: int) -> pa.Table:
    workload = Workload(CellJoin(domain=1_500), seed=seed, rate=50, disorder=timedelta(seconds=1))
    table = with_gaps(workload.table(stream, number * _ROWS, (number + 1) * _ROWS))
    timeless = pc.equal(pc.bit_wise_and(table["id"], 31), 7)
    return table.set_column(1, "ts", pc.if_else(timeless, None, table["ts"]))


# -- the job ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """A user's stage before the join, which the last batch does not pass before it may."""

    folder: Path

    @property
    def reached(self) -> Path:
        """The file that says that the last batch is here."""
        return self.folder / "reached"

    @property
    def is_open(self) -> Path:
        """The file that lets it pass."""
        return self.folder / "open"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if task()[0] == LAST:
            self.reached.touch()
            deadline = time.monotonic() + SOON
            while not self.is_open.exists():
                if time.monotonic() > deadline:
                    raise RuntimeError("nobody opened the gate")
                time.sleep(0.01)
        yield from batches


@dataclass(frozen=True)
class Job:
    """What the process does: run a join over all files there are, and note its counters."""

    folder: str
    join: str
    sink: str

    @property
    def home(self) -> Path:
        return Path(self.folder)

    @property
    def gate(self) -> Gate:
        return Gate(self.home)

    @property
    def counters(self) -> Path:
        """Where the counters of this run are in the end, after every batch."""
        return self.home / "counters.json"

    def run(self, spark: SparkSession) -> None:
        """Run to the end."""
        query = self._start(spark)
        finish(query)
        counted = [hf.metrics(progress).encode() for progress in query.recentProgress if progress.numInputRows]
        unfinished = self.home / "counters"
        unfinished.write_text(json.dumps(counted))
        unfinished.rename(self.counters)

    def _start(self, spark: SparkSession) -> StreamingQuery:
        hf.configure(spark, cores=CORES.get(self.join, PARTITIONS), quiet=True)
        streams: dict[str, DataFrame] = frames(spark, self.home / "inputs", spec(self.join).names)
        streams["r"] = streams["r"].mapInArrow(self.gate, streams["r"].schema)
        matches = hf.join(streams, spec(self.join))
        if self.sink == FILE_SINK:
            return to_files(matches, self.home)
        return hf.write(
            matches,
            to=self.home / "output",
            late_rows=self.home / "late",
            rejected_rows=self.home / "rejected",
            checkpoint=self.home / "checkpoint",
            trigger={"availableNow": True},
        )


if __name__ == "__main__":
    # The module as the workers know it, not __main__.
    from tests.engines.spark import kill_job

    running = session(**json.loads(sys.argv[1]))
    for told in sys.stdin:
        kill_job.Job(**json.loads(told)).run(running)
