"""What benchmarks of Spark share: sessions, and streaming queries over the same files that take turns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from handfast.cli.bench.measure import Ratio

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STORE = "spark.sql.streaming.stateStore.providerClass"

Frames = dict[str, DataFrame]
Progress = dict[str, Any]


def session(folder: Path, cores: int, *, daemon: bool = False) -> SparkSession:
    """A session on this machine that says little and has room for what Spark's own joins keep on the heap.

    With `daemon`, as docs/cluster.md says: with Python workers that are forked from a process that is ready to join.
    """
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder
    if daemon:
        builder = builder.config("spark.python.daemon.module", "handfast.engines.spark.daemon")
    spark = (
        builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")  # Spark's default store keeps its state on the heap, in two versions
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .config("spark.local.dir", f"{folder}/local")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def sessions(spark: SparkSession, names: Collection[str], defaults: Collection[str], cores: int) -> Any:
    """A session for every query: they share the JVM, and all but those of `defaults` are configured for joins."""
    own = {name: spark.newSession() for name in names}
    for name in own:
        if name not in defaults:
            hf.configure(own[name], cores=cores, quiet=True)
    stores = {name: one.conf.get(STORE) for name, one in own.items()}
    assert {name: HDFS if name in defaults else ROCKSDB for name in names} == stores
    return own


@dataclass
class Streaming:
    """Queries over the same files, with so many rows of each stream in a trigger."""

    sessions: dict[str, SparkSession]
    folder: Path
    rows: int
    table: Callable[[str, int, int], pa.Table]  # the rows of a stream from one number to another
    streams: Sequence[str]
    matches: Callable[[str, Frames], DataFrame]  # what a query, by its name, finds
    files: int = 0
    turns: dict[str, list[list[int]]] = field(default_factory=dict)  # ms of every trigger that counts
    parts: dict[str, list[Progress]] = field(default_factory=dict)  # what these triggers spent their ms on
    state: dict[str, dict[str, int]] = field(default_factory=dict)

    def write_files(self, triggers: int) -> None:
        for number in range(self.files, self.files + triggers):
            for name in self.streams:
                path = self.folder / name / f"{number:05d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(self.table(name, number * self.rows, (number + 1) * self.rows), path)
                os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
        self.files += triggers

    def query(self, name: str, sink: str) -> list[Progress]:
        """Run a query over the files it has not read yet; what its triggers say of themselves."""
        spark, frames = self.sessions[name], {}
        for stream in self.streams:
            path = str(self.folder / stream)
            schema = spark.read.parquet(path).schema
            frames[stream] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(path)
        home = self.folder / f"{name} to {sink}"
        writer = self.matches(name, frames).writeStream.format(sink)
        writer = writer.option("checkpointLocation", str(home / "checkpoint"))
        if sink != "noop":
            writer = writer.option("path", str(home / "output"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"] == len(self.streams) * self.rows]
        self.state[name] = state_of(progress[-1])
        return progress

    def check(self, triggers: int, right: Callable[[str, dict[str, pa.Table]], pa.Table]) -> dict[str, int]:
        """Compare what every query finds in the first files with what is right for it."""
        self.write_files(triggers)
        tables = {name: self.table(name, 0, triggers * self.rows) for name in self.streams}
        found = {}
        for name, spark in self.sessions.items():
            self.query(name, "parquet")
            output = spark.read.parquet(str(self.folder / f"{name} to parquet" / "output"))
            found[name] = compare(name, right(name, tables), output.toArrow())
        return found

    def warm_up(self, triggers: int) -> None:
        """Let every query read so many files; none of it counts."""
        self.write_files(triggers - self.files)
        for name in self.sessions:
            self._run(name, triggers)

    def turn(self, timed: int, untimed: int = 1) -> None:
        """Let every query have its turn over new files; the first ones, while the query starts, do not count."""
        self.write_files(untimed + timed)
        for name in self.sessions:
            progress = self._run(name, untimed + timed)[untimed:]
            self.turns.setdefault(name, []).append([p["durationMs"]["triggerExecution"] for p in progress])
            self.parts.setdefault(name, []).extend(p["durationMs"] for p in progress)

    def _run(self, name: str, triggers: int) -> list[Progress]:
        progress = self.query(name, "noop")
        assert len(progress) == triggers, f"{name} had {len(progress)} triggers"
        return progress


def state_of(progress: Progress) -> dict[str, int]:
    """How much a query keeps, as it says after a trigger."""
    own = progress["stateOperators"]
    return {
        "rows": sum(operator["numRowsTotal"] for operator in own),
        "bytes": sum(operator["memoryUsedBytes"] for operator in own),
    }


def compare(name: str, expected: pa.Table, found: pa.Table) -> int:
    """How many rows there are; a result that is not the expected one, row by row, is refused."""
    by = [(column, "ascending") for column in expected.column_names]
    same = found.cast(expected.schema).sort_by(by).equals(expected.sort_by(by))
    assert same and len(expected), f"{name} finds {len(found)} matches, which are not the {len(expected)} of DuckDB"
    return len(found)


def over(slow: Sequence[float], fast: Sequence[float]) -> dict[str, float]:
    """How many times as long as the other one of them takes: the median over the turns, and quartiles."""
    return asdict(Ratio.of(slow, fast))


def shown(ratio: dict[str, float]) -> str:
    return str(Ratio(**{name: ratio[name] for name in ("median", "low", "high")}))


def heap() -> float:
    """Bytes of live objects on the JVM's heap, after a collection of the others."""
    (java,) = (own for own in processes() if Path(f"/proc/{own}/comm").read_text() == "java\n")
    said = subprocess.run(["jcmd", str(java), "GC.class_histogram"], capture_output=True, text=True, check=True)
    return float(said.stdout.splitlines()[-1].split()[2])


def workers() -> float:
    """Bytes of memory that Spark's Python workers have to themselves."""
    total = 0
    for own in processes():
        if b"daemon" in Path(f"/proc/{own}/cmdline").read_bytes():  # and all that are forked from it
            private = re.findall(r"Private_\w+: +(\d+) kB", Path(f"/proc/{own}/smaps_rollup").read_text())
            total += 1_024 * sum(map(int, private))
    return float(total)


def cpu() -> float:
    """Seconds of CPU that this process and its children, those that have ended among them, have spent so far."""
    ticks = 0
    for own in (os.getpid(), *processes()):
        with suppress(OSError):  # gone meanwhile
            spent = Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, spent[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def processes() -> list[int]:
    """This process's children, their children, and so on."""
    parents: dict[int, int] = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone meanwhile
            parents[int(one.parent.name)] = int(one.read_text().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found[1:]
