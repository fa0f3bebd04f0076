"""Pieces of the query: values with Spark's types, how they are converted, compared and combined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "timestamp": 64, "timestamp_ntz": 64, "interval": 64}
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
MOST_DIGITS, LEAST_SCALE = 38, 6
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
DUCKDB = {"boolean": "BOOLEAN", "string": "VARCHAR", "binary": "BLOB", "float": "FLOAT", "double": "DOUBLE"}


class CannotSay(NotImplementedError):
    """A predicate this judge has no words for."""


@dataclass(frozen=True)
class SparkType:
    """A type as Spark names it; digits and scale for decimals."""

    name: str
    digits: int = 0
    scale: int = 0

    @property
    def exact(self) -> bool:
        return self.name in INTEGERS or self.name == "decimal"

    @property
    def numeric(self) -> bool:
        return self.exact or self.name in FLOATS


@dataclass(frozen=True)
class Term:
    """A piece of the query: its value (NULL where it fails), and the condition under which Spark's ANSI mode fails."""

    sql: str
    type: SparkType
    fails: str = "FALSE"
    constant: Decimal | float | None = None  # a numeric literal, to be converted here


BOOLEAN, NULL, INTERVAL = SparkType("boolean"), SparkType("null"), SparkType("interval")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def number(text: str) -> Term:
    if "e" in text.lower():
        return _float_constant(float(text), SparkType("double"))
    value = Decimal(text)
    if "." in text:
        scale = len(text.split(".")[1])
        digits = max(len(value.as_tuple().digits), scale)
        return Term(f"CAST({int(value.scaleb(scale))} AS HUGEINT)", SparkType("decimal", digits, scale), constant=value)
    number = int(text)
    name = next((n for n in ("int", "bigint") if -(2 ** (BITS[n] - 1)) <= number < 2 ** (BITS[n] - 1)), "decimal")
    digits = len(str(abs(number))) if name == "decimal" else 0
    return Term(f"CAST({quoted(str(number))} AS HUGEINT)", SparkType(name, digits), constant=value)


def _float_constant(value: Decimal | float, type_: SparkType) -> Term:
    if isinstance(value, float) and type_.name == "float":
        return to(Term(f"CAST('{value}' AS DOUBLE)", SparkType("double")), type_)
    return Term(f"CAST('{value}' AS {DUCKDB[type_.name]})", type_, constant=value)


def moment(text: str, target: str) -> Term:
    if target == "date":
        days = (date.fromisoformat(text) - date(1970, 1, 1)).days
        return Term(f"CAST({days} AS HUGEINT)", SparkType("date"))
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return Term(f"CAST({micros} AS HUGEINT)", SparkType(target))


def any_of(*conditions: str) -> str:
    said = [condition for condition in conditions if condition != "FALSE"]
    return f"({' OR '.join(said)})" if said else "FALSE"


def both(a: Term, b: Term) -> Term:
    """Lazy from left to right: what stands on the right can fail only if the left is not false."""
    left, right = to(a, BOOLEAN), to(b, BOOLEAN)
    lazily = "FALSE" if b.fails == "FALSE" else f"({left.sql} IS NOT FALSE AND {b.fails})"
    return Term(f"({left.sql} AND {right.sql})", BOOLEAN, any_of(a.fails, lazily))


def either(a: Term, b: Term) -> Term:
    left, right = to(a, BOOLEAN), to(b, BOOLEAN)
    lazily = "FALSE" if b.fails == "FALSE" else f"({left.sql} IS NOT TRUE AND {b.fails})"
    return Term(f"({left.sql} OR {right.sql})", BOOLEAN, any_of(a.fails, lazily))


def compare(sign: str, a: Term, b: Term) -> Term:
    common = common_type(*beside(a, b))
    x, y = to(a, common), to(b, common)
    return Term(f"({x.sql} {sign} {y.sql})", BOOLEAN, any_of(x.fails, y.fails))


def beside(a: Term, b: Term) -> tuple[SparkType, SparkType]:
    """Both types; an integer literal beside a decimal has the digits it is written with."""

    def type_(term: Term, other: Term) -> SparkType:
        if other.type.name == "decimal" and term.type.name in INTEGERS and term.constant is not None:
            return SparkType("decimal", len(str(abs(int(term.constant)))), 0)
        return term.type

    return type_(a, b), type_(b, a)


