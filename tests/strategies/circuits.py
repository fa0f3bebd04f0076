"""Random predicates that mostly fit into a circuit, and rows of their columns from the corners of every type."""

from __future__ import annotations

import random
from typing import Any

from handfast.engines.hardware.fits import bounds
from handfast.spec.schema import Schema
from handfast.spec.types import (
    BOOLEAN,
    DATE,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    decimal,
)

COLUMNS: dict[str, Type] = {
    "b": BOOLEAN,
    "c": BOOLEAN,
    "t": INT8,
    "h": INT16,
    "i": INT32,
    "l": INT64,
    "z": decimal(3, 0),
    "p": decimal(10, 2),
    "q": decimal(5, 4),
    "w": decimal(38, 18),
    "u": decimal(38, 0),
    "da": DATE,
    "db": DATE,
    "ts": TIMESTAMP,
    "n": TIMESTAMP_NTZ,
    "v": INTERVAL,
}
SCHEMAS = {"r": Schema(tuple(COLUMNS.items())), "s": Schema(tuple(COLUMNS.items()))}
Row = dict[str, Any]

_INTEGERS = ("0", "1", "-1", "7", "-128", "127", "-2147483648", "2147483647", "9223372036854775807", "-3Y", "INT(NULL)")
_DECIMALS = ("0.05", "-0.5", "1.5", "100.0", "99999999.99", "0.0001")
_INTERVALS = ("INTERVAL 5 SECONDS", "INTERVAL '-1' DAY", "INTERVAL '0' SECOND", "INTERVAL 10000 DAYS")
_DATES = ("DATE '1970-01-01'", "DATE '1582-10-15'", "DATE '9999-12-31'")
_CONSTANTS = {
    "integer": _INTEGERS,
    "decimal": _DECIMALS,
    "interval": _INTERVALS,
    "date": _DATES,
    "ts": ("TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '2026-03-29 01:30:00.000001'"),
    "n": ("TIMESTAMP_NTZ '1969-12-31 23:59:59'", "TIMESTAMP_NTZ '9999-12-31 00:00:00'"),
    "boolean": ("TRUE", "FALSE", "NULL"),
}
_NAMES = {
    "integer": ("t", "h", "i", "l"),
    "decimal": ("z", "p", "q", "w", "u"),
    "interval": ("v",),
    "date": ("da", "db"),
    "ts": ("ts",),
    "n": ("n",),
    "boolean": ("b", "c"),
}


