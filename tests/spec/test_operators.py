"""Operators bind as tight as in Spark: random texts without brackets mean the same to both."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from handfast.judge import evaluation
from handfast.spec import types
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LETTERS = {"r": ("a", "b"), "s": ("c", "d")}
BOOLEANS = {
    stream: Schema(tuple((name, types.BOOLEAN) for name in (*letters, "n"))) for stream, letters in LETTERS.items()
}
COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")


def operand(random: Random) -> str:
    return random.choice(["r.a", "r.b", "s.c", "s.d", "r.a", "s.c", "TRUE", "FALSE", "NULL", "r.n"])


def compared(random: Random, most: int) -> str:
    parts = [operand(random)]
    for _ in range(random.randrange(most + 1)):
        parts += [random.choice(COMPARISONS), operand(random)]
    return " ".join(parts)


def condition(random: Random) -> str:
    """A value, with a predicate behind it or without."""
    first = compared(random, 3)
    negated = random.choice(["", "NOT "])
    return random.choice(
        [
            first,
            f"{first} {negated}IN ({compared(random, 1)} OR NOT {compared(random, 1)}, {compared(random, 1)})",
            f"{first} {negated}BETWEEN {compared(random, 1)} AND {compared(random, 1)}",
            f"{first} IS {negated}{random.choice(['NULL', 'TRUE', 'FALSE'])}",
            f"{first} IS {negated}DISTINCT FROM {compared(random, 2)}",
        ]
    )


def text(random: Random, most: int = 4) -> str:
    """A condition of several parts; no bracket says what belongs together."""
    parts = []
    for _ in range(random.randrange(most) + 1):
        parts += [random.choice(["AND", "OR"]), random.choice(["", "", "NOT ", "! ", "NOT NOT "]) + condition(random)]
    return " ".join(parts[1:])


def disagreements(spark: SparkSession, texts: list[str]) -> dict[str, Any]:
    """The texts of which Spark says something else, over all values of four booleans."""
    every = list(product([False, True, None], repeat=4))
    rows = ", ".join(f"({', '.join('NULL' if v is None else str(v) for v in values)})" for values in every)
    # a table of constants: Spark's optimizer computes the answers itself, and compiles nothing
    table = (
        f"(SELECT struct(a, b, CAST(NULL AS BOOLEAN) AS n) AS r, struct(c, d) AS s FROM VALUES {rows} AS t(a, b, c, d))"
    )
    wrong: dict[str, Any] = {}
    for start in range(0, len(texts), 50):
        some = texts[start : start + 50]
        asked = ", ".join(f"({sql}) AS v{i}" for i, sql in enumerate(some))
        said = spark.sql(f"SELECT {asked} FROM {table}").collect()
        for i, sql in enumerate(some):
            rule = evaluation.compile(bind(sql, BOOLEANS))
            ours = [rule([{"a": a, "b": b, "n": None}, {"c": c, "d": d, "n": None}]) for a, b, c, d in every]
            theirs = [row[i] for row in said]
            if ours != theirs:
                wrong[sql] = next(t for t in zip(every, ours, theirs, strict=True) if t[1] is not t[2])
    return wrong


@pytest.mark.spark
def test_operators_bind_as_in_spark(spark: SparkSession) -> None:
    random = Random(17)
    known = [
        "r.a = s.c IN (TRUE, FALSE)",
        "r.a = s.c < s.d",
        "r.a = s.c BETWEEN FALSE AND TRUE",
        "NOT r.a = s.c IS NULL",
        "r.a < s.c <=> s.d = r.b",
    ]
    assert {} == disagreements(spark, known + [text(random) for _ in range(300)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10))
def test_operators_bind_as_in_spark_in_thousands_of_texts(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    assert {} == disagreements(spark, [text(random, 6) for _ in range(500)])
