"""Rows of text: read as the schema says, as Spark reads them; what does not fit is named or counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import handfast as hf
import handfast.testing as hft
from handfast.connectors.ddl import arrow_schema
from handfast.connectors.pipeline import Pipeline, Sink, Source
from handfast.connectors.text_rows import TextRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "ts timestamp, at timestamp_ntz, day date, k int, big bigint, v double, d decimal(5,2), b boolean, s string"
CSV = '''ts,at,day,k,big,v,d,b,s
2026-01-01 12:00:00,2026-01-01 12:00:00,2026-01-31,1,9223372036854775807,1.5,1.25,true,a
2026-01-01T12:00:00.5Z,2026-01-01T12:00:00.000001,,-1,,-0.0,-3,FALSE,"b, c"
2026-01-01T12:00:00+01:00,,,,,,,,"it ""is"""
'''
JSON = """{"ts": "2026-01-01T12:00:00Z", "at": "2026-01-01T12:00:00", "day": "2026-01-31", "k": 1, "v": 1.5, "d": 1.25}

{"ts": "2026-01-01T12:00:00.5Z", "k": -1, "v": 2, "b": true, "s": "x", "more": 1}
{"s": 5}
"""
SHORT = "ts timestamp, k int"
CORRUPT_CSV = "ts,k\n2026-01-01,1\n2026-01-01,x\n2026-01-01\n2026-01-01,1,2\nnever,1\n2026-01-01,99999999999\n,\n"
CORRUPT_JSON = """{"ts": "2026-01-01T00:00:00Z", "k": 1}
{"ts": "2026-01-01T00:00:00Z", "k": "x"}
{"ts": "2026-01-01T00:00:00Z"
[1]
{"ts": "never", "k": 1}
{}
"""


def text_rows(lines: str, ddl: str, *, drops: bool = False) -> TextRows:
    return TextRows("r", lines, arrow_schema(ddl, what="schema"), drops)


def pipeline_of(path: Path, lines: str, ddl: str, on_corrupt: str) -> Pipeline:
    spec = hf.JoinSpec(("r", "s"), "r.k = s.k", window="1 s", time="ts")
    source = Source("r", lines, str(path), ddl, on_corrupt)
    other = Source("s", lines, str(path), ddl, on_corrupt)
    return Pipeline(path, {"r": source, "s": other}, spec, Sink("none"), mode="batch")


@pytest.mark.spark
@pytest.mark.parametrize(("lines", "text"), [("csv", CSV), ("json", JSON)])
def test_rows_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, lines: str, text: str) -> None:
    from handfast.connectors import spark as connector

    (tmp_path / f"1.{lines}").write_text(text)
    found, corrupt = text_rows(lines, DDL).read(text.splitlines(keepends=True), where="text")
    frames = connector.open_sources(spark, pipeline_of(tmp_path, lines, DDL, "fail"))
    assert (3, 0) == (len(found), corrupt)
    hft.assert_same(found, frames["r"])


@pytest.mark.spark
@pytest.mark.parametrize(("lines", "text", "bad"), [("csv", CORRUPT_CSV, 5), ("json", CORRUPT_JSON, 4)])
def test_corrupt_rows_are_those_that_spark_drops(
    spark: SparkSession, tmp_path: Path, lines: str, text: str, bad: int
) -> None:
    from handfast.connectors import spark as connector

    (tmp_path / f"1.{lines}").write_text(text)
    found, corrupt = text_rows(lines, SHORT, drops=True).read(text.splitlines(keepends=True), where="text")
    assert (2, bad) == (len(found), corrupt)
    pipeline = pipeline_of(tmp_path, lines, SHORT, "drop")
    frames = connector.open_sources(spark, pipeline)
    hft.assert_same(found, connector.without_corrupt(frames)["r"])
    into = connector.observations(pipeline.spec)
    counted = connector.counted(frames, pipeline.spec, into=into)["r"]
    assert 2 == len(counted.collect())
    # one row fits and has no time
    assert (2, bad, 1) == tuple(into["r"].get[name] for name in ("rows", "corrupt", "rejected"))


@pytest.mark.parametrize(
    ("lines", "text", "message"),
    [
        ("csv", "ts,k\n2026-01-01,1\n2026-01-01,x\n", "line 3 of f.csv is corrupt: k = 'x' is not of type int"),
        ("csv", "ts,k\n2026-01-01\n", "line 2 of f.csv is corrupt: it has 1 cells, not 2"),
        ("csv", 'ts,k\n2026-01-01,"x\n', "line 2 of f.csv is corrupt: k = 'x' is not of type int"),
        ("csv", "ts,k\n2026-01-01,t\n", "line 2 of f.csv is corrupt: k = 't' is not of type int"),
        ("csv", "ts,k\n2026-13-01,1\n", "line 2 of f.csv is corrupt: ts = '2026-13-01' is not of type timestamp"),
        ("csv", "ts,k\n2026-01-01,1_0\n", "line 2 of f.csv is corrupt: k = '1_0' is not of type int"),
        ("json", '{"k": 1}\n{"k": 1.5}\n', "line 2 of f.csv is corrupt: k = 1.5 is not of type int"),
        ("json", '{"k": true}\n', "line 1 of f.csv is corrupt: k = true is not of type int"),
        ("json", '{"k": [1, {}]}\n', "line 1 of f.csv is corrupt: k = [1, {}] is not of type int"),
        ("json", '{"k": "1"}\n', "line 1 of f.csv is corrupt: k = '1' is not of type int"),
        ("json", '{"k": "x", "k": 1}\n', "line 1 of f.csv is corrupt: k = 'x' is not of type int"),
        (
            "json",
            '{"k": 1\n',
            "line 1 of f.csv is corrupt: it is not valid JSON: a comma or } is missing",
        ),
        ("json", '{"k": x}\n', "line 1 of f.csv is corrupt: it is not valid JSON: there is no value at character 7"),
        ("json", "[]\n", "line 1 of f.csv is corrupt: it is not a JSON object"),
        ("json", "{\n", "line 1 of f.csv is corrupt: it is not valid JSON: a name"),
    ],
)
def test_the_first_corrupt_row_is_named(lines: str, text: str, message: str) -> None:
    with pytest.raises(hf.EngineError) as error:
        text_rows(lines, SHORT).read(text.splitlines(keepends=True), where="f.csv")
    assert str(error.value).startswith(f"Stream 'r': {message}")
    assert 'or say on_corrupt = "drop"' in str(error.value)


def test_another_header_is_an_error_whatever_is_done_with_corrupt_rows() -> None:
    with pytest.raises(hf.SpecError, match=r"f\.csv has the columns k, ts, the schema of stream 'r' says ts, k"):
        text_rows("csv", SHORT, drops=True).read(["k,ts\n"], where="f.csv")


def test_a_type_that_is_not_read_from_text_is_refused() -> None:
    with pytest.raises(hf.SpecError, match="Column 'raw' of stream 'r' is of type binary, which the local engine"):
        TextRows("r", "csv", pa.schema([("raw", pa.binary())]))


def test_many_rows_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from handfast.connectors import text_rows as module

    monkeypatch.setattr(module, "_FRACTION", 3)
    lines = ["ts,k\n", *(f"2026-01-01,{k}\n" for k in range(10)), "2026-01-01,x\n"]
    found, corrupt = text_rows("csv", SHORT, drops=True).read(lines, where="text")
    assert (list(range(10)), 1) == (found["k"].to_pylist(), corrupt)
