"""Pipelines of files that both engines run, what they have to give, and how the command is called."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

import handfast as hf
from handfast.cli import app
from handfast.connectors.generate import Workload
from tests.cli.run.conftest import JOIN

if TYPE_CHECKING:
    pass

WORKLOAD = Workload.named("equality", match_rate=0.02, rate=100, disorder="1 second")
FILES = """
[sources.r]
format = "csv"
path = "r"
schema = "ts timestamp, key bigint"
on_corrupt = "drop"
files_per_trigger = 1

[sources.s]
format = "json"
path = "s"
schema = "ts timestamp, key bigint"
files_per_trigger = 1
"""
NOW = 'trigger = "available now"'
CHECKPOINT = 'checkpoint = "checkpoint"'
LOCAL = 'engine = "local"'


def cli(command: str, file: Path, *options: str) -> tuple[int, list[str], str]:
    """Exit code, lines on stdout, stderr."""
    result = CliRunner().invoke(app, [command, str(file), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout.splitlines(), result.stderr


def right(rows: int) -> pa.Table:
    tables = {name: WORKLOAD.table(name, 0, rows) for name in "rs"}
    return hf.join(tables, on="r.key = s.key", window="2 seconds", time="ts")


def write_files(folder: Path) -> None:
    """Two files of each stream, with a corrupt row, a row without a time, and one that comes too late."""
    files = {
        "r/1.csv": "ts,key\n2026-01-01 00:00:10,1\n2026-01-01 00:00:11,x\n,2\n",
        "s/1.json": '{"ts": "2026-01-01T00:00:11Z", "key": 1}\n{"ts": "2026-01-01T00:00:30Z", "key": 9}\n',
        "r/2.csv": "ts,key\n2026-01-01 00:00:30,9\n2026-01-01 00:00:08.5,1\n",
        "s/2.json": '{"ts": "2026-01-01T00:00:12Z", "key": 1}\n{"key": 1}\n',
    }
    for age, (name, text) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_000_000 + age, 1_000_000 + age))


# r of +8.5s is late, the watermark was at +9s; a batch knows no late rows
WANTED = """
    r_ts                | r_key | s_ts                | s_key | match_time
    2026-01-01 00:00:10 | 1     | 2026-01-01 00:00:11 | 1     | 2026-01-01 00:00:11
    2026-01-01 00:00:10 | 1     | 2026-01-01 00:00:12 | 1     | 2026-01-01 00:00:12
    2026-01-01 00:00:30 | 9     | 2026-01-01 00:00:30 | 9     | 2026-01-01 00:00:30
"""
WIDE = JOIN.replace("2 seconds", "3 seconds")
PARQUET = 'format = "parquet"\npath = "out"'
LATE = '[late_rows]\nformat = "parquet"\npath = "late"\n'
REJECTED = '[rejected_rows]\nformat = "parquet"\npath = "rejected"\n'
REFUSED = "done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29; 1 late; 2 rejected; 1 corrupt"


def batches(folder: Path) -> list[Path]:
    """The folders of batches with rows in them."""
    own = folder.glob("handfast_batch=*")
    return [path for path in own if sum(len(pq.read_table(file)) for file in path.glob("*.parquet"))]


def check_refused(folder: Path) -> None:
    """Every refused row is in the folder of its kind and stream, with its own columns."""
    expected = {
        "late/r": [{"ts": datetime(2026, 1, 1, 0, 0, 8, 500_000, UTC), "key": 1}],
        "late/s": [],
        "rejected/r": [{"ts": None, "key": 2}],
        "rejected/s": [{"ts": None, "key": 1}],
    }
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int64())])  # Spark's files have nanoseconds
    for path, rows in expected.items():
        tables = [pq.ParquetFile(file).read().cast(schema) for file in (folder / path).rglob("*.parquet")]
        assert rows == [row for table in tables for row in table.to_pylist()], path