def common_type(a: SparkType, b: SparkType) -> SparkType:
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if not (a.numeric and b.numeric):
        raise CannotSay(f"{a} and {b} have no common type")
    if a.name in FLOATS or b.name in FLOATS:
        return SparkType("double")  # equal types were met above: two floats stay float
    if a.name in INTEGERS and b.name in INTEGERS:
        return max(a, b, key=lambda t: BITS[t.name])
    a, b = as_decimal(a), as_decimal(b)
    whole, scale = max(a.digits - a.scale, b.digits - b.scale), max(a.scale, b.scale)
    return SparkType("decimal", min(whole + scale, MOST_DIGITS), min(scale, MOST_DIGITS - whole))


def adjusted(digits: int, scale: int) -> SparkType:
    """The type of a result: with too many digits it loses some behind the point."""
    if digits <= MOST_DIGITS:
        return SparkType("decimal", digits, scale)
    return SparkType("decimal", MOST_DIGITS, max(MOST_DIGITS - digits + scale, min(scale, LEAST_SCALE)))


def as_decimal(type_: SparkType) -> SparkType:
    return type_ if type_.name == "decimal" else SparkType("decimal", DIGITS[type_.name], 0)


def rescaled(sql: str, scale: int, target: SparkType, *fails: str) -> Term:
    """An unscaled integer with another number of digits behind the point, halves away from zero."""
    shift = target.scale - scale
    if shift >= 0:
        moved = f"({sql} * {huge(10**shift)})"
    else:
        unit, half = huge(10**-shift), huge(10**-shift // 2)
        moved = f"(CASE WHEN {sql} < 0 THEN -((-{sql} + {half}) // {unit}) ELSE ({sql} + {half}) // {unit} END)"
    return Term(moved, target, any_of(*fails, f"(abs({moved}) >= {huge(10**target.digits)})"))


def huge(number: int) -> str:
    return f"CAST('{number}' AS HUGEINT)"


def to(term: Term, target: SparkType) -> Term:
    """The term converted to another type."""
    source = term.type
    if source == target:
        return term
    if source == NULL:
        return Term(f"CAST(NULL AS {DUCKDB.get(target.name, 'HUGEINT')})", target)
    if target.name in FLOATS:
        if term.constant is not None:
            return _float_constant(term.constant, target)
        return Term(_floating(term, target), target, term.fails)
    if target.name == "decimal":
        exact = as_decimal(source)
        if target.scale >= exact.scale and target.digits - target.scale >= exact.digits - exact.scale:
            return Term(f"({term.sql} * {huge(10 ** (target.scale - source.scale))})", target, term.fails)
        return rescaled(term.sql, source.scale, target, term.fails)
    if target.name in INTEGERS and source.name in INTEGERS and BITS[target.name] >= BITS[source.name]:
        return Term(term.sql, target, term.fails, term.constant)
    raise CannotSay(f"no words for a cast from {source} to {target}")


def _floating(term: Term, target: SparkType) -> str:
    if term.type.name == "float":
        return f"CAST({term.sql} AS DOUBLE)"
    if term.type.name == "double":
        # DuckDB refuses what Spark lets become infinite
        return (
            f"CASE WHEN TRY(CAST({term.sql} AS FLOAT)) IS NOT NULL THEN TRY(CAST({term.sql} AS FLOAT)) "
            f"WHEN {term.sql} > 0 THEN CAST('inf' AS FLOAT) WHEN {term.sql} < 0 THEN CAST('-inf' AS FLOAT) END"
        )
    whole = f"CAST({term.sql} AS BIGINT)"  # by way of BIGINT: from HUGEINT, DuckDB rounds twice
    if term.type.scale == 0 and term.type.name != "decimal":
        return f"CAST({whole} AS {DUCKDB[target.name]})"
    if term.type.digits > 15:  # by way of text, which DuckDB reads with one rounding
        digits = f"lpad(CAST(abs({term.sql}) AS VARCHAR), {term.type.digits + 1}, '0')"
        text = f"(CASE WHEN {term.sql} < 0 THEN '-' ELSE '' END || {digits} || 'e-{term.type.scale}')"
        return f"CAST({text} AS {DUCKDB[target.name]})"
    if target.name == "float":
        raise CannotSay(f"no exact words for a cast from {term.type} to {target.name}")
    return f"(CAST({whole} AS DOUBLE) / 1e{term.type.scale})"
