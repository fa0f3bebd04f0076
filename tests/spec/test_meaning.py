"""What a function or operator means is what Spark SQL makes of it, corner by corner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from handfast.flow.batch import schema_of
from handfast.judge import evaluation
from handfast.spec.expression import Call, Expr
from handfast.spec.meaning import AnsiError
from handfast.spec.predicate import bind
from tests.judges.rows import plain_values, rows_of
from tests.strategies.expressions import EXPRESSIONS, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = rows()
PLAIN = rows_of(TABLE)
CHUNK = 60  # expressions that Spark is asked for in one query
FAILS = object()


def tree_of(sql: str) -> Expr:
    """The typed tree of any expression, taken from a comparison with itself."""
    tree = bind(f"({sql}) <=> ({sql})", {"r": schema_of(TABLE.schema)})
    assert isinstance(tree, Call)
    return tree.args[0]


def said(sql: str) -> list[Any]:
    """What the oracle makes of every row."""
    evaluate = evaluation.compile(tree_of(sql))

    def of(row: dict[str, Any]) -> Any:
        try:
            return evaluate([row])
        except AnsiError:
            return FAILS

    return [of(row) for row in PLAIN]


OURS = {sql: said(sql) for sql in EXPRESSIONS}


@pytest.fixture(scope="module")
def corners(spark: SparkSession) -> DataFrame:
    """The rows in Spark, each with its number, and for every expression whether it has a value there."""
    flags = {f"ok{k}": pa.array([value is not FAILS for value in OURS[sql]]) for k, sql in enumerate(EXPRESSIONS)}
    number = pa.array(range(len(TABLE)), pa.int32())
    columns = {"row": number, **dict(zip(TABLE.column_names, TABLE.columns, strict=True)), **flags}
    return spark.createDataFrame(pa.table(columns)).cache()


@pytest.mark.spark
@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), CHUNK))
def test_spark_says_the_same(corners: DataFrame, start: int) -> None:
    some = list(enumerate(EXPRESSIONS))[start : start + CHUNK]
    asked = [f"CASE WHEN ok{k} THEN {sql} END AS v{k}" for k, sql in some]
    answers = corners.selectExpr("row", *asked).toArrow().sort_by("row")
    differ = []
    for k, sql in some:
        theirs = plain_values(answers[f"v{k}"])
        if pa.types.is_duration(answers.schema.field(f"v{k}").type):
            theirs = plain_values(answers[f"v{k}"].cast(pa.int64()))
        ours = [None if value is FAILS else value for value in OURS[sql]]
        scale = getattr(answers.schema.field(f"v{k}").type, "scale", 0) - tree_of(sql).type.scale
        ours = [value * 10**scale if scale > 0 and value is not None else value for value in ours]
        differ += [(sql, i, ours[i], theirs[i]) for i in range(len(ours)) if repr(ours[i]) != repr(theirs[i])][:3]
    assert [] == differ


@pytest.mark.spark
@pytest.mark.parametrize("sql", [sql for sql, values in OURS.items() if FAILS in values])
def test_spark_fails_where_we_refuse(corners: DataFrame, sql: str) -> None:
    from pyspark.errors import PySparkException

    for row in [i for i, value in enumerate(OURS[sql]) if value is FAILS][:1]:
        with pytest.raises(PySparkException):
            corners.where(f"row = {row}").selectExpr(f"{sql} AS v").toArrow()


def test_the_corners_are_met() -> None:
    failing = sum(FAILS in values for values in OURS.values())
    assert failing > 80
    assert all(any(value is not None and value is not FAILS for value in values) for values in OURS.values())
