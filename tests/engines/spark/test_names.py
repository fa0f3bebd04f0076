"""Columns of any name on Spark: with dots, backticks, spaces, in other scripts, alike but for their case."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from tests.engines.spark.crash_job import finish

pytestmark = pytest.mark.spark

NAMES = (
    "a.b",
    "a`b",
    "`",
    "a b",
    "ü",
    "İ",
    "価格",
    "x",
    "X",
    "select",
    "'",
    '"',
    "#time",
    "a,b",
    "a\nb",
    "s.x",
    "match_time",
)
AT = "the `time`. of it"
ROWS = 6


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def named(ids: DataFrame) -> DataFrame:
    """Rows whose column number k, by whatever name, has the row's number and k; their time's name is no better."""
    columns = [f"id * 100 + {k}" for k in range(len(NAMES))]
    return ids.selectExpr("TIMESTAMP_SECONDS(id)", *columns).toDF(AT, *NAMES)


ON = " AND ".join(f"r.{quoted(name)} = s.{quoted(name)}" for name in NAMES)
PLACES = [(stream, name, f"{name} {k} of {stream}") for k, name in enumerate(NAMES) for stream in "rs"]
SELECT = ", ".join(f"{stream}.{quoted(name)} AS {quoted(alias)}" for stream, name, alias in PLACES)
RESULT = [alias for _, _, alias in PLACES]


def contents(frame: DataFrame) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row) for row in frame.collect())


WANTED = Counter(tuple(row * 100 + k for k in range(len(NAMES)) for _ in "rs") for row in range(ROWS))


def test_a_batch_join_takes_columns_of_any_name(spark: SparkSession) -> None:
    hf.configure(spark, cores=2)
    rows = named(spark.range(ROWS))
    every = hf.join({"r": rows, "s": rows}, on=ON, window="10 rows", time=AT, sequence="a.b", in_order=True)
    assert [*(f"{stream}_{name}" for stream in "rs" for name in (AT, *NAMES)), "match_time"] == every.columns
    assert ROWS == every.count()
    matches = hf.join({"r": rows, "s": rows}, on=ON, window="1 second", time=AT, select=SELECT)
    assert RESULT == matches.columns
    assert WANTED == contents(matches)


def test_a_streaming_join_takes_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    hf.configure(spark, cores=2)
    spark.range(ROWS).write.parquet(str(tmp_path / "ids"))
    rows = named(spark.readStream.schema("id bigint").parquet(str(tmp_path / "ids")))
    lateness = "1 minute"
    matches = hf.join({"r": rows, "s": rows}, on=ON, window="1 second", time=AT, lateness=lateness, select=SELECT)
    found: Counter[tuple[int, ...]] = Counter()
    writer = matches.writeStream.foreachBatch(lambda batch, number: found.update(contents(batch)))
    finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start())
    assert RESULT == matches.columns
    assert WANTED == found


@pytest.mark.parametrize("sql", ["INTERVAL '1' DAY", "INTERVAL '1 02:03:04.5' DAY TO SECOND", "MAKE_DT_INTERVAL(id)"])
def test_an_interval_in_the_predicate_is_refused_with_its_column(spark: SparkSession, sql: str) -> None:
    hf.configure(spark, cores=2)
    rows = spark.range(ROWS).selectExpr("TIMESTAMP_SECONDS(id) AS ts", f"{sql} AS `far.off`")
    with pytest.raises(hf.SpecError, match=r"'s\.`far\.off`' is of type interval day.*, which a predicate cannot use"):
        hf.join({"r": rows, "s": rows}, on="r.ts - s.ts < s.`far.off`", window="1 second", time="ts")


def streams(spark: SparkSession, home: Path, *columns: str) -> dict[str, DataFrame]:
    """Two streams with the same columns, made of numbers from 0."""
    spark.range(ROWS).write.mode("overwrite").parquet(str(home / "ids"))
    rows = (
        spark.readStream.schema("id bigint")
        .parquet(str(home / "ids"))
        .selectExpr("TIMESTAMP_SECONDS(id) AS ts", *columns)
    )
    return {"r": rows, "s": rows}


ALIKE: dict[str, str] = {"on": "r.k = s.K", "window": "1 second", "time": "ts", "lateness": "1 minute"}


def test_columns_that_differ_in_case_alone_are_refused_where_files_are_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    hf.configure(session, cores=2)
    inputs = streams(session, tmp_path, "id AS k", "id AS K")
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(hf.SpecError, match=r"^to has the columns 'r_k' and 'r_K', .*; rename one of the two, or set"):
        hf.write(hf.join(inputs, **ALIKE), to=tmp_path / "out", checkpoint=checkpoint)
    named = hf.join(inputs, **ALIKE, select="r.k")
    with pytest.raises(hf.SpecError, match=r"^late_rows of 'r' has the columns 'k' and 'K'"):
        hf.write(named, to=tmp_path / "out", late_rows=tmp_path / "late", checkpoint=checkpoint)
    assert not checkpoint.exists()


def test_columns_that_differ_in_case_alone_are_written_where_case_counts(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    hf.configure(session, cores=2)
    session.conf.set("spark.sql.caseSensitive", "true")
    inputs = streams(session, tmp_path, "id AS k", "id + 100 AS K")
    matches = hf.join(inputs, **ALIKE | {"on": "r.k = s.K - 100"})
    finish(hf.write(matches, to=tmp_path / "out", checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}))
    written = session.read.parquet(str(tmp_path / "out")).select("r_k", "r_K", "s_k", "s_K")
    assert Counter((k, k + 100, k, k + 100) for k in range(ROWS)) == contents(written)


TWICE = "NAMED_STRUCT('x', id, 'x', id)"


@pytest.mark.parametrize("sql", [TWICE, f"ARRAY({TWICE})", f"MAP(id, {TWICE})", f"NAMED_STRUCT('y', {TWICE})"])
def test_a_struct_with_a_field_twice_is_refused_with_its_column(spark: SparkSession, sql: str) -> None:
    hf.configure(spark, cores=2)
    rows = spark.range(ROWS).selectExpr("TIMESTAMP_SECONDS(id) AS ts", "id", f"{sql} AS pair")
    refusal = "Column 'pair' of stream 'r' is of type .*, and Spark hands no struct with two fields 'x' to Python"
    with pytest.raises(hf.SpecError, match=refusal):
        hf.join({"r": rows, "s": rows}, on="r.id = s.id", window="1 second", time="ts")
