"""Pipelines from file to file, on both engines: the same matches, every row accounted for, errors that help."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import handfast as hf
import handfast.testing as hft
from handfast.cli import app
from handfast.connectors.generate import Workload
from tests.runner.conftest import JOIN, Write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


# --- without Spark --------------------------------------------------------------------------------------------------


def test_a_workload_without_spark(write: Write, tmp_path: Path) -> None:
    code, said, _ = cli("run", write(LOCAL, NOW, sink='format = "parquet"\npath = "out"'))
    assert 0 == code
    found = pq.read_table(tmp_path / "out")
    hft.assert_same(found, right(300))
    assert [f"step {k}: {100 * k} of r, {100 * k} of s in, " for k in (1, 2, 3)] == [
        line[: len(f"step 1: {100 * k} of r, {100 * k} of s in, ")] for k, line in enumerate(said[:3], 1)
    ]
    assert said[-1].startswith(f"done: 300 of r, 300 of s in, {len(found):,} matches out; watermark 2020-")


def test_files_without_spark_as_a_stream(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, CHECKPOINT, sources=FILES, join=WIDE, sink='format = "parquet"\npath = "out"')
    code, said, _ = cli("run", file)
    assert (0, "the local engine keeps no checkpoint: it joins from the start") == (code, said[0])
    hft.assert_same(pq.read_table(tmp_path / "out"), WANTED)
    counts = "; 1 late; 2 rejected; 1 corrupt"
    assert f"done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29{counts}" == said[-1]


def test_files_without_spark_as_a_batch(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write('mode = "batch"', sources=FILES, join=WIDE, sink='format = "console"')
    code, said, _ = cli("run", file, "--engine", "local")
    assert 0 == code
    assert "done: 4 of r, 4 of s in, 4 matches out; 2 rejected; 1 corrupt" == said[-1]
    assert said[0].startswith("r_ts: timestamp")
    assert 6 == len(said)


def test_a_stream_without_spark_goes_on_until_it_is_stopped(write: Write, tmp_path: Path) -> None:
    # both streams end after three steps: nothing more can come, whatever the trigger
    code, said, _ = cli("run", write(LOCAL, 'trigger = "1 ms"'))
    assert (0, 4) == (code, len(said))


def test_explain_without_spark(write: Write) -> None:
    code, said, _ = cli("explain", write(LOCAL, NOW))
    assert (0, "join of r and s on local") == (code, said[0])
    assert "  predicate  r.key = s.key" in said


def test_verify_without_spark(write: Write) -> None:
    code, said, _ = cli("verify", write(LOCAL, NOW))
    assert (0, "All engines agree with the oracle") == (code, said[0])
    code, _, error = cli("verify", write(LOCAL, NOW), "--limit", "10")
    assert 2 == code
    assert "the limit is 10; give fewer rows" in error


def test_an_engine_that_differs_is_exit_code_1(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from handfast import api

    join = api.join
    monkeypatch.setattr(api, "join", lambda *inputs, **how: join(*inputs, **how).slice(1))
    code, said, _ = cli("verify", write(LOCAL, NOW, rows=20))
    assert 1 == code
    assert said[0].startswith("Not in agreement with the oracle: local, 1 core; local, 3 cores")
    assert any("no row can be left out" in line for line in said)


def test_a_corrupt_row_is_named_with_its_file(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, sources=FILES.replace("drop", "fail"), sink='format = "parquet"\npath = "out"')
    code, _, error = cli("run", file)
    assert 1 == code
    assert f"handfast: Stream 'r': line 3 of {tmp_path}/r/1.csv is corrupt: key = 'x' is not of type bigint" in error


def test_a_wrong_join_touches_no_sink(write: Write, tmp_path: Path) -> None:
    sink = 'format = "parquet"\npath = "out"'
    code, _, error = cli("run", write(LOCAL, NOW, join=JOIN.replace("r.key", "r.kei"), sink=sink))
    assert (2, "handfast: Stream 'r' has no column 'kei'; did you mean 'key'? (it has id, ts, key)\n") == (code, error)
    assert not (tmp_path / "out").exists()


# --- on Spark -------------------------------------------------------------------------------------------------------


def committed(spark: SparkSession, folder: Path) -> Any:
    return spark.read.parquet(str(folder)).toArrow()


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_files_on_spark_as_a_stream(spark: SparkSession, write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(NOW, CHECKPOINT, sources=FILES, join=WIDE, sink='format = "parquet"\npath = "out"')
    code, said, _ = cli("run", file)
    assert 0 == code
    hft.assert_same(committed(spark, tmp_path / "out"), WANTED)
    counts = "2 rejected; 1 corrupt; some rows came too late"
    assert f"done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29; {counts}" == said[-1]
    assert 2 == sum(line.startswith("step ") for line in said)

    # nothing new: nothing comes twice
    code, said, _ = cli("run", file)
    assert (0, "done: no rows in, 0 matches out") == (code, said[-1])
    assert f"going on from the checkpoint {tmp_path / 'checkpoint'}" in said

    # another join on the old checkpoint is refused before it starts, and so is another number of cores
    other = WIDE.replace("3 seconds", "4 seconds")
    code, _, error = cli("run", write(NOW, CHECKPOINT, sources=FILES, join=other, sink='format = "none"'))
    assert 2 == code
    assert "was written by another join:\n  r.window was '3 s', is '4 s'\n  s.window was '3 s', is '4 s'\n" in error
    code, _, error = cli("run", write("cores = 3", NOW, CHECKPOINT, sources=FILES, join=WIDE))
    assert 2 == code
    assert "\n  cores was 2, is 3\n" in error

    # a new checkpoint on the old sink would lose what Spark takes for written
    new = write(NOW, 'checkpoint = "new"', sources=FILES, join=WIDE, sink='format = "parquet"\npath = "out"')
    code, _, error = cli("run", new)
    assert 2 == code
    assert "which belongs to a stream with another checkpoint; take another path" in error


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_files_on_spark_as_a_batch(spark: SparkSession, write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    for sink in (
        'format = "json"\npath = "out"',
        'format = "csv"\npath = "csv"',
        'format = "none"',
        'format = "console"',
    ):
        code, said, _ = cli("run", write('mode = "batch"', sources=FILES, join=WIDE, sink=sink))
        assert (0, "done: 4 of r, 4 of s in, 4 matches out; 2 rejected; 1 corrupt") == (code, said[-1])
    assert 5 == sum(" | " in line for line in said)  # the header, and every match
    file = write('mode = "batch"', sources=FILES, join=WIDE, sink='format = "json"\npath = "out"')
    code, _, error = cli("run", file)
    assert 2 == code
    assert "something is there already; take another path" in error
    keys = Counter(row.r_key for row in spark.read.json(str(tmp_path / "out")).collect())
    assert (
        Counter({1: 3, 9: 1})
        == keys
        == Counter(int(row.r_key) for row in spark.read.csv(str(tmp_path / "csv"), header=True).collect())
    )


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_a_batch_of_nothing_ends(write: Write, tmp_path: Path) -> None:
    for name in "rs":
        (tmp_path / name).mkdir()
    for engine in ("spark", "local"):
        code, said, _ = cli("run", write('mode = "batch"', sources=FILES, join=WIDE), "--engine", engine)
        assert (0, "done: 0 of r, 0 of s in, 0 matches out") == (code, said[-1])


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_explain_and_verify_on_spark(write: Write) -> None:
    code, said, _ = cli("explain", write(NOW))
    assert (0, "join of r and s on Spark, streaming") == (code, said[0])
    code, said, _ = cli("verify", write(NOW, rows=60))
    assert (0, "All engines agree with the oracle") == (code, said[0])
    assert said[-1].lstrip().startswith("spark, 2 cores")


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
@pytest.mark.parametrize(
    ("top", "sources", "sink", "message"),
    [
        (NOW, None, 'format = "parquet"\npath = "out"', "A stream on Spark needs a checkpoint to go on from"),
        (NOW, FILES.replace("drop", "fail"), 'format = "none"', "r/1.csv has a row, or a header, that does not fit"),
        (
            NOW,
            FILES.replace('"ts timestamp, key bigint"', '"ts timestamp, kee bigint"'),
            'format = "none"',
            "Stream 'r' has no column 'key'; did you mean 'kee'?",
        ),
        (
            NOW,
            FILES.replace('"ts timestamp, key bigint"', '"ts timestamp key bigint"'),
            'format = "none"',
            "[sources.r]: Spark refuses it: [PARSE_SYNTAX_ERROR]",
        ),
        (
            NOW,
            '[sources.r]\nformat = "kafka"\n[sources.s]\nformat = "kafka"',
            'format = "none"',
            "[sources.r] has the format 'kafka', which this Spark does not have; say packages = "
            '["org.apache.spark:spark-sql-kafka-0-10_2.13:',
        ),
        (
            NOW,
            '[sources.r]\nformat = "delta"\npath = "."\n[sources.s]\nformat = "rate"',
            'format = "none"',
            'say packages = ["io.delta:delta-spark_2.13:…"] in [spark], which Spark loads from Maven, and pip install '
            "delta-spark",
        ),
        (
            NOW,
            '[sources.r]\nformat = "nonsense"\n[sources.s]\nformat = "rate"',
            'format = "none"',
            'if it is in a package on Maven, say packages = ["group:name:version"]',
        ),
        (NOW, None, 'format = "kafka"', "A stream on Spark needs a checkpoint"),
        (NOW + "\n" + CHECKPOINT, None, 'format = "kafka"', "[sink] has the format 'kafka', which this Spark does not"),
        (
            'mode = "batch"',
            '[sources.r]\nformat = "handfast"\noptions = { workload = "equality", stream = "r" }\n'
            '[sources.s]\nformat = "rate"',
            'format = "none"',
            "[sources.r]: a batch read of an endless workload needs an end",
        ),
        (
            NOW,
            '[sources.r]\nformat = "handfast"\noptions = { workload = "equality", steam = "r" }\n'
            '[sources.s]\nformat = "rate"',
            'format = "none"',
            "Source 'handfast' needs option 'stream'",
        ),
        (
            NOW,
            FILES.replace('"r"', '"empty"')
            .replace("csv", "parquet")
            .replace('schema = "ts timestamp, key bigint"\non_corrupt = "drop"', ""),
            'format = "none"',
            "which has no files yet to take the columns from",
        ),
    ],
)
def test_what_goes_wrong_on_spark_is_said(
    write: Write, tmp_path: Path, top: str, sources: str | None, sink: str, message: str
) -> None:
    write_files(tmp_path)
    (tmp_path / "empty").mkdir()
    code, _, error = cli("run", write(top, sources=sources, sink=sink))
    assert code in (1, 2)
    assert error.startswith("handfast: ")
    assert message in error


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_a_source_of_spark_with_columns_of_our_own(write: Write) -> None:
    sources = "".join(
        f'[sources.{name}]\nformat = "rate-micro-batch"\nselect = ["timestamp AS ts", "value AS key"]\n'
        "options = { rowsPerBatch = 10, startTimestamp = 1767225600000, advanceMillisPerBatch = 1000 }\n"
        for name in "rs"
    )
    code, said, _ = cli("explain", write(NOW, sources=sources))
    assert (0, "  result     r_ts, r_key, s_ts, s_key, match_time") == (code, said[-1])


@pytest.mark.spark
def test_a_record_on_another_file_system_goes_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    from handfast.connectors import spark_doors

    path = f"file://{tmp_path}/handfast.json"
    assert spark_doors.read_text(spark, path) is None
    spark_doors.write_text(spark, path, '{"a":\n "b"}\n')
    assert '{"a":\n "b"}' == (spark_doors.read_text(spark, path) or "").strip()
