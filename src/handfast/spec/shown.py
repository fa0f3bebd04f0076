"""A typed tree as text for people: SQL again, without the conversions that nobody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from handfast.spec.expression import Call, Column, Expr, Literal, Op
from handfast.spec.types import Kind

_INFIX = frozenset(
    {
        *(Op.AND, Op.OR, Op.EQ, Op.LT, Op.LE, Op.SAME, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD, Op.INT_DIV),
        *(Op.LIKE, Op.ILIKE),
    }
)
_OPERATORS = _INFIX | {Op.IS_NULL, Op.IN, Op.NOT}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown(expr: Expr, streams: Sequence[str]) -> str:
    """The tree as SQL."""
    if isinstance(expr, Column):
        return f"{streams[expr.stream]}.{expr.name}"
    if isinstance(expr, Literal):
        return _constant(expr)
    args = [shown(arg, streams) for arg in expr.args]
    if expr.op is Op.CAST:
        return args[0]
    if expr.op in _INFIX:
        return f" {expr.op.value} ".join(_bracketed(expr.args[:2], args))
    if expr.op is Op.NOT:
        return f"NOT ({args[0]})"
    if expr.op is Op.IS_NULL:
        return f"{_bracketed(expr.args, args)[0]} IS NULL"
    if expr.op is Op.NEG:
        return f"-({args[0]})"
    if expr.op is Op.IN:
        return f"{_bracketed(expr.args, args)[0]} IN ({', '.join(args[1:4])}{', …' if len(args) > 4 else ''})"
    if expr.op is Op.CASE:
        whens = [f"WHEN {a} THEN {b}" for a, b in zip(args[:-1:2], args[1::2], strict=True)]
        return f"CASE {' '.join(whens)} ELSE {args[-1]} END"
    name = expr.op.value if expr.function is None else expr.function.name
    return f"{name}({', '.join(args)})"


def _bracketed(parts: Sequence[Expr], texts: Sequence[str]) -> list[str]:
    """The texts of an operator's operands, in brackets where they hold operators themselves."""
    return [
        f"({text})" if isinstance(part, Call) and part.op in _OPERATORS else text
        for part, text in zip(parts, texts, strict=False)
    ]


def _constant(literal: Literal) -> str:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, bool):
        return str(value).upper()
    if kind is Kind.DECIMAL:
        digits = str(abs(int(value))).rjust(literal.type.scale + 1, "0")
        point = len(digits) - literal.type.scale
        text = f"{'-' if value < 0 else ''}{digits[:point]}.{digits[point:]}"
        return text.rstrip("0").removesuffix(".")
    if kind is Kind.INTERVAL:
        return _interval(int(value))
    if kind is Kind.DATE:
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if literal.type.is_timestamp:
        moment = _EPOCH + timedelta(microseconds=value)
        return f"{kind.value.upper()} '{moment.replace(tzinfo=None)}'"
    return repr(value)


def _interval(micros: int) -> str:
    for unit, length in (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000)):
        if micros % length == 0 and micros:
            return f"INTERVAL '{micros // length}' {unit}"
    seconds, rest = divmod(abs(micros), 1_000_000)
    digits = f"{seconds}.{rest:06}".rstrip("0").removesuffix(".")
    return f"INTERVAL '{'-' if micros < 0 else ''}{digits}' SECOND"
