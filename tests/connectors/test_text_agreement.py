"""Text is read as Spark reads it: every type by every text of `texts.py`, and whole lines, of csv and of json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from handfast.connectors import ddl
from tests.connectors.test_text_rows import pipeline_of
from tests.connectors.texts import CSV_LINES, JSON_LINES, TEXTS, TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[Any, ...]]

COLUMNS = "n int, " + ", ".join(f"c{k} {name}" for k, name in enumerate(TYPES))

# What differs on purpose: Spark makes something doubtful of it, here it is corrupt. docs/pipeline.md has the list.
NO_DATE = {("timestamp", text) for text in ("12:00:05", "T12:00:05", "12:00", "1:2:3")}
LETTERS = {("timestamp", text) for text in TEXTS if re.search("(PST|CET|EST|BST)$", text)}
HEXADECIMAL = {(type_, text) for type_ in ("float", "double") for text in ("0x1p3", "0x1.8p1")}
WRAPPED = {("tinyint", text) for text in ("128", "200", "255")} | {
    ("timestamp", text) for text in ("9223372036854775807", "-9223372036854775808", "9223372036855")
}
DAYS = {("date", text) for text in TEXTS if re.fullmatch(r"[+-]?(\d{1,3}|\d{8,10})", text) and int(text) < 2**31}
DAYS -= {("date", "-2147483649"), ("date", "𝟙𝟚")}

ON_PURPOSE = {
    "csv": NO_DATE | LETTERS | HEXADECIMAL,
    "json, in quotes": NO_DATE | LETTERS | DAYS,
    "json, bare": WRAPPED,
}


def test_the_table_has_every_type_that_is_read() -> None:
    read = {name for name in ddl.TYPES if name not in ("binary", "void")}
    assert read == {name for name in TYPES if "(" not in name}


@pytest.mark.spark
@pytest.mark.parametrize("how", ON_PURPOSE)
def test_every_text_of_every_type_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path, how: str) -> None:
    lines = how.partition(",")[0]
    cases = [(k, type_, text) for k, type_ in enumerate(TYPES) for text in TEXTS]
    rows = [_csv(n, k, text) if how == "csv" else _json(n, k, text, how) for n, (k, _, text) in enumerate(cases)]
    if lines == "csv":
        rows.insert(0, ",".join(["n", *(f"c{k}" for k in range(len(TYPES)))]))
    ours, theirs = (
        {n: str(values[cases[n][0]]) for n, *values in found}
        for found in _both(spark, tmp_path, lines, COLUMNS, "".join(f"{row}\n" for row in rows))
    )
    differ = {n for n in range(len(cases)) if ours.get(n) != theirs.get(n)}
    wrong = {cases[n][1:]: (ours.get(n), theirs.get(n)) for n in differ if cases[n][1:] not in ON_PURPOSE[how]}
    assert not wrong
    assert ON_PURPOSE[how] == {cases[n][1:] for n in differ if n not in ours}


@pytest.mark.spark
def test_every_line_of_csv_is_cut_as_spark_cuts_it(spark: SparkSession, tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{line}\n#{n},\n" for n, line in enumerate(CSV_LINES))
    ours, theirs = (_groups(found) for found in _both(spark, tmp_path, "csv", "a string, b string", text))
    wrong = {line: (a, b) for line, a, b in zip(CSV_LINES, ours, theirs, strict=True) if a != b}
    assert not wrong


@pytest.mark.spark
def test_every_line_of_json_is_taken_as_spark_takes_it(spark: SparkSession, tmp_path: Path) -> None:
    text = "".join(f'{line}\n{{"a":"#{n}"}}\n' for n, line in enumerate(JSON_LINES))
    ours, theirs = (_groups(found) for found in _both(spark, tmp_path, "json", "a string, b int, c double", text))
    wrong = {line: (a, b) for line, a, b in zip(JSON_LINES, ours, theirs, strict=True) if a != b}
    arrays = {'[{"a":"x"}]', '[{"a":"x"},{"a":"y"}]'}  # on purpose: an object on every line
    assert arrays == set(wrong)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("lines", "written"),
    [
        ("csv", b"\xef\xbb\xbfa,b\r\nx,y\n\n \t\nz,w\ru,v"),
        ("csv", b'\n  \n"A",b\nx\x0cy,z\n\x0c\n'),
        ("csv", "a,b\nx\u2028y,z\x85\n".encode()),
        ("json", b'\xef\xbb\xbf{"a":"x"}\r{"a":"y"}\r\n\n{"a":"z"}\n\x0c\n'),
    ],
)
def test_lines_end_where_spark_ends_them(spark: SparkSession, tmp_path: Path, lines: str, written: bytes) -> None:
    ours, theirs = _both(spark, tmp_path, lines, "a string, b string", written)
    assert ours == theirs


def _csv(n: int, place: int, text: str) -> str:
    cells = [""] * len(TYPES)
    cells[place] = '"' + text.replace('"', '""') + '"' if re.search('[,"]|^\\s|\\s$', text) else text
    return ",".join([str(n), *cells])


def _json(n: int, place: int, text: str, how: str) -> str:
    return f'{{"n": {n}, "c{place}": {text if how == "json, bare" else json.dumps(text, ensure_ascii=False)}}}'


def _both(spark: SparkSession, folder: Path, lines: str, columns: str, text: str | bytes) -> tuple[Rows, Rows]:
    """The rows that fit, in the order of the lines, as this process and as Spark reads them."""
    from handfast.connectors import spark as connector
    from handfast.connectors.local import open_source

    (folder / "in").mkdir()
    (folder / "in" / f"1.{lines}").write_bytes(text if isinstance(text, bytes) else text.encode())
    pipeline = pipeline_of(folder / "in", lines, columns, "drop")
    frame = connector.without_corrupt(connector.open_sources(spark, pipeline))["r"]
    return _rows(open_source(pipeline.sources["r"]).take_all()), _rows(frame.toArrow())


def _rows(table: pa.Table) -> Rows:
    """Rows of plain values; times are counted, as years beyond 9999 are times too."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int32())
        if pa.types.is_date(column.type) else column
        for column in table.columns
    ]  # fmt: skip
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _groups(rows: Rows) -> list[list[str]]:
    """The rows of every line: those that stand before its mark."""
    groups: list[list[str]] = [[]]
    for row in rows:
        if row[0] == f"#{len(groups) - 1}":
            groups.append([])
        else:
            groups[-1].append(str(row))
    return groups[:-1]
