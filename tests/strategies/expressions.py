"""Every function and operator over the corners of its types: a table of rows, and expressions over its columns."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 160

_DAYS = [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]
_TIMES = [
    datetime(1, 1, 1),
    datetime(1900, 2, 28, 23, 59, 59, 999_999),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 12, 30, 30, 500_000),
    datetime(2026, 3, 29, 1, 30),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
]
_TEXTS = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "aB c",
    "  x ",
    "%",
    "a%b",
    "a_b",
    "\\",
    "ß",
    "é",
    "İ",
    "ΑΣ",
    "ς",
    "日本",
    "a😀b",
    "😀",
    "\n",
]
_BYTES = [b"", b"\0", b"\x01\x02", b"\x7f", b"\x80", b"\xff", b"a", b"ab"]
_DOUBLES = [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, -0.5, 1.5, -2.5, 2.0**53, -(2.0**63), 2.0**63, 1e300, 5e-324]
_FLOATS = [math.nan, math.inf, -0.0, 0.0, 0.5, -1.5, 3.4028234663852886e38, 2147483648.0, -2147483648.0]
_NINES = "9" * 38


def _decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


# every column: its type and its corners; NULL is one of each
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "t": (pa.int8(), [-128, -127, -1, 0, 1, 5, 127]),
    "i": (pa.int32(), [-(2**31), -7, -2, -1, 0, 1, 2, 3, 7, 125, 2**31 - 1]),
    "j": (pa.int32(), [-(2**31), -3, -1, 0, 1, 2, 5, 2**31 - 1]),
    "l": (pa.int64(), [-(2**63), -1, 0, 1, 15, 2**53 + 1, 2**63 - 1]),
    "f": (pa.float32(), _FLOATS),
    "d": (pa.float64(), _DOUBLES),
    "e": (pa.float64(), _DOUBLES),
    "p": (
        pa.decimal128(10, 2),
        _decimals("0.00", "1.50", "-1.50", "0.05", "2.25", "-2.45", "99999999.99", "-99999999.99"),
    ),
    "q": (pa.decimal128(5, 4), _decimals("0.0000", "1.5000", "0.0005", "-0.0005", "9.9999", "-9.9999", "0.3000")),
    "w": (
        pa.decimal128(38, 18),
        _decimals(
            "0", "1.5", "-2.25", "0.000000000000000005", "-0.000000000000000015", _NINES[:20], "-" + _NINES[:20] + ".5"
        ),
    ),
    "v": (
        pa.decimal128(38, 18),
        _decimals("0", "1.5", "3", "-0.7", "0.000000000000000001", _NINES[:20] + "." + _NINES[:18]),
    ),
    "u": (pa.decimal128(38, 0), _decimals("0", "1", "-3", _NINES, "-" + _NINES, "12345678901234567890")),
    "k": (pa.string(), _TEXTS),
    "m": (pa.string(), _TEXTS),
    "x": (pa.binary(), _BYTES),
    "y": (pa.binary(), _BYTES),
    "da": (pa.date32(), _DAYS),
    "db": (pa.date32(), _DAYS),
    "ts": (pa.timestamp("us", "UTC"), _TIMES),
    "tt": (pa.timestamp("us", "UTC"), _TIMES),
    "n": (pa.timestamp("us"), _TIMES),
}


def rows() -> pa.Table:
    """Rows of corners, every column shuffled on its own."""
    rng = random.Random(7)
    table = {}
    for name, (arrow, corners) in COLUMNS.items():
        values = [*corners, None] * (ROWS // (len(corners) + 1) + 1)
        rng.shuffle(values)
        table[name] = pa.array(values[:ROWS], arrow)
    return pa.table(table)


_NUMBERS = ("t", "i", "l", "f", "d", "p", "q", "w", "u")

COMPARISONS = tuple(
    f"{a} {sign} {b}" for sign in ("=", "<", "<=", "<=>") for a in _NUMBERS for b in ("j", "e", "p", "v")
)
ARITHMETIC = (
    *(f"{a} {op} {b}" for op in "+-*" for a in ("i", "p", "w", "u") for b in ("p", "q", "v", "l", "2", "0.05")),
    *(f"{a} {op} {b}" for op in "/%" for a in ("i", "p", "q", "w") for b in ("p", "q", "v", "3", "0.7")),
    "-p",
    "ABS(w)",
    "p + d",
    "w * f",
    "p BETWEEN q - 0.05 AND q + 0.05",
    "i DIV j",
    "p DIV q",
    "l DIV t",
)
CASTS = (
    *(f"CAST({a} AS {to})" for a in ("i", "l", "f", "d", "p", "w", "u") for to in ("TINYINT", "INT", "BIGINT")),
    *(
        f"CAST({a} AS {to})"
        for a in ("i", "l", "p", "q", "w", "u")
        for to in ("DECIMAL(10,1)", "DECIMAL(38,20)", "DOUBLE")
    ),
    "CAST(p AS FLOAT)",
    "CAST(w AS FLOAT)",
    "CAST(da AS TIMESTAMP_NTZ)",
    "CAST(ts AS DATE)",
    "CAST(n AS DATE)",
)
CHOICES = (
    "COALESCE(i, j, 5)",
    "COALESCE(k, m, 'none')",
    "COALESCE(p, w)",
    "NULLIF(i, j)",
    "NULLIF(k, m)",
    "IF(i > j, i, l)",
    "IF(b, k, m)",
    "CASE WHEN i > 0 THEN p WHEN j > 0 THEN q END",
    "CASE WHEN i / j > 1 THEN k WHEN b THEN m ELSE 'other' END",
    "CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
    "CASE WHEN j <> 0 THEN i / j END",
    "GREATEST(i, j)",
    "LEAST(d, e, 0.5D)",
    "GREATEST(d, f)",
    "GREATEST(k, m)",
    "LEAST(k, m, 'b')",
    "GREATEST(p, q, i)",
    "LEAST(da, db)",
    "i IN (1, 2, j)",
    "k IN ('a', m)",
    "i IN (" + ", ".join(map(str, range(-10, 10))) + ")",
    "i NOT IN (" + ", ".join(map(str, range(-10, 10))) + ", NULL)",
    "d IN (" + ", ".join(f"{n}.5D" for n in range(20)) + ", 0.0D)",
    "p IN (" + ", ".join(f"{n}.50" for n in range(20)) + ")",
    "k IN (" + ", ".join(f"'{letter}'" for letter in "abcdefghijklmnopqr") + ", 'ß')",
)
STRINGS = (
    "UPPER(k)",
    "LOWER(k)",
    "LENGTH(k)",
    "CHAR_LENGTH(k)",
    "LENGTH(x)",
    "TRIM(k)",
    "LTRIM(k)",
    "RTRIM(k)",
    "TRIM(BOTH 'a ' FROM k)",
    "TRIM(LEADING m FROM k)",
    "TRIM(TRAILING 'b' FROM k)",
    "SUBSTRING(k, 2)",
    "SUBSTRING(k, i, j)",
    "SUBSTR(k, -2, 1)",
    "SUBSTRING(k, 0, 2)",
    "SUBSTRING(x, 2, 1)",
    "SUBSTRING(k FROM 2 FOR 1)",
    "LEFT(k, i)",
    "RIGHT(k, i)",
    "CONCAT(k, m)",
    "k || '-' || m",
    "CONCAT(x, y)",
    "REPLACE(k, 'a', 'xy')",
    "REPLACE(k, m, '')",
    "REVERSE(k)",
    "INSTR(k, m)",
    "LOCATE('b', k)",
    "STARTSWITH(k, m)",
    "ENDSWITH(k, m)",
    "CONTAINS(k, m)",
    "k LIKE 'a%'",
    "k LIKE '_'",
    "k NOT LIKE '%b'",
    "k LIKE 'a/%b' ESCAPE '/'",
    "k LIKE m",
    r"k LIKE '\\%'",
    r"k LIKE 'a\_b'",
    "k ILIKE 'A%'",
    "k NOT ILIKE 'σ'",
    "k ILIKE m",
    "k < m",
    "UPPER(k) = UPPER(m)",
    "x = y",
    "x < y",
    "x <=> y",
    "x IN (X'01', X'FF', X'')",
    "x IS NULL",
)
NUMBERS = (
    *(f"{name}({a})" for name in ("FLOOR", "CEIL", "SIGN") for a in ("t", "i", "f", "d", "p", "w", "u")),
    *(f"ROUND({a}, {n})" for a in ("t", "i", "l", "p", "q", "w") for n in (-1, 0, 1)),
    "ROUND(p)",
    "SQRT(d)",
    "SQRT(i)",
    "SQRT(p)",
    "ISNAN(d)",
    "ISNULL(i)",
)
TIMES = (
    *(
        f"{name}({a})"
        for name in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFWEEK", "DAYOFYEAR")
        for a in ("da", "ts", "n")
    ),
    *(f"{name}({a})" for name in ("HOUR", "MINUTE", "SECOND") for a in ("ts", "n")),
    *(
        f"DATE_TRUNC('{unit}', ts)"
        for unit in ("HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "SECOND", "MILLISECOND")
    ),
    "da + 7 > db",
    "da + i > db",
    "7 + da = db",
    "da - t < db",
    "da - db",
    "DATE_ADD(da, 7) > db",
    "DATE_SUB(da, t) > db",
    "DATEDIFF(da, db)",
    "da < n",
    "n - da",
    "da - db > INTERVAL 5 DAYS",
    "da = DATE(ts)",
)
EXPRESSIONS = (*COMPARISONS, *ARITHMETIC, *CASTS, *CHOICES, *STRINGS, *NUMBERS, *TIMES)
