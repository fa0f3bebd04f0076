"""A condition is read as Spark reads it: what its parser and analyzer refuse is refused, the rest means the same."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from handfast.errors import SpecError
from handfast.judge import evaluation
from handfast.spec import types
from handfast.spec.expression import Call, Expr
from handfast.spec.functions import FUNCTIONS
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema
from tests.sampling import sampled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "i": (types.INT32, 7),
    "d": (types.DOUBLE, 0.5),
    "k": (types.STRING, "anna"),
    "b": (types.BOOLEAN, True),
    "ts": (types.TIMESTAMP, 1_769_860_800_000_000),
    "da": (types.DATE, 20_484),
}
SCHEMAS = {"r": Schema(tuple((name, type_) for name, (type_, _) in COLUMNS.items()))}
ROW = {name: value for name, (_, value) in COLUMNS.items()}
AS_SQL = (
    "SELECT 7 AS i, 0.5D AS d, 'anna' AS k, TRUE AS b, TIMESTAMP '2026-01-31 12:00:00' AS ts, DATE '2026-01-31' AS da"
)

REFUSED = """
isnull(i, d)
isnotnull(i, d)
ISNULL()
ROUND(i, 2, 1)
DATE_TRUNC('DAY', ts, 'Asia/Tokyo')
DATE_TRUNC(DAY, ts)
LENGTH(k, 'x')
GREATEST(i)
LEAST(i)
IF(b, 1)
IF(b, 1, 2, 3)
NVL(i, 1, 2)
IFNULL(i)
IIF(b, 1, 2)
IFF(b, 1, 2)
CHARINDEX('a', k)
STRPOS(k, 'a')
STARTS_WITH(k, 'a')
ENDS_WITH(k, 'a')
IS_NAN(d)
DAY_OF_WEEK(da)
DATEDIFF('DAY', da, da)
DATEDIFF(da, da, da)
TIMESTAMP_TRUNC(ts, DAY)
TS_OR_DS_ADD(da, 1)
TIMESTAMP_NTZ(da)
ABS(i, i)
ABS(DISTINCT i)
ABS(i AS x)
ABS(expr => i)
ABS(i) OVER ()
IF b THEN 1 ELSE 2 END
TRIM(BOTH 'x')
TRIM(BOTH 'x', k)
SUBSTRING(k FOR 2)
SUBSTRING(k)
SUBSTRING(k, 1, 2, 3)
CASE END
CASE i END
CASE WHEN b 1 END
CASE WHEN b THEN 1
i BETWEEN 1 2
i BETWEEN SYMMETRIC 9 AND 1
b IS NULL IS NULL
b IS NULL = b
b = NOT b
b IS b
b IS ! NULL
b ! IN (TRUE)
b NOT = b
i IN (7) IN (TRUE)
i IN (7) = TRUE
i IN ()
i IN [7]
i IN i
i BETWEEN 1 AND 9 BETWEEN FALSE AND TRUE
k LIKE 'a%' ESCAPE NULL
k LIKE 'a%' ESCAPE ''
k SIMILAR TO 'a'
k GLOB 'a'
k ~ 'a'
b && b
b XOR b
i MOD 2
i // 2
2 ** 3
i ?? 1
|/ 4
ts AT TIME ZONE 'UTC'
i := 7
DATE '20260131'
DATE '2026-W05-6'
DATE '2026-02-30'
DATE 5
CAST('20260131' AS DATE)
INT '5'
BIGINT 5
DOUBLE '1'
STRING 'a'
DECIMAL '1.5'
DECIMAL(3,1) '1.5'
TIMESTAMP '20260131T120000'
TIMESTAMP '2026-01-31x12:00:00'
TIMESTAMP '2026-01-31 120000'
TIMESTAMP '2026-01-31 12:00:00,5'
TIMESTAMP '2026-01-31 12:00:00z'
TIMESTAMP '2026-01-31 12:00:00+19:00'
TIMESTAMP '2026-01-31 12:00+01:00'
TIMESTAMP '2026-01-31 24:00:00'
1e400
-1e400
1e400D
1e39F
-1e39F
9223372036854775808L
128Y
-129Y
40000S
999999999999999999999999999999999999999
1_000
0x1F
5e
1.2.3
X'GG'
N'a'
E'a'
b'1'
U&'a'
CAST(i AS INT64)
CAST(i AS UINT)
CAST(i AS NUMBER)
CAST(i AS BIGINT UNSIGNED)
CAST(i AS DOUBLE PRECISION)
CAST(ts AS DATETIME)
CAST(i, 'INT')
INTERVAL '1.5' HOURS
INTERVAL 1.5 HOURS
INTERVAL 1.5 MILLISECONDS
INTERVAL '1500' NANOSECONDS
INTERVAL '1500 nanoseconds'
INTERVAL '0.0000000015' SECOND
INTERVAL '1 hour 30 minutes' HOUR
INTERVAL '1 hour 1.5 minutes'
INTERVAL '1hour'
INTERVAL '1 h'
INTERVAL '1 min'
INTERVAL '1 ms'
INTERVAL '1' MS
INTERVAL '1e3' SECONDS
INTERVAL (1) DAY
INTERVAL ''
INTERVAL '5'
INTERVAL 9223372036854775808 MICROSECONDS
INTERVAL '2' QUARTER
""".strip().splitlines()

READ = r"""
ISNULL(i)
isnotnull(i)
`abs`(i)
UPPER (k)
UCASE(k)
LCASE(k)
CHAR_LENGTH(k)
CHARACTER_LENGTH(k)
LEN(k)
CEILING(d)
SIGNUM(d)
MOD(i, 4)
DIV(i, 4)
TRIM('an', k)
LTRIM('an', k)
RTRIM('an', k)
TRIM(BOTH FROM ' a ')
TRIM('a' FROM k)
TRIM(LEADING 'a' FROM k)
TRIM(TRAILING 'a' FROM k)
SUBSTRING(k FROM 2 FOR 2)
SUBSTR(k FROM 2)
SUBSTRING(k, 2 FOR 2)
SUBSTRING(k FROM 2, 2)
POSITION('n' IN k)
POSITION('n', k)
LOCATE('n', k)
INSTR(k, 'n')
REPLACE(k, 'n')
CONCAT()
DATE('2026-01-31')
TIMESTAMP('2026-01-31 12:00:00')
TO_TIMESTAMP('2026-01-31 12:00:00')
INT(d)
BIGINT(i)
DATE(ts)
DATE_ADD(da, 1)
DATEADD(da, 1)
DATE_SUB(da, 1)
DATE_SUB(da, i * -1)
DATEDIFF(da, da)
DATE_DIFF(da, da)
DATEDIFF(DAY, da, DATE '2026-02-03')
date_diff(day, da, DATE '2026-02-03')
DATE_TRUNC('hour', ts)
LIKE(k, 'a%')
LIKE(k, 'a/%', '/')
ILIKE(k, 'A%')
NULLIF(i, 7)
NVL(i, 1)
DAYOFMONTH(da)
GREATEST(i, 8)
NOT b IS NULL
NOT NOT b
! b
!b = b
NOT b = FALSE
b == b
i <> 7
i != 7
b = b IN (TRUE, FALSE)
b IN (b = FALSE, b AND FALSE)
i = 7 = b
i < 8 < b
i BETWEEN 1 AND 9 AND b
b BETWEEN FALSE = TRUE AND TRUE = TRUE
i IS DISTINCT FROM 8
b IS NOT DISTINCT FROM i = 7
b IS DISTINCT FROM NULL
b IS NOT TRUE
- 5 * 2
-i % 4
- - i
+ + i
-(2147483648)
- 2147483648
k || 'b' = 'annab'
k || 'x' LIKE '%x'
1 + 2 * 3 - 4
2 * 3 DIV 4 % 3
5 :: INT
-128 :: TINYINT
CAST(i AS INTEGER)
CAST(i AS LONG)
CAST(i AS REAL)
CAST(i AS DEC(9,1))
CAST(i AS BYTE)
DATE '2026-01-31'
TIMESTAMP '2026-01-31'
TIMESTAMP '2026-01-31 12:00'
TIMESTAMP '2026-01-31T12:00:00.1234567'
TIMESTAMP '2026-01-31 12:00:00Z'
TIMESTAMP '2026-01-31 12:00:00+01'
TIMESTAMP '2026-01-31 12:00:00.5-01:30'
1e-400
1e308D
.5
5.
.5e1
5.D
.5D
00012
007Y
1.10BD
x'1f'
X''
r'a\n'
R'a'
'\101'
'\u0041'
'\U00000041'
'\x41'
1 -- comment
1 /* comment */
CASE WHEN b THEN 1 END
CASE i WHEN 7 THEN 2 ELSE 3 END
INTERVAL '0.0000015' SECOND
INTERVAL '-0.0000015' SECOND
INTERVAL '0.9999999' SECOND
INTERVAL -1.5 SECONDS
INTERVAL '1.' SECOND
INTERVAL '1 hour 30 minutes'
INTERVAL 1 HOUR 30 MINUTES
INTERVAL 1 HOUR + 30 MINUTES
INTERVAL -1 DAY -1 HOUR
INTERVAL '1' DAY '2' HOUR
INTERVAL '1 day -1 hour'
INTERVAL '1 second 2 seconds'
INTERVAL '- 1' DAY
INTERVAL - 1 DAY
INTERVAL ' 1 ' DAY
INTERVAL '1 week'
INTERVAL 1000 MILLISECOND
INTERVAL 9223372036854775807 MICROSECONDS
-INTERVAL 1 DAY
ts + INTERVAL 1 DAY + INTERVAL 1 HOUR
""".strip().splitlines()


def value(sql: str) -> Expr:
    """The typed tree of any expression, taken from a comparison with itself."""
    tree = bind(f"({sql}\n) <=> ({sql}\n)", SCHEMAS)
    assert isinstance(tree, Call)
    return tree.args[0]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_spark_refuses_is_refused(sql: str) -> None:
    with pytest.raises(SpecError):
        value(sql)


@pytest.mark.spark
def test_spark_refuses_it_and_reads_the_rest_as_we_do(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    spark.sql(AS_SQL).createOrReplaceTempView("r")
    refused, read = [], {}
    for sql in [*REFUSED, *READ]:
        try:
            said = spark.sql(f"SELECT ({sql}\n) AS said FROM r")
            read[sql] = said.schema["said"].dataType.simpleString(), plain(said.collect()[0].said)
        except PySparkException:
            refused.append(sql)
    ours = {sql: value(sql) for sql in READ}
    found = {sql: (_name(tree), evaluation.evaluate(tree, [ROW])) for sql, tree in ours.items()}
    spark.catalog.dropTempView("r")
    assert REFUSED == refused
    differ = {sql: (found[sql], read[sql]) for sql in READ if found[sql] != (_short(read[sql][0]), read[sql][1])}
    assert {} == differ


def _name(tree: Expr) -> str:
    return _short(str(tree.type))


def _short(type_: str) -> str:
    return "interval" if type_.startswith("interval") else type_


def plain(said: Any) -> Any:
    """A value of Spark's as handfast's own: dates as days, times as microseconds, decimals as their digits."""
    if isinstance(said, datetime):
        return (said.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if isinstance(said, date):
        return (said - date(1970, 1, 1)).days
    if isinstance(said, timedelta):
        return said // timedelta(microseconds=1)
    if isinstance(said, Decimal):
        return int(said.scaleb(-int(said.as_tuple().exponent)))
    return bytes(said) if isinstance(said, bytearray) else said


# --- the number of arguments -----------------------------------------------------------------------------------------

# what Spark takes and a predicate does not: the numbers of arguments that are refused here alone
NARROWER = {
    **{name: {2} for name in ("CEIL", "CEILING", "FLOOR", "TO_TIMESTAMP")},
    **{name: {3} for name in ("LOCATE", "POSITION")},
    "INSTR": {3, 4},
    **{name: {2, 3} for name in ("HOUR", "MINUTE", "SECOND")},  # Spark looks at the first alone
}
MANY = 8


def takes(name: str, count: int) -> bool:
    """Whether our table lets a call have so many arguments."""
    function = FUNCTIONS[name]
    return function.least <= count and (function.most is None or count <= function.most)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_is_refused_for_its_number_of_arguments_or_bound(name: str) -> None:
    for count in range((FUNCTIONS[name].most or MANY) + 3):
        call = f"{name}({', '.join(['NULL'] * count)})"
        try:
            value(call)
            refused = ""
        except SpecError as error:
            refused = str(error)
        assert takes(name, count) == (f"; {name} takes" not in refused), f"{call}: {refused}"


def calls_by_arity() -> dict[str, bool]:
    """Calls of every function with so and so many arguments, and whether they are right by our table in Spark."""
    return {
        f"{name}({', '.join(['NULL'] * count)})": takes(name, count) or count in NARROWER.get(name, ())
        for name, function in FUNCTIONS.items()
        for count in range((function.most or MANY) + 3)
    }


def refused_for_its_arity(spark: SparkSession, calls: str) -> bool:
    """Whether Spark refuses this for the number of arguments; it may refuse it for other reasons as well."""
    from pyspark.errors import PySparkException

    try:
        spark.sql(f"SELECT {calls}")
    except PySparkException as error:
        return error.getCondition() in ("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "UNRESOLVED_ROUTINE")
    return False


CALLS = calls_by_arity()


@pytest.mark.spark
def test_spark_takes_every_number_of_arguments_that_we_take(spark: SparkSession) -> None:
    # all at once: the number of arguments is what Spark looks at first
    assert not refused_for_its_arity(spark, ", ".join(call for call, is_right in CALLS.items() if is_right))


@pytest.mark.spark
@pytest.mark.parametrize("start", sampled(range(4), 4))
def test_spark_refuses_every_number_of_arguments_that_we_refuse(spark: SparkSession, start: int) -> None:
    wrong = [call for call, is_right in CALLS.items() if not is_right]
    assert [] == [call for call in wrong[start::4] if not refused_for_its_arity(spark, call)]
