"""Columns that no predicate names: whatever type Spark has for them, NULL or not at every level, they ride along."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from tests.engines.spark.crash_job import finish

pytestmark = pytest.mark.spark

VALUES = {  # of every type, as SQL; {n} is the row's number
    "boolean": "{n} % 2 = 0",
    "tinyint": "CAST({n} AS TINYINT)",
    "smallint": "CAST({n} AS SMALLINT)",
    "int": "CAST({n} AS INT)",
    "bigint": "{n}",
    "float": "CAST(IF({n} = 1, 'NaN', {n} + 0.5) AS FLOAT)",
    "double": "CAST(IF({n} = 1, '-Infinity', {n} + 0.1) AS DOUBLE)",
    "decimal": "CAST({n} + 0.25 AS DECIMAL(10,2))",
    "wide_decimal": "CAST({n} + 0.123456789012345678 AS DECIMAL(38,18))",
    "string": "CONCAT('ü', {n})",
    "collated": "COLLATE(CONCAT('A', {n}), 'UTF8_LCASE')",
    "char": "CAST(CONCAT('c', {n}) AS CHAR(5))",
    "varchar": "CAST(CONCAT('v', {n}) AS VARCHAR(5))",
    "binary": "CAST(CONCAT('b', {n}) AS BINARY)",
    "date": "DATE_ADD(DATE '2026-01-01', CAST({n} AS INT))",
    "timestamp": "TIMESTAMP_MICROS(1767225600123456 + {n})",
    "timestamp_ntz": "CAST(TIMESTAMP_MICROS(1767225600123456 + {n}) AS TIMESTAMP_NTZ)",
    "time": "TIME '12:34:56.789'",
    "interval_day": "MAKE_DT_INTERVAL(CAST({n} AS INT), 2, 3, 4.5)",
    "interval_hour": "INTERVAL '5:30' HOUR TO MINUTE",
    "variant": "PARSE_JSON(CONCAT('{{\"a\": [', {n}, ']}}'))",
    "geometry": "ST_GEOMFROMWKB(X'0101000000000000000000F03F0000000000000040')",
    "geography": "ST_GEOGFROMWKB(X'0101000000000000000000F03F0000000000000040')",
}
SHAPES = {  # around a value that is never NULL, {v}, and around one that is at times, {m}
    "itself": "{v}",
    "or_null": "{m}",
    "array": "ARRAY({v}, {v})",
    "array_of_nulls": "ARRAY({v}, {m}, NULL)",
    "array_or_null": "IF({n} % 3 = 0, NULL, ARRAY({v}))",
    "map": "MAP('k', {v})",
    "map_of_nulls": "IF({n} % 3 = 1, NULL, MAP('k', {m}, 'l', {v}))",
    "struct": "NAMED_STRUCT('x', {v}, 'y', {n})",
    "struct_of_nulls": "NAMED_STRUCT('x', {m}, 'y', {n})",
    "struct_or_null": "IF({n} % 3 = 0, NULL, NAMED_STRUCT('x', {v}, 'y', {n}))",
    "deep": "ARRAY(IF({n} % 3 = 2, NULL, NAMED_STRUCT('x', {v}, 'in', MAP({n}, ARRAY(NAMED_STRUCT('z', {m}))))), NULL)",
}
ALONE = {"void": "NULL", "void_array": "ARRAY(NULL)", "map_by_time": "MAP(ts, ts)"}
EVERY = [*product(VALUES, SHAPES)]
# every type in shapes that have all the others inside, and every shape of types that are made again on their way
SOME = [(kind, shape) for kind, shape in EVERY if shape in ("or_null", "deep") or kind in ("timestamp", "variant")]
EXTENTS = pytest.mark.parametrize(
    "columns", [pytest.param(SOME, id="some"), pytest.param(EVERY, id="every", marks=pytest.mark.slow)]
)
ROWS = 6

Columns = list[tuple[str, str]]  # types and shapes


def payload(ids: DataFrame, columns: Columns) -> DataFrame:
    """Rows with a column of every type in every shape; two and two have the same time."""
    selected = [f"{sql} AS `{name}`" for name, sql in ALONE.items()]
    for kind, shape in columns:
        value = VALUES[kind].format(n="id")
        maybe = f"IF(id % 2 = 0, NULL, {value})"
        selected.append(f"{SHAPES[shape].format(n='id', v=value, m=maybe)} AS `{kind}_{shape}`")
    return ids.selectExpr("id", "TIMESTAMP_SECONDS(1767225600 + id DIV 2) AS ts").selectExpr("id", "ts", *selected)


ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session in a zone that is not the one in which workers hand timestamps back, for a while."""
    hf.configure(spark, cores=2)
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "America/New_York")
    yield spark
    spark.conf.set(ZONE, before)


