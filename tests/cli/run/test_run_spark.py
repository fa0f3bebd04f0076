"""Pipelines from file to file on Spark: the same matches as without it, every row accounted for, errors that help."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import handfast.testing as hft
from handfast.engines.spark.text import read_text, write_text
from tests.cli.run.conftest import Write
from tests.cli.run.files import (
    CHECKPOINT,
    FILES,
    LATE,
    NOW,
    PARQUET,
    REFUSED,
    REJECTED,
    WANTED,
    WIDE,
    batches,
    check_refused,
    cli,
    write_files,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    counts = "1 late; 2 rejected; 1 corrupt"
    assert f"done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29; {counts}" == said[-1]
    assert 2 == sum(line.startswith("step ") for line in said)

    # nothing new: nothing comes twice
    code, said, _ = cli("run", file)
    assert (0, "done: no rows came") == (code, said[-1])
    assert f"going on from the checkpoint {tmp_path / 'checkpoint'}" in said

    # another join on the old checkpoint is refused before it starts, and so is another number of cores
    other = WIDE.replace("3 seconds", "4 seconds")
    code, _, error = cli("run", write(NOW, CHECKPOINT, sources=FILES, join=other, sink='format = "none"'))
    assert 2 == code
    lines = "".join(f"  window of {name!r} was 3 s, is 4 s\n" for name in "rs")
    assert f"was written by another join:\n{lines}" in error
    code, _, error = cli("run", write("cores = 3", NOW, CHECKPOINT, sources=FILES, join=WIDE))
    assert 2 == code
    assert "\n  cores was 2, is 3\n" in error

    # a new checkpoint on the old sink would lose what Spark takes for written
    new = write(NOW, 'checkpoint = "new"', sources=FILES, join=WIDE, sink='format = "parquet"\npath = "out"')
    code, _, error = cli("run", new)
    assert 2 == code
    assert f"which belongs to the checkpoint {tmp_path / 'checkpoint'}; take another path" in error

    # refused rows apart would lay the files out in another way, which hides those of before
    code, _, error = cli("run", write(NOW, CHECKPOINT, sources=FILES, join=WIDE + LATE, sink=PARQUET))
    assert 2 == code
    assert "\n  refused_rows was counted, is written\n" in error


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_refused_rows_on_spark_go_to_places_of_their_own(spark: SparkSession, write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(NOW, CHECKPOINT, sources=FILES, join=WIDE + LATE + REJECTED, sink=PARQUET)
    code, said, _ = cli("run", file)
    assert (0, REFUSED) == (code, said[-1])
    found = {path: pq.read_table(tmp_path / path) for path in ("out", "late/r", "late/s")}
    assert {"out": {0, 1}, "late/r": {1}, "late/s": set()} == {
        path: {int(folder.name.removeprefix("handfast_batch=")) for folder in batches(tmp_path / path)}
        for path in found
    }
    hft.assert_same(found["out"].drop_columns("handfast_batch"), WANTED)
    check_refused(tmp_path)

    # from the checkpoint: the counters go on, and so do the folders
    (tmp_path / "s" / "3.json").write_text('{"ts": "2026-01-01T00:00:01Z", "key": 1}\n')
    code, said, _ = cli("run", file)
    assert (0, REFUSED.replace("4 of s", "5 of s").replace("1 late", "2 late").replace("; 1 corrupt", "")) == (
        code,
        said[-1],
    )
    assert 1 == len(pq.read_table(tmp_path / "late" / "s"))

    new = write(NOW, 'checkpoint = "new"', sources=FILES, join=WIDE + LATE, sink='format = "none"')
    code, _, error = cli("run", new)
    assert 2 == code
    assert f"[late_rows] writes to {tmp_path}/late/r, which belongs to the checkpoint {tmp_path}/checkpoint" in error


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_refused_rows_on_spark_beside_any_sink_of_ours(spark: SparkSession, write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    sinks = {
        "csv": 'format = "csv"\npath = "csv"',
        "console": 'format = "console"',
    }
    for name, sink in sinks.items():
        late = f'[late_rows]\nformat = "csv"\npath = "late-{name}"\n'
        code, said, _ = cli("run", write(NOW, f'checkpoint = "of-{name}"', sources=FILES, join=WIDE + late, sink=sink))
        assert (0, REFUSED) == (code, said[-1])
        (row,) = spark.read.csv(str(tmp_path / f"late-{name}" / "r"), header=True).collect()
        assert ("1", 1) == (row.key, row.handfast_batch)
    assert 3 == sum(line.startswith("2026-01-01") for line in said)  # the matches, on the terminal
    keys = [row.r_key for row in spark.read.csv(str(tmp_path / "csv"), header=True).collect()]
    assert ["1", "1", "9"] == sorted(keys)


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
@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ('format = "parquet"\npath = "out"', 'is there already; take another path, or say if_exists = "append"\n'),
        ('format = "kafka"', "[sink] has the format 'kafka', which this Spark does not have"),  # when the query starts
    ],
)
def test_a_run_that_is_refused_leaves_no_record_of_a_join(
    write: Write, tmp_path: Path, sink: str, message: str
) -> None:
    write_files(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "other.parquet").write_bytes(b"rows of somebody else")
    code, _, error = cli("run", write(NOW, CHECKPOINT, sources=FILES, join=WIDE, sink=sink))
    assert 2 == code
    assert message in error
    assert not (tmp_path / "checkpoint" / "handfast.json").exists()


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
    path = f"file://{tmp_path}/handfast.json"
    assert read_text(spark, path) is None
    write_text(spark, path, '{"a":\n "b"}\n')
    assert '{"a":\n "b"}' == (read_text(spark, path) or "").strip()
