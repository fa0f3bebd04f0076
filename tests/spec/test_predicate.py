"""A predicate is parsed, bound and typed as Spark's ANSI mode types it, or refused in words."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from handfast.errors import SpecError
from handfast.spec import types
from handfast.spec.expression import Call, Expr, Literal, Op
from handfast.spec.join import JoinSpec
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema
from handfast.spec.types import Kind, Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "t": types.INT8,
    "h": types.INT16,
    "i": types.INT32,
    "l": types.INT64,
    "f": types.FLOAT,
    "d": types.DOUBLE,
    "c": types.decimal(10, 2),
    "c2": types.decimal(5, 4),
    "k": types.STRING,
    "b": types.BOOLEAN,
    "ts": types.TIMESTAMP,
    "n": types.TIMESTAMP_NTZ,
    "da": types.DATE,
}
SCHEMAS = {"r": Schema((*COLUMNS.items(), ("p", Type(Kind.PAYLOAD, label="list<int>"))))}
NUMBERS = ("t", "h", "i", "l", "f", "d", "c", "c2")
LITERALS = ("1", "3000000000", "99999999999999999999", "0.5", "10.", "0.05", "1e0", "0.5D", "1.5F", "5L", "1S", "NULL")


def value(sql: str) -> Expr:
    """The typed tree of any expression, taken from a comparison with itself."""
    tree = bind(f"({sql}) <=> ({sql})", SCHEMAS)
    assert isinstance(tree, Call)
    return tree.args[0]


def refusal(sql: str) -> str:
    with pytest.raises(SpecError) as error:
        bind(sql, SCHEMAS)
    return str(error.value)


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("t + t", "tinyint"),
        ("t + 1", "int"),
        ("h * t", "smallint"),
        ("i - l", "bigint"),
        ("i / i", "double"),
        ("f / f", "double"),
        ("f + f", "float"),
        ("f + i", "double"),
        ("f + 0.5", "double"),
        ("f + 0.5F", "float"),
        ("i + 0.5", "decimal(12,1)"),
        ("l + 0.5", "decimal(22,1)"),
        ("c * c2", "decimal(16,6)"),
        ("c + 1", "decimal(11,2)"),
        ("c + i", "decimal(13,2)"),
        ("c / 3", "decimal(14,6)"),
        ("c % c2", "decimal(5,4)"),
        ("c + d", "double"),
        ("da + 1", "date"),
        ("da - da", "interval day to second"),
        ("n - da", "interval day to second"),
        ("ROUND(c, 1)", "decimal(10,1)"),
        ("FLOOR(c)", "decimal(9,0)"),
        ("FLOOR(i)", "bigint"),
        ("COALESCE(c, c2)", "decimal(12,4)"),
        ("IF(b, k, NULL)", "string"),
        ("ts - ts", "interval day to second"),
        ("ts + INTERVAL 5 SECONDS", "timestamp"),
        ("INTERVAL 5 SECONDS + n", "timestamp_ntz"),
        ("i % h", "int"),
        ("i IN (1, 2.5)", "boolean"),
        ("k < 'x'", "boolean"),
        ("b IS NOT TRUE", "boolean"),
    ],
)
def test_an_expression_has_sparks_type(sql: str, type_: str) -> None:
    assert type_ == str(value(sql).type)


@pytest.mark.spark
def test_every_expression_has_sparks_type_or_is_refused(spark: SparkSession) -> None:
    names = [*NUMBERS, "k", "b", "ts", "n", "da"]
    columns = ", ".join(f"CAST(NULL AS {COLUMNS[name]}) AS {name}" for name in names)
    spark.sql(f"SELECT {columns}").createOrReplaceTempView("typed")
    expressions = [f"{a} {op} {b}" for op in "+-*/%" for a in NUMBERS for b in (*NUMBERS, *LITERALS)]
    expressions += [f"{a} {op} {b}" for op in ("=", "<", "<=>") for a in names for b in names]
    expressions += [*LITERALS, "-i", "ABS(f)", "-2147483648", "-9223372036854775808"]
    ours = {}
    for sql in expressions:
        with suppress(SpecError):
            ours[sql] = value(sql).type
    assert len(ours) > 0.5 * len(expressions)
    typed = spark.sql("SELECT " + ", ".join(f"{sql} AS v{i}" for i, sql in enumerate(ours)) + " FROM typed").schema
    theirs = dict(zip(ours, (field.dataType.simpleString() for field in typed), strict=True))
    wrong = {
        sql: (str(type_), theirs[sql])
        for sql, type_ in ours.items()
        if str(type_) != theirs[sql] and not (type_ == types.INTERVAL and theirs[sql] == "interval day")
    }
    assert wrong == {}


def test_implicit_conversions_are_casts_and_constants_are_converted_at_once() -> None:
    tree = bind("i < d + 1", SCHEMAS)
    assert isinstance(tree, Call)
    cast, plus = tree.args
    assert isinstance(cast, Call)
    assert cast.op is Op.CAST
    assert isinstance(plus, Call)
    assert plus.args[1] == Literal(1.0, types.DOUBLE)


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("-9223372036854775808", Literal(-(2**63), types.INT64)),
        ("-2147483648", Literal(-(2**31), types.INT32)),
        ("2147483648", Literal(2**31, types.INT64)),
        ("0.05", Literal(5, types.decimal(2, 2))),
        ("1.50", Literal(150, types.decimal(3, 2))),
        ("-0.5", Literal(-5, types.decimal(1, 1))),
        ("1e-3", Literal(0.001, types.DOUBLE)),
        ("0.1D", Literal(0.1, types.DOUBLE)),
        ("0.1F", Literal(0.10000000149011612, types.FLOAT)),
        ("CAST(16777217.0000000001 AS FLOAT)", Literal(16777218.0, types.FLOAT)),  # rounded once, not twice
        ("CAST(1e300 AS FLOAT)", Literal(float("inf"), types.FLOAT)),
        ("7S", Literal(7, types.INT16)),
        ("-128Y", Literal(-128, types.INT8)),
        ("-9223372036854775808L", Literal(-(2**63), types.INT64)),
        (r"'\u0041\'\%\q'", Literal(r"A'\%q", types.STRING)),
        (r"r'a\n'", Literal(r"a\n", types.STRING)),
        ("1.50BD", Literal(150, types.decimal(3, 2))),
        ("X'1fF'", Literal(b"\x01\xff", types.BINARY)),
        ("INTERVAL 5 SECONDS", Literal(5_000_000, types.INTERVAL)),
        ("INTERVAL '1.5' SECONDS", Literal(1_500_000, types.INTERVAL)),
        ("INTERVAL '-0.0000015' SECOND", Literal(-1, types.INTERVAL)),  # cut off, not rounded
        ("INTERVAL '-2' DAY", Literal(-172_800_000_000, types.INTERVAL)),
        ("TIMESTAMP '1970-01-01 00:00:01'", Literal(1_000_000, types.TIMESTAMP)),
        ("TIMESTAMP '1970-01-01T02:00:00+02:00'", Literal(0, types.TIMESTAMP)),
        ("TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'", Literal(-1, types.TIMESTAMP_NTZ)),
        ("DATE '1970-02-01'", Literal(31, types.DATE)),
    ],
)
def test_a_literal_has_sparks_type_and_value(sql: str, literal: Literal) -> None:
    assert literal == value(sql)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("k = 1", "'k = 1' compares string with int; cast one side in the input"),
        ("ts = n", "(timestamps with and without zone do not compare)"),
        ("ts > '2024-01-01'", "compares timestamp with string"),
        ("b + 1 = 2", "'b + 1' cannot be computed with boolean and int"),
        ("k - 1 = 2", "'k - 1' cannot be computed with string and int"),
        ("da = ts", "compares date with timestamp (which day a timestamp is on depends on the zone)"),
        ("da + l = da", "cannot be computed with date and bigint; to a date, add a number of days: r.day + 7"),
        ("k + 1 = 2", "'k + 1' cannot be computed with string and int"),
        ("ROUND(d, 1) = 1", "rounds a double by the way Java prints it"),
        ("ROUND(c, i) = 1", "must name the number of digits as a constant"),
        ("UPPER(i) = 'A'", "'UPPER(i)' needs string where it has int; cast it in the input"),
        ("DATE_TRUNC('FORTNIGHT', ts) = ts", "truncates to no unit of MICROSECOND, MILLISECOND"),
        ("k LIKE ANY ('a', 'b')", "compares with several patterns; write one LIKE for each"),
        ("k LIKE 'a' ESCAPE 'xy'", "needs one character to escape with, e.g. ESCAPE '/'"),
        ("k LIKE 'a\\\\'", "has a pattern that Spark refuses"),
        ("CASE WHEN b THEN 1 ELSE 'x' END = 1", "compares int with string"),
        ("CAST(c AS DECIMAL(39,2)) = 1", "a decimal has at most 38 digits"),
        ("CAST(k AS INT) = 1", "casts string to int, which is not supported in a predicate; cast it in the input"),
        ("c > 0." + "1" * 39, "decimal(39,39) is beyond the 38 digits of Spark's decimals"),
        ("CAST('x' AS DECIMAL(3,1)) = c", "casts string to decimal(3,1)"),
        ("128Y = t", "'CAST(128 AS TINYINT)' is out of range"),
        ("i AND b", "'i' is of type int where a condition is needed"),
        ("NOT i", "'i' is of type int where a condition is needed"),
        ("p = 1", "'p' is of type list<int>, which a predicate cannot use; it can only ride along"),
        ("ABS(k) = 1", "'ABS(k)' needs a number, not string"),
        ("CAST(d AS DECIMAL(10,2)) = 1", "rounds a double by the way Java prints it"),
        ("CAST(300 AS TINYINT) = t", "'CAST(300 AS TINYINT)' is out of range"),
        ("CAST(i AS STRING) = 'x'", "casts to STRING; a predicate can cast to TINYINT"),
        ("k = 'a''b'", "is written as strings side by side; write a quote inside a string as"),
        ("k RLIKE 'a'", "is not supported in a predicate; make it a column of its stream"),
        ("POWER(d, 2) = 1", "is not supported in a predicate; make it a column of its stream"),
        ("SOUNDEX(k) = 'A'", "is not supported in a predicate; make it a column of its stream"),
        ("i IN (SELECT 1)", "needs a list of values, not a query"),
        ("(i, l) = (1, 2)", "compares tuples; write the comparisons one by one with AND"),
        ("ts - ts < INTERVAL 1 MONTH", "is not an interval of fixed length"),
        ("ts - ts < INTERVAL '1.5' HOURS", "\"INTERVAL '1.5' HOURS\" is not an interval of fixed length"),
        ("ROUND(c, 1, 2) = 1", "'ROUND(c, 1, 2)' has 3 arguments; ROUND takes 1 to 2 in a predicate"),
        ("GREATEST(i) = 1", "'GREATEST(i)' has 1 argument; GREATEST takes 2 or more in a predicate"),
        ("i > 1e400", "'1e400' is out of the range of its type; write a smaller number"),
        ("i > 5e", "'5e' is no number; write a column of that name in backticks"),
        ("ts > TIMESTAMP 'tomorrow'", "is not a date or time; write TIMESTAMP '2026-01-31 12:00:00'"),
        ("i", "must be true or false, but 'i' is of type int"),
    ],
)
def test_what_cannot_be_said_is_refused_in_words(sql: str, message: str) -> None:
    assert message in refusal(sql)


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("r.i = ", "line 1, column 5"),
        ("r.i = 1 AND\nr.l = = 3", "line 2, column 7"),
        ("(r.i = 3", "line 1, column 8"),
        ("r.i r.l", "line 1, column 6"),
        ("r.i = 1 AND\n  r.k = 'abc", "line 2, column 9"),
        ("r.i = `abc", "line 1, column 7"),
    ],
)
def test_a_syntax_error_shows_line_and_column_when_the_join_is_made(sql: str, where: str) -> None:
    with pytest.raises(SpecError) as error:
        JoinSpec(("r", "s"), sql, window="1 s", time="ts")
    message, shown, pointer = str(error.value).splitlines()
    assert f"not valid SQL at {where}" in message
    assert shown.strip() in sql
    assert pointer.strip() == "^"
    assert f"column {pointer.index('^') - 1}" in where


def test_a_stream_named_like_a_word_of_sql_is_told_about_backticks() -> None:
    with pytest.raises(SpecError, match="if 'from' is a stream, its name is a word of SQL: write `from` in backticks"):
        JoinSpec(("from", "s"), "from.x = s.x", window="1 s", time="ts")
    JoinSpec(("from", "s"), "`from`.x = s.x", window="1 s", time="ts")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "A join needs a predicate"),
        ("  ", "A join needs a predicate"),
        ("r.i = 1; r.l = 2", "must be one SQL condition"),
        ("r.k = 'abc", "not valid SQL"),
    ],
)
def test_a_predicate_is_one_condition(sql: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        JoinSpec(("r", "s"), sql, window="1 s", time="ts")