class Sql:
    """Draws conditions as SQL over the columns of r and s."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def condition(self, depth: int = 3) -> str:
        """A condition of so many levels at most."""
        rng = self._rng
        if depth <= 0:
            return self._leaf("boolean")
        draw = rng.random()
        if draw < 0.35:
            return f"({self.condition(depth - 1)} {rng.choice(('AND', 'OR'))} {self.condition(depth - 1)})"
        if draw < 0.43:
            return f"(NOT ({self.condition(depth - 1)}))"
        if draw < 0.48:
            return f"({self.condition(depth - 1)} IS {rng.choice(('NULL', 'NOT NULL', 'TRUE', 'NOT TRUE', 'FALSE'))})"
        kind = rng.choice(("integer", "integer", "decimal", "number", "interval", "date", "ts", "n", "boolean"))
        a, b = (self._side(kind, depth - 1) for _ in range(2))
        if draw < 0.8:
            return f"({a} {rng.choice(('=', '<>', '<', '<=', '>', '>=', '<=>'))} {b})"
        if draw < 0.85:
            return f"({a} IS {rng.choice(('NULL', 'NOT NULL'))})"
        if draw < 0.93:
            return f"({a} {rng.choice(('', 'NOT '))}BETWEEN {b} AND {self._side(kind, depth - 1)})"
        return f"({a} {rng.choice(('', 'NOT '))}IN ({', '.join(self._list(kind))}))"

    def _list(self, kind: str) -> list[str]:
        if self._rng.random() < 0.5 and kind == "integer":
            return [str(n) for n in range(-10, 10)] + ["NULL"] * self._rng.randrange(2)  # so long that it is a set
        return [self._side(kind, 0) for _ in range(3)]

    def _side(self, kind: str, depth: int) -> str:
        """A value of a kind; a number is an integer or a decimal."""
        if kind == "number":
            kind = self._rng.choice(("integer", "decimal"))
        return self.condition(depth) if kind == "boolean" else self._value(kind, depth)

    def _value(self, kind: str, depth: int) -> str:
        rng = self._rng
        if depth <= 0 or rng.random() < 0.25:
            return self._leaf(kind)
        if rng.random() < 0.25:
            return self._choice(kind, depth - 1)
        if kind == "date":
            return f"({self._value(kind, depth - 1)} {rng.choice('+-')} {self._column(rng.choice('thi'))})"
        if kind in ("ts", "n"):
            return f"({self._value(kind, depth - 1)} {rng.choice('+-')} {self._value('interval', depth - 1)})"
        if rng.random() < 0.3:
            return f"{rng.choice(('-', 'ABS'))}({self._value(kind, depth - 1)})"
        if kind == "interval":
            return rng.choice((self._sum, self._between_times))(kind, depth)
        if kind == "integer" and rng.random() < 0.25:
            return rng.choice((self._days, self._narrow))(kind, depth)
        if rng.random() < 0.35:
            return f"({self._value(kind, depth - 1)} * {self._leaf(kind)})"
        return self._sum(kind, depth)

    def _sum(self, kind: str, depth: int) -> str:
        return f"({self._value(kind, depth - 1)} {self._rng.choice('+-')} {self._value(kind, depth - 1)})"

    def _between_times(self, kind: str, depth: int) -> str:
        time = self._rng.choice(("ts", "n", "date"))
        return f"({self._value(time, depth - 1)} - {self._value(time, depth - 1)})"

    def _days(self, kind: str, depth: int) -> str:
        return f"DATEDIFF({self._value('date', depth - 1)}, {self._value('date', depth - 1)})"

    def _narrow(self, kind: str, depth: int) -> str:
        to = self._rng.choice(("TINYINT", "SMALLINT", "INT", "BIGINT"))
        return f"CAST({self._sum(kind, depth)} AS {to})"

    def _choice(self, kind: str, depth: int) -> str:
        a, b = self._value(kind, depth), self._value(kind, depth)
        name = self._rng.choice(("IF", "CASE", "COALESCE", "NULLIF", "GREATEST", "LEAST"))
        if name == "IF":
            return f"IF({self.condition(depth)}, {a}, {b})"
        if name == "CASE":
            return f"CASE WHEN {self.condition(depth)} THEN {a} WHEN {self.condition(depth)} THEN {b} END"
        return f"{name}({a}, {b})"

    def _leaf(self, kind: str) -> str:
        if self._rng.random() < 0.2:
            return self._rng.choice(_CONSTANTS[kind])
        return self._column(self._rng.choice(_NAMES[kind]))

    def _column(self, name: str) -> str:
        return f"{self._rng.choice('rs')}.{name}"


def rows(seed: int, count: int) -> list[tuple[Row, Row]]:
    """Pairs of rows: corners, small numbers, numbers anywhere, NULLs; and often the same on both sides."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        r = {name: _drawn(rng, type_) for name, type_ in COLUMNS.items()}
        s = {name: r[name] if rng.random() < 0.25 else _drawn(rng, type_) for name, type_ in COLUMNS.items()}
        pairs.append((r, s))
    return pairs


def _drawn(rng: random.Random, type_: Type) -> Any:
    if rng.random() < 0.12:
        return None
    low, high = bounds(type_)
    if type_.kind is Kind.BOOLEAN:
        return rng.random() < 0.5
    draw = rng.random()
    if draw < 0.35:
        return rng.choice((low, low + 1, -1, 0, 1, high - 1, high))
    return rng.randint(-8, 8) if draw < 0.7 else rng.randint(low, high)