def contents(frame: DataFrame) -> Counter[str]:
    """The rows as texts: of types that have no other way to compare."""
    return Counter(str(row) for row in frame.collect())


def by_spark(rows: DataFrame, others: DataFrame, how: str) -> DataFrame:
    """The join of rows with those of the same id, as Spark's own."""
    r = rows.selectExpr(*(f"`{name}` AS `r_{name}`" for name in rows.columns))
    s = others.selectExpr(*(f"`{name}` AS `s_{name}`" for name in others.columns))
    return r.join(s, r["r_id"] == s["s_id"], how).selectExpr("*", "r_ts AS match_time")


@EXTENTS
def test_every_type_rides_through_a_batch_join(session: SparkSession, columns: Columns) -> None:
    rows, others = payload(session.range(ROWS), columns), payload(session.range(1, ROWS), columns)
    assert {True, False} == {field.nullable for field in rows.schema.fields}
    wanted = by_spark(rows, others, "left")
    asked: dict[str, Any] = {"on": "r.id = s.id", "window": "1 hour", "time": "ts", "how": "left"}
    for way in ("cores", "native"):
        found = hf.join({"r": rows, "s": others}, **asked, options=hf.SparkOptions(batch_join=way))
        assert types_of(wanted) == types_of(found)
        assert contents(wanted) == contents(found)


def types_of(frame: DataFrame) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in frame.schema.fields]


@EXTENTS
def test_every_type_rides_through_a_streaming_join(session: SparkSession, tmp_path: Path, columns: Columns) -> None:
    """By way of the sequencer, which orders rows of one time by all their columns."""
    streams = {}
    for name in ("r", "s"):
        for first, last in ((0, ROWS), (100, 101)):  # the second time lets the first go
            session.range(first, last, 1, 1).write.mode("append").parquet(str(tmp_path / name))
        read = session.readStream.schema("id bigint").option("maxFilesPerTrigger", 1)
        streams[name] = payload(read.parquet(str(tmp_path / name)).selectExpr("COALESCE(id, 0) AS id"), columns)
    matches = hf.join(streams, on="r.id = s.id", time="ts", lateness="1 second", window="100 rows")
    found: Counter[str] = Counter()
    writer = matches.writeStream.foreachBatch(lambda batch, number: found.update(contents(batch)))
    finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start())
    rows = payload(session.range(ROWS), columns)
    assert contents(by_spark(rows, rows, "inner")) == found


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month"),
        ("ARRAY(INTERVAL '1' YEAR)", "array<interval year>"),
        ("MAKE_INTERVAL(1, 2, 3)", "interval"),
        ("MAP()", "map<void,void>"),
    ],
    ids=str,
)
def test_a_type_that_spark_does_not_hand_to_python_is_refused_with_its_column(
    session: SparkSession, sql: str, type_: str
) -> None:
    rows = session.range(ROWS).selectExpr("id", "TIMESTAMP_SECONDS(id) AS ts")
    refused = re.escape(f"Column 'a.b' of stream 's' is of type {type_}, which Spark does not hand to Python")
    with pytest.raises(hf.SpecError, match=refused):
        hf.join({"r": rows, "s": rows.selectExpr("*", f"{sql} AS `a.b`")}, on="r.id = s.id", window="1 s", time="ts")


def test_a_batch_join_leaves_alone_what_nothing_asks_for(session: SparkSession) -> None:
    """Also a column that Spark could not hand to Python, and one that fails when it is read."""
    rows = session.range(ROWS).selectExpr("id", "TIMESTAMP_SECONDS(id) AS ts")
    others = rows.selectExpr("ARRAY(INTERVAL '1' YEAR) AS `a.b`", "id", "raise_error('read') AS `c``d`", "ts")
    for asked in ({"select": "r.id, s.ts, match_time"}, {"how": "semi"}, {"how": "anti"}):
        found = hf.join({"r": rows, "s": others}, on="r.id = s.id", window="1 s", time="ts", **asked)
        assert found.count() == (0 if asked == {"how": "anti"} else ROWS)
