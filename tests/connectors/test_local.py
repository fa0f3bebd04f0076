"""Sources and sinks in this process: what comes when, and what is refused."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import handfast as hf
import handfast.testing as hft
from handfast.connectors.local import LocalSink, open_source
from handfast.connectors.pipeline import Sink, Source

ROWS = hft.table("ts | k: int | s\n+1s | 1 | a\n+2.000001s | NULL | NULL")


def put(folder: Path, name: str, age: int, rows: pa.Table = ROWS) -> None:
    """A file so many seconds old."""
    pq.write_table(rows, folder / name)
    os.utime(folder / name, (1_000_000 - age, 1_000_000 - age))


def files(folder: Path, **how: Any) -> Source:
    return Source("r", "parquet", str(folder), **how)


def test_files_come_oldest_first_and_once(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "a", "b")):
        put(tmp_path, f"{name}.parquet", age, pa.table({"name": [name]}))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden").touch()
    source = open_source(files(tmp_path, files_per_trigger=2))
    assert ["b", "a"] == source.take()["name"].to_pylist()
    assert ["c"] == source.take()["name"].to_pylist()
    assert source.take() is None
    assert not source.is_over
    put(tmp_path, "later.parquet", -1, pa.table({"name": ["later"]}))
    assert ["later"] == source.take()["name"].to_pylist()
    assert ["b", "a", "c", "later"] == source.take_all()["name"].to_pylist()


def test_a_pattern_and_a_single_file(tmp_path: Path) -> None:
    put(tmp_path, "a1.parquet", 2)
    put(tmp_path, "b1.parquet", 1)
    assert 2 == len(open_source(files(tmp_path / "a*.parquet")).take_all())
    assert 2 == len(open_source(files(tmp_path / "b1.parquet")).take_all())


def test_parquet_without_files_needs_a_schema(tmp_path: Path) -> None:
    with pytest.raises(hf.SpecError, match="which has no files yet to take the columns from; say schema ="):
        open_source(files(tmp_path))
    source = open_source(files(tmp_path, schema="ts timestamp, k int, s string"))
    assert source.take() is None
    assert 0 == len(source.take_all())
    put(tmp_path, "1.parquet", 0)
    hft.assert_same(source.take(), ROWS)


def test_files_of_other_columns_or_no_parquet_are_named(tmp_path: Path) -> None:
    put(tmp_path, "1.parquet", 2)
    put(tmp_path, "2.parquet", 1, pa.table({"k": [1]}))
    with pytest.raises(hf.EngineError, match=r"2\.parquet does not have the columns of stream 'r'"):
        open_source(files(tmp_path)).take_all()
    (tmp_path / "2.parquet").write_text("nonsense")
    with pytest.raises(hf.EngineError, match=r"2\.parquet cannot be read as parquet"):
        open_source(files(tmp_path)).take_all()


def test_corrupt_rows_of_all_files_are_counted(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.csv").write_text("k\n1\nx\n")
    source = open_source(Source("r", "csv", str(tmp_path), "k int", "drop"))
    assert ([1, 1], 2) == (source.take()["k"].to_pylist(), source.corrupt)
    (tmp_path / "2.csv").write_bytes(b"k\n\xff\n")
    with pytest.raises(hf.EngineError, match=r"2\.csv cannot be read as text"):
        source.take()


def test_a_workload_comes_in_steps_and_ends() -> None:
    options = {"workload": "equality", "stream": "s", "rows": "25", "rowsPerTrigger": "10"}
    source = open_source(Source("r", "handfast", options=options))
    steps = []
    while not source.is_over:
        steps.append(source.take())
    assert [10, 10, 5] == list(map(len, steps))
    assert source.take() is None
    again = open_source(Source("r", "handfast", options=options)).take_all()
    hft.assert_same(pa.concat_tables(steps), again, in_order=True)
    endless = open_source(Source("r", "handfast", options={"workload": "equality", "stream": "s"}))
    with pytest.raises(hf.SpecError, match="A batch read of an endless workload needs an end"):
        endless.take_all()


def test_lines_of_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        source = open_source(Source("r", "socket", address, "k int", "drop", lines="json"))
        connection, _ = server.accept()
        with connection:
            assert source.take() is None
            connection.sendall(b'{"k": 1}\n{"k": "x"}\n{"k"')
            rows = _wait(source)
            assert ([1], 1) == (rows["k"].to_pylist(), source.corrupt)
            connection.sendall(b": 2}\n")
            assert [2] == _wait(source)["k"].to_pylist()
            connection.sendall(b'{"k": 3}')
        assert [3] == _wait(source)["k"].to_pylist()
        assert source.is_over
        with pytest.raises(hf.SpecError, match="A socket has no end"):
            source.take_all()
    with pytest.raises(hf.EngineError, match="cannot connect to 127"):
        open_source(Source("r", "socket", address, "k int"))


def _wait(source: Any) -> pa.Table:
    while (rows := source.take()) is None:
        pass
    return rows


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            Source("r", "kafka"),
            "has the format 'kafka'; the local engine reads parquet, csv, json, socket and handfast",
        ),
        (Source("r", "parquet", "/x", options={"mergeSchema": "true"}), "options are those of Spark's reader"),
        (Source("r", "parquet", "/x", select=("a",)), "select is SQL for Spark"),
        (Source("r", "parquet", "s3a://x"), "the local engine reads files of this machine only"),
        (Source("r", "parquet", "/nowhere/at/all"), "reads /nowhere/at/all, and there is no such file or folder"),
        (Source("r", "socket", "tcp://localhost:1"), "needs a schema of its lines"),
        (Source("r", "socket", "localhost", "k int"), 'needs the address of its socket: path = "tcp://localhost:9999"'),
        (Source("r", "handfast", options={"workload": "equality"}), "needs option 'stream'"),
        (Source("r", "csv", "/", "k"), "schema must be columns like 'ts timestamp, price double', not 'k'"),
    ],
)
def test_what_the_local_engine_does_not_read_is_named(source: Source, message: str) -> None:
    with pytest.raises(hf.HandfastError) as error:
        open_source(source)
    assert message in str(error.value)


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_matches_are_written_and_can_be_read_again(tmp_path: Path, format_: str) -> None:
    sink = LocalSink(Sink(format_, str(tmp_path / "out")), show=pytest.fail)
    sink.write(ROWS.slice(0, 0))
    sink.write(ROWS.slice(0, 1))
    sink.write(ROWS.slice(1))
    assert [f"part-0000{k}.{format_}" for k in range(2)] == sorted(p.name for p in (tmp_path / "out").iterdir())
    again = Source("r", format_, str(tmp_path / "out"), "ts timestamp, k int, s string")
    hft.assert_same(open_source(again).take_all(), ROWS)


def test_what_is_there_already_is_kept_unless_asked(tmp_path: Path) -> None:
    sink = Sink("json", str(tmp_path / "out"))
    LocalSink(sink, show=pytest.fail).write(ROWS)
    with pytest.raises(hf.SpecError, match='something is there already; take another path, or say if_exists = "over'):
        LocalSink(sink, show=pytest.fail)
    LocalSink(replace(sink, if_exists="append"), show=pytest.fail).write(ROWS)
    assert 2 == len(list((tmp_path / "out").iterdir()))
    LocalSink(replace(sink, if_exists="overwrite"), show=pytest.fail).write(ROWS)
    (only,) = (tmp_path / "out").iterdir()
    assert {"ts": "2026-01-01T00:00:01.000Z", "k": 1, "s": "a"} == json.loads(only.read_text().splitlines()[0])


def test_the_terminal_shows_and_none_forgets(tmp_path: Path) -> None:
    shown: list[pa.Table] = []
    LocalSink(Sink("console"), show=shown.append).write(ROWS)
    LocalSink(Sink("none"), show=pytest.fail).write(ROWS)
    assert [ROWS] == shown


def test_what_the_local_engine_does_not_write_is_named() -> None:
    for sink, message in [
        (Sink("delta", "/x"), "the local engine writes parquet, csv, json, console, none"),
        (Sink("parquet", "/x", options={"a": "b"}), "options are those of Spark's writer"),
        (Sink("parquet", "hdfs://x"), "the local engine writes files of this machine only"),
    ]:
        with pytest.raises(hf.UnsupportedError, match=message):
            LocalSink(sink, show=pytest.fail)
