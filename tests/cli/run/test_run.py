"""Pipelines from file to file, on both engines: the same matches, every row accounted for, errors that help."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import handfast as hf
import handfast.testing as hft
from handfast.cli import app
from handfast.connectors.generate import Workload
from handfast.connectors.pipeline import Pipeline
from handfast.engines.spark.text import read_text, write_text
from tests.cli.run.conftest import JOIN, SOURCE, Write

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
PARQUET = 'format = "parquet"\npath = "out"'
LATE = '[late_rows]\nformat = "parquet"\npath = "late"\n'
REJECTED = '[rejected_rows]\nformat = "parquet"\npath = "rejected"\n'
REFUSED = "done: 4 of r, 4 of s in, 3 matches out; watermark 2026-01-01 00:00:29; 1 late; 2 rejected; 1 corrupt"


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


def test_refused_rows_without_spark_go_to_places_of_their_own(write: Write, tmp_path: Path) -> None:
    write_files(tmp_path)
    file = write(LOCAL, NOW, sources=FILES, join=WIDE + LATE + REJECTED, sink=PARQUET)
    code, said, _ = cli("run", file)
    assert (0, REFUSED) == (code, said[-1])
    hft.assert_same(pq.read_table(tmp_path / "out"), WANTED)
    check_refused(tmp_path)
    code, _, error = cli("run", write(LOCAL, NOW, sources=FILES, join=WIDE + LATE))
    assert 2 == code
    assert f"[late_rows] writes to {tmp_path}/late/r, and something is there already" in error


THREE = """
[join]
on = "r.key = s.key AND s.key = t.key"
window = { r = "1 second", s = "100 rows", t = "1 second" }
time = "ts"
lateness = "1 second"
in_order = true
select = "r.key AS k, s.id AS s_id, t.id AS t_id, match_time"
idle_timeout = { t = "1 hour" }
valid_from = { r = 2020-01-01T00:00:01Z }
valid_to = 2020-01-01T00:00:04
"""


def test_three_streams_and_every_key_of_a_join(write: Write, tmp_path: Path) -> None:
    sources = "".join(SOURCE.format(name=name, rows=600) for name in "rst").replace(
        'stream = "t"', 'stream = "s", seed = 7'
    )
    bounds = {"valid_from": {"r": 1_577_836_801_000_000, "s": None, "t": None}, "valid_to": 1_577_836_804_000_000}
    tables = {name: WORKLOAD.table(name, 0, 600) for name in "rs"}
    tables["t"] = replace(WORKLOAD, seed=7).table("s", 0, 600)
    expected = hf.join(
        tables,
        on="r.key = s.key AND s.key = t.key",
        window={"r": "1 second", "s": "100 rows", "t": "1 second"},
        time="ts",
        in_order=True,
        select="r.key AS k, s.id AS s_id, t.id AS t_id, match_time",
        **bounds,
    )
    assert len(expected) > 10
    code, said, _ = cli("run", write(LOCAL, 'mode = "batch"', sources=sources, join=THREE, sink=PARQUET))
    assert 0 == code
    hft.assert_same(pq.read_table(tmp_path / "out"), expected)
    code, said, _ = cli("run", write(LOCAL, NOW, sources=sources, join=THREE, sink=PARQUET.replace("out", "live")))
    assert 0 == code
    found = pq.read_table(tmp_path / "live")
    times = found["match_time"].to_pylist()
    assert sorted(times) == times
    assert said[-1].startswith(f"done: 600 of r, 600 of s, 600 of t in, {len(found):,} matches out; watermark 2020-")
    # up to the watermark, which rows beyond valid_to have not moved
    assert times[-1] > datetime(2020, 1, 1, 0, 0, 2, tzinfo=UTC)
    hft.assert_same(found, expected.filter(pc.less_equal(expected["match_time"], times[-1])))
    code, said, _ = cli("explain", write(LOCAL, NOW, sources=sources, join=THREE))
    assert (0, "join of r, s and t on local") == (code, said[0])
    assert "  idle       t: 1 h" in said
    assert "  result     k, s_id, t_id, match_time" in said
    code, said, _ = cli("verify", write(LOCAL, NOW, sources=sources, join=THREE))
    assert (0, "All engines agree with the oracle") == (code, said[0])


def test_a_left_join(write: Write, tmp_path: Path) -> None:
    join = JOIN + 'how = "left"\n' + LATE
    tables = {name: WORKLOAD.table(name, 0, 300) for name in "rs"}
    expected = hf.join(tables, on="r.key = s.key", window="2 seconds", time="ts", how="left")
    code, said, _ = cli("run", write(LOCAL, NOW, join=join, sink=PARQUET))
    assert 0 == code
    found = pq.read_table(tmp_path / "out")
    unmatched = [row for row in found.to_pylist() if row["s_id"] is None]
    assert unmatched
    assert set(map(str, unmatched)) < {str(row) for row in expected.to_pylist() if row["s_id"] is None}
    hft.assert_same(found.filter(pc.is_valid(found["s_id"])), right(300))
    code, said, _ = cli("explain", write(LOCAL, NOW, join=join))
    assert (0, "left join of r and s on local") == (code, said[0])
    code, said, _ = cli("verify", write(LOCAL, NOW, join=join))
    assert (0, "All engines agree with the oracle") == (code, said[0])


def test_the_order_of_arrival(write: Write, tmp_path: Path) -> None:
    join = '[join]\non = "r.key = s.key"\nwindow = "50 rows"\ntime = "ts"\norder = "arrival"\n'
    code, said, _ = cli("explain", write(LOCAL, NOW, join=join))
    assert (0, True) == (code, "  order      by arrival" in said)
    code, said, _ = cli("run", write(LOCAL, NOW, join=join, sink=PARQUET))
    tables = {name: WORKLOAD.table(name, 0, 300) for name in "rs"}
    spec = hf.JoinSpec(("r", "s"), "r.key = s.key", window="50 rows", time="ts", order="arrival")
    session = hf.session(spec, {name: table.schema for name, table in tables.items()})
    steps = [{name: table.slice(at, 100) for name, table in tables.items()} for at in (0, 100, 200)]
    expected = pa.Table.from_batches([b for step in steps for b in session.push_together(step)], session.schema)
    assert len(expected) > 10
    hft.assert_same(pq.read_table(tmp_path / "out"), expected)
    assert f"done: 300 of r, 300 of s in, {len(expected)} matches out" == said[-1]
    for command, top in (("run", 'mode = "batch"'), ("explain", 'mode = "batch"'), ("verify", NOW)):
        code, _, error = cli(command, write(LOCAL, top, join=join))
        assert (2, True) == (code, "bounded inputs need a column that has it: sequence=" in error)


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


@pytest.mark.parametrize("cores", [1, 3])
def test_explain_without_spark_says_what_hf_explain_says(write: Write, cores: int) -> None:
    from handfast.connectors.local import open_source
    from handfast.connectors.pipeline import Pipeline

    file = write(NOW, f"cores = {cores}")
    code, said, _ = cli("explain", file, "--engine", "local")
    pipeline = Pipeline.read(Path(file), engine="local")
    tables = {name: open_source(source).take_all() for name, source in pipeline.sources.items()}
    expected = hf.explain(tables, pipeline.spec, options=hf.LocalOptions(cores=cores))
    assert (0, expected.splitlines()) == (code, said)


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


# -- the example -----------------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"


def test_what_the_example_writes_is_not_to_be_committed() -> None:
    pipeline = Pipeline.read(EXAMPLE / "pipeline.toml")
    assert pipeline.sink.path is not None
    assert pipeline.checkpoint is not None
    ignored = (EXAMPLE / ".gitignore").read_text().splitlines()
    assert {f"/{Path(path).name}/" for path in (pipeline.sink.path, pipeline.checkpoint)} <= set(ignored)


@pytest.mark.spark
@pytest.mark.usefixtures("shared_session")
def test_engines_do_not_write_among_the_rows_of_each_other(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, ignore=shutil.ignore_patterns("matches", "checkpoint"), dirs_exist_ok=True)
    file, out = tmp_path / "pipeline.toml", tmp_path / "matches"
    assert 0 == cli("run", file, "--engine", "local")[0]
    written = sorted(path.name for path in out.iterdir())
    for engine in ("spark", "local"):
        code, _, error = cli("run", file, "--engine", engine)
        assert (2, f"handfast: [sink] writes to {out}, and something is there already") == (code, error.split(";")[0])
    assert written == sorted(path.name for path in out.iterdir())
    shutil.rmtree(out)
    assert 0 == cli("run", file, "--engine", "spark")[0]
    code, _, error = cli("run", file, "--engine", "local")
    assert (2, f"handfast: [sink] writes to {out}, and something is there already") == (code, error.split(";")[0])
