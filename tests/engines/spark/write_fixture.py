"""Checkpoints that are kept: `python -m tests.engines.spark.write_fixture` writes those of this version.

An archive holds what a query leaves behind after a few batches: its checkpoint, and the rows it has written. The rows
it reads are a workload's, so that the checkpoint needs no other file.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import handfast as hf
from handfast.connectors.generate import CellJoin, Workload
from handfast.connectors.spark_source import streams
from tests.engines.spark.crash_job import BAND, PARTITIONS, finish, session

FIXTURES = Path(__file__).parents[2] / "fixtures" / "checkpoints" / "0.1.0"
BATCHES = 3  # that the archives hold

_ROWS = 40  # of a stream in a batch: 0.8 seconds of event time
_WORKLOAD = Workload(CellJoin(domain=1_500), seed=21, rate=50, disorder=timedelta(seconds=1))
_JOINS: dict[str, dict[str, Any]] = {
    "left": {"how": "left", "window": {"r": "1 second", "s": "1500 ms"}},
    "counted": {"window": {"r": "40 rows", "s": "1 second"}},
}
JOINS = tuple(_JOINS)

_HOME = "file:/HOME"  # in the place of the folder that Spark's own files name


def spec(join: str) -> hf.JoinSpec:
    """One of the joins, for which some rows come too late, and some of `s` too early to be valid."""
    first = {"r": None, "s": 1_577_836_800_300_000}
    return hf.JoinSpec(("r", "s"), BAND, time="ts", lateness="400 ms", valid_from=first, **_JOINS[join])


def rows(batches: int) -> list[dict[str, pa.Table]]:
    """The rows of the first batches."""
    cuts = range(0, batches * _ROWS, _ROWS)
    return [{stream: _WORKLOAD.table(stream, cut, cut + _ROWS) for stream in ("r", "s")} for cut in cuts]


def start(spark: SparkSession, join: str, home: Path, batches: int) -> StreamingQuery:
    """The query, over the rows of the first batches; what it has done before is in its home."""
    inputs = streams(spark, _WORKLOAD, rows=batches * _ROWS, rows_per_trigger=_ROWS)
    return hf.write(
        hf.join(inputs, spec(join)),
        to=home / "matches",
        late_rows=home / "late",
        rejected_rows=home / "rejected",
        checkpoint=home / "checkpoint",
        trigger={"availableNow": True},
    )


def pack(home: Path, archive: Path) -> None:
    """Put a query's home into an archive that names no place of this machine."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(path for path in home.rglob("*") if path.is_file()):
            if path.suffix == ".crc" or path.name == "_SUCCESS":
                continue  # checksums would not fit what is changed below
            if _names_home(path):
                path.write_text(path.read_text().replace(f"file:{home}", _HOME))
            assert not _mentions(path, str(home.parent)), f"{path} names a place of this machine"
            tar.add(path, path.relative_to(home), filter=_anonymous)


def unpack(archive: Path, home: Path) -> None:
    """Make an archive a query's home again."""
    with tarfile.open(archive) as tar:
        tar.extractall(home, filter="data")
    for path in home.rglob("*"):
        if path.is_file() and _names_home(path):
            path.write_text(path.read_text().replace(_HOME, f"file:{home}"))


def _names_home(path: Path) -> bool:
    """Whether it is a file of Spark's that has the names of others, with their folders: an operator's metadata."""
    return "_metadata" in path.parts


def _mentions(path: Path, place: str) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            return any(place.encode() in members.read(name) for name in members.namelist())
    return place.encode() in path.read_bytes()


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    """Write an archive for each join."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(f"local[{PARTITIONS}]", Path(folder))
        for join in JOINS:
            home = Path(folder) / join
            finish(start(spark, join, home, BATCHES))
            pack(home, FIXTURES / f"{join}.tar.gz")
        spark.stop()


if __name__ == "__main__":
    main()
