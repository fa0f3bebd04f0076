"""A query of `hf.write` that is killed between its writes.

`python -m tests.engines.spark.write_job` runs it in a process of its own, whose death leaves the tests alive.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import handfast as hf
from handfast.engines.spark import write
from tests.engines.spark import crash_job
from tests.engines.spark.crash_job import PARTITIONS, block, finish, frames

WINDOWS = {"time": {"r": "2 seconds", "s": "3 seconds"}, "count": {"r": "100 rows", "s": "3 seconds"}}


def spec(windows: str) -> hf.JoinSpec:
    """A join for which many rows come too late."""
    return hf.JoinSpec(
        ("r", "s"),
        crash_job.BAND,
        window=WINDOWS[windows],
        time="ts",
        lateness="100 ms",
        valid_from={"r": None, "s": START},
    )


START = 1_577_836_801_000_000  # a second after the first row


def start(spark: SparkSession, inputs: Path, home: Path, windows: str) -> StreamingQuery:
    """The query, over all files there are."""
    matches = hf.join(frames(spark, inputs), spec(windows))
    return hf.write(
        matches,
        to=home / "matches",
        late_rows=home / "late",
        rejected_rows={stream: home / "rejected" / stream for stream in ("r", "s")},
        checkpoint=home / "checkpoint",
        trigger={"availableNow": True},
    )


@dataclass(frozen=True)
class Job:
    """Run a query, and stop for ever in a batch before a kind of rows of a stream is written."""

    folder: str
    windows: str
    batch: int
    kind: str
    stream: int | None

    @property
    def marker(self) -> Path:
        """The file that says that the query has come so far."""
        return Path(self.folder) / f"at-{self.batch}-{self.kind}-{self.stream}"

    def run(self) -> None:
        """Run until killed."""
        put = write._Target.put

        def stop_before(target: Any, output: DataFrame, number: int, *, empty: bool) -> None:
            if (number, target.kind, target.stream) == (self.batch, self.kind, self.stream):
                self.marker.touch()
                block()
            put(target, output, number, empty=empty)

        write._Target.put = stop_before  # type: ignore[method-assign]
        builder = SparkSession.builder.master(f"local[{PARTITIONS}]").config("spark.ui.enabled", "false")
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        hf.configure(spark, cores=PARTITIONS)
        finish(start(spark, Path(self.folder) / "inputs", Path(self.folder), self.windows))


if __name__ == "__main__":
    Job(**json.loads(sys.argv[1])).run()
