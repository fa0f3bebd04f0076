"""Arithmetic as Spark's ANSI mode has it: types of results, ranges, and where it fails."""

from __future__ import annotations

from tests.judges.duckdb_judge.terms import (
    BITS,
    FLOATS,
    INTEGERS,
    INTERVAL,
    LEAST_SCALE,
    NULL,
    CannotSay,
    SparkType,
    Term,
    adjusted,
    any_of,
    as_decimal,
    beside,
    common_type,
    huge,
    rescaled,
    to,
)


def _in_range(sql: str, type_: SparkType) -> str:
    half = 2 ** (BITS[type_.name] - 1)
    return f"{sql} BETWEEN CAST('{-half}' AS HUGEINT) AND CAST('{half - 1}' AS HUGEINT)"


def _checked(sql: str, type_: SparkType, *fails: str) -> Term:
    """The outcome of integer arithmetic: it fails outside the range of its type."""
    inside = _in_range(sql, type_)
    return Term(f"(CASE WHEN {inside} THEN {sql} END)", type_, any_of(*fails, f"(NOT ({inside}))"))


def signed(term: Term, form: str) -> Term:
    sql = form.format(term.sql)
    if term.type.name in FLOATS or term.type.name == "decimal":
        return Term(f"({sql})", term.type, term.fails)
    return _checked(f"({sql})", term.type, term.fails)


def arithmetic(sign: str, a: Term, b: Term) -> Term:
    temporal = _temporal(sign, a.type, b.type)
    if temporal is not None:
        if temporal.name == "date":  # these days do not go round
            return Term(f"({a.sql} {sign} {b.sql})", temporal, any_of(a.fails, b.fails))
        return _checked(f"({a.sql} {sign} {b.sql})", temporal, a.fails, b.fails)
    common = common_type(*beside(a, b))
    if common == NULL or (sign == "/" and common.name != "decimal"):
        common = SparkType("double")
    if common.name == "decimal":
        return _decimal_arithmetic(sign, a, b, common)
    x, y = to(a, common), to(b, common)
    fails = [a.fails, b.fails]
    divisor = y.sql
    if sign in "/%":
        fails.append(f"({x.sql} IS NOT NULL AND {y.sql} = 0)")
        divisor = f"NULLIF({y.sql}, 0)"
    sql = f"({x.sql} {sign} {divisor})"
    if common.name in FLOATS:
        return Term(sql, common, any_of(*fails))
    return _checked(sql, common, *fails)


def _decimal_arithmetic(sign: str, a: Term, b: Term, common: SparkType) -> Term:
    left, right = (as_decimal(t if t != NULL else common) for t in beside(a, b))
    x, y = to(a, left).sql, to(b, right).sql
    whole, scale = max(left.digits - left.scale, right.digits - right.scale), max(left.scale, right.scale)
    if sign == "*":
        product = left.scale + right.scale
        return rescaled(f"({x} * {y})", product, adjusted(left.digits + right.digits + 1, product), a.fails, b.fails)
    if sign == "/":
        digits = max(LEAST_SCALE, left.scale + right.digits + 1)
        target = adjusted(left.digits - left.scale + right.scale + digits, digits)
        zero = f"({x} IS NOT NULL AND {y} = 0)"
        shift = target.scale + right.scale - left.scale
        doubled = f"((2 * abs({x}) * {huge(10**shift)} + abs({y})) // (2 * abs(NULLIF({y}, 0))))"
        return Term(f"({doubled} * sign({x}) * sign({y}))", target, any_of(a.fails, b.fails, zero))
    if sign == "%":
        raise CannotSay("remainders of decimals")
    x, y = (f"({sql} * {huge(10 ** (scale - t.scale))})" for sql, t in ((x, left), (y, right)))
    return rescaled(f"({x} {sign} {y})", scale, adjusted(whole + scale + 1, scale), a.fails, b.fails)


def _temporal(sign: str, a: SparkType, b: SparkType) -> SparkType | None:
    moments = ("timestamp", "timestamp_ntz")
    if sign in "+-" and a.name == "date" and b.name in INTEGERS:
        return a
    if sign == "-" and a.name in moments and a == b:
        return INTERVAL
    if sign in "+-" and b == INTERVAL and a.name in (*moments, "interval"):
        return a
    if sign == "+" and a == INTERVAL and b.name in moments:
        return b
    return None
