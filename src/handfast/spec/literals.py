"""Literals of a predicate: SQL text to typed constants, with Spark's types."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from struct import pack, unpack

from sqlglot import exp

from handfast.errors import SpecError
from handfast.spec.expression import Literal
from handfast.spec.refusal import refuse
from handfast.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Type,
    decimal,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# what Python reads and Spark does not is left out: 20260131, 2026-W05-6, an offset behind minutes, …
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(_DATE.pattern + r"([ T]\d\d(:\d\d(:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)?)?)?)?")
_FARTHEST = timedelta(hours=18)  # an offset from UTC
_INTERVAL_PART = re.compile(r"\s*([+-]?)\s*(?=[.\d])(\d*)(?:(\.)(\d{0,9}))?\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)
_INTERVAL_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def number(text: str) -> Literal:
    """A numeric literal with Spark's type: int or bigint, decimal with a point, double with an exponent."""
    if not _NUMBER.fullmatch(text):
        raise SpecError(f"{text!r} is no number; write a column of that name in backticks")
    if "e" in text.lower():
        return Literal(_finite(float(text), text), DOUBLE)
    if "." in text:
        scale = len(text) - text.index(".") - 1
        unscaled = int(text.replace(".", ""))  # no Decimal: its arithmetic rounds to a context's digits
        return Literal(unscaled, decimal(max(len(str(abs(unscaled))), scale), scale))
    value = int(text)
    if -(2**31) <= value < 2**31:
        return Literal(value, INT32)
    if -(2**63) <= value < 2**63:
        return Literal(value, INT64)
    return Literal(value, decimal(len(str(abs(value))), 0))


def short_float(text: str) -> Literal:
    """A number that names its type, 0.5F; unlike a CAST it does not become infinite."""
    literal = as_floating(number(text), FLOAT)
    return Literal(_finite(float(literal.value or 0.0), text), FLOAT)


def _finite(value: float, text: str) -> float:
    if math.isinf(value):
        raise SpecError(f"{text!r} is out of the range of its type; write a smaller number")
    return value


def small_integer(text: str, to: Type, node: exp.Expression) -> Literal:
    """An integer literal that names its type: 7Y, -128Y."""
    value, half = int(text), 2 ** (to.bits - 1)
    return Literal(value, to) if -half <= value < half else refuse(node, "is out of range")


def hexadecimal(node: exp.HexString) -> Literal:
    """X'1F'; an odd number of digits begins with half a byte, as in Spark."""
    digits = str(node.this)
    try:
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)
    except ValueError:
        return refuse(node, "is not hexadecimal; write e.g. X'1F'")


def moment(text: str, target: str, node: exp.Expression) -> Literal:
    """TIMESTAMP '…' and DATE '…'; a timestamp without an offset is taken as UTC."""
    text = text.strip()
    try:
        if not (_DATE if target == "DATE" else _TIME).fullmatch(text):
            raise ValueError(text)
        if target == "DATE":
            return Literal((date.fromisoformat(text) - _EPOCH.date()).days, DATE)
        when = datetime.fromisoformat(text)
        if abs(when.utcoffset() or timedelta()) > _FARTHEST:
            raise ValueError(text)
    except ValueError:
        refuse(node, "is not a date or time; write TIMESTAMP '2026-01-31 12:00:00' or DATE '2026-01-31'")
    naive = when.tzinfo is None
    if target == "TIMESTAMP_NTZ" and not naive:
        refuse(node, "has an offset, which a TIMESTAMP_NTZ cannot have")
    when = when.replace(tzinfo=UTC) if naive else when
    return Literal((when - _EPOCH) // timedelta(microseconds=1), TIMESTAMP_NTZ if "NTZ" in target else TIMESTAMP)


def interval(node: exp.Interval) -> Literal:
    """An interval of fixed length, in microseconds; what is finer is cut off, as in Spark."""
    unit = node.args.get("unit")
    text = f"{node.name} {unit.name}" if unit is not None else node.name
    position, total = 0, 0
    while part := _INTERVAL_PART.match(text, position):
        sign, whole, point, fraction, name = part.groups()
        length = _INTERVAL_UNITS.get(name.lower())
        if length is None or (point and name.lower() != "second"):
            break
        micros = int(whole or 0) * length + int((fraction or "").ljust(9, "0")) // 1000
        total += -micros if sign == "-" else micros
        position = part.end()
    if position == 0 or text[position:].strip() or not -(2**63) <= total < 2**63:
        refuse(node, "is not an interval of fixed length; write e.g. INTERVAL 5 SECONDS, up to weeks")
    return Literal(total, INTERVAL)


def as_floating(literal: Literal, to: Type) -> Literal:
    """A numeric literal as a float or double constant, rounded once and correctly."""
    assert isinstance(literal.value, int | float)
    if isinstance(literal.value, float) and (literal.value == 0 or not math.isfinite(literal.value)):
        return Literal(literal.value, to)
    exact = Fraction(literal.value) / 10**literal.type.scale
    value = float(exact)
    if to == FLOAT:
        if Fraction(value) != exact and math.frexp(value)[0] * 2**53 % 2 == 0:
            # the neighbour on the other side of `exact`, which has an odd last bit: rounding twice would lose that side
            value = math.nextafter(value, math.inf if Fraction(value) < exact else -math.inf)
        value = unpack("@f", pack("@f", value))[0]  # native: what is too large becomes infinite
    return Literal(value, to)
