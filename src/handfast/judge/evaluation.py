"""What a predicate says of one row of each stream: its definition, one value at a time, in plain Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handfast.errors import InternalError
from handfast.spec.expression import Call, Column, Expr, Literal, Op, conjuncts
from handfast.spec.meaning import AnsiError, rescaled, rule, to_float32, wrapped
from handfast.spec.types import Kind, Type

Row = Mapping[str, Any]
Evaluator = Callable[[Sequence[Row]], Any]  # from one row of each stream to a value


def evaluate(expr: Expr, rows: Sequence[Row]) -> Any:
    """The value of a typed tree for one row of each stream; None where it is NULL or Spark's ANSI mode refuses it."""
    try:
        return compile(expr)(rows)
    except AnsiError:
        return None


def compile(expr: Expr) -> Evaluator:
    """The tree as a function of one row of each stream; it raises `AnsiError` where Spark's ANSI mode would fail.

    AND and OR go from left to right and stop as soon as they are decided. Every other operator takes all its operands
    first, so an operand that is refused outweighs one that is NULL.
    """
    if isinstance(expr, Column):
        stream, name = expr.stream, expr.name
        return lambda rows: rows[stream][name]
    if isinstance(expr, Literal):
        value = expr.value
        return lambda rows: value
    if expr.op is Op.AND:
        return _all([compile(part) for part in conjuncts(expr)])
    if expr.op is Op.OR:
        return _either(*map(compile, expr.args))
    if expr.op is Op.SAME:
        return _same(*map(compile, expr.args))
    if expr.op is Op.IS_NULL:
        inner = compile(expr.args[0])
        return lambda rows: inner(rows) is None
    if expr.op in _CHOICES:
        return _CHOICES[expr.op]([compile(arg) for arg in expr.args])
    if expr.op not in _OWN or (expr.type.kind is Kind.DECIMAL and expr.op in (Op.MUL, Op.DIV, Op.MOD)):
        return _function(rule(expr), [compile(arg) for arg in expr.args])
    if len(expr.args) == 1:
        return _unary(_unary_rule(expr), compile(expr.args[0]))
    a, b = map(compile, expr.args)
    return (
        _less(a, b) if expr.op is Op.LT else _at_most(a, b) if expr.op is Op.LE else _binary(_binary_rule(expr), a, b)
    )


def _all(parts: list[Evaluator]) -> Evaluator:
    def conjunction(rows: Sequence[Row]) -> bool | None:
        truth: bool | None = True
        for part in parts:
            value = part(rows)
            if value is not True:
                if value is False:
                    return False
                truth = None
        return truth

    return conjunction


def _either(a: Evaluator, b: Evaluator) -> Evaluator:
    def disjunction(rows: Sequence[Row]) -> bool | None:
        x = a(rows)
        if x is True:
            return True
        y = b(rows)
        return True if y is True else None if x is None else y

    return disjunction


def _same(a: Evaluator, b: Evaluator) -> Evaluator:
    def same(rows: Sequence[Row]) -> bool:
        x, y = a(rows), b(rows)
        if x is None or y is None:
            return x is y
        return _equal(x, y)

    return same


def _less(a: Evaluator, b: Evaluator) -> Evaluator:
    def less(rows: Sequence[Row]) -> bool | None:
        x, y = a(rows), b(rows)
        if x is None or y is None:
            return None
        return _is_less(x, y)

    return less


def _at_most(a: Evaluator, b: Evaluator) -> Evaluator:
    def at_most(rows: Sequence[Row]) -> bool | None:
        x, y = a(rows), b(rows)
        return None if x is None or y is None else x <= y or y != y

    return at_most


def _function(apply: Callable[..., Any], args: list[Evaluator]) -> Evaluator:
    def function(rows: Sequence[Row]) -> Any:
        values = [arg(rows) for arg in args]
        return None if any(value is None for value in values) else apply(*values)

    return function


def _case(args: list[Evaluator]) -> Evaluator:
    *branches, default = args
    pairs = list(zip(branches[::2], branches[1::2], strict=True))

    def case(rows: Sequence[Row]) -> Any:
        for condition, value in pairs:
            if condition(rows) is True:
                return value(rows)
        return default(rows)

    return case


def _coalesce(args: list[Evaluator]) -> Evaluator:
    def coalesce(rows: Sequence[Row]) -> Any:
        return next((value for value in (arg(rows) for arg in args) if value is not None), None)

    return coalesce


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[[list[Evaluator]], Evaluator]:
    def make(args: list[Evaluator]) -> Evaluator:
        def extreme(rows: Sequence[Row]) -> Any:
            best = None
            for value in [arg(rows) for arg in args]:
                if best is None or (value is not None and is_better(value, best)):
                    best = value
            return best

        return extreme

    return make


def _is_less(x: Any, y: Any) -> bool:
    return bool(x < y or (y != y and x == x))  # NaN is equal to itself, and greater than anything else


_CHOICES: dict[Op, Callable[[list[Evaluator]], Evaluator]] = {
    Op.CASE: _case,
    Op.COALESCE: _coalesce,
    Op.GREATEST: _extreme(lambda x, y: _is_less(y, x)),
    Op.LEAST: _extreme(_is_less),
}


def _unary(rule: Callable[[Any], Any], a: Evaluator) -> Evaluator:
    def apply(rows: Sequence[Row]) -> Any:
        x = a(rows)
        return None if x is None else rule(x)

    return apply


def _binary(rule: Callable[[Any, Any], Any], a: Evaluator, b: Evaluator) -> Evaluator:
    def apply(rows: Sequence[Row]) -> Any:
        x, y = a(rows), b(rows)
        return None if x is None or y is None else rule(x, y)

    return apply


def _binary_rule(expr: Call) -> Callable[[Any, Any], Any]:
    """What a binary operator does with two values that are not NULL."""
    if expr.op is Op.EQ:
        return _equal
    rule = _ARITHMETIC[expr.op]
    if expr.type.kind is Kind.DOUBLE:
        return rule
    if expr.type.kind is Kind.FLOAT:
        # the double result of + - * % on two floats, rounded once more, is the float result
        return lambda x, y: to_float32(rule(x, y))
    if expr.type.kind is Kind.DECIMAL:
        return rule  # the type has room for every sum
    if expr.type.kind is Kind.DATE:
        return lambda x, y: wrapped(rule(x, y), 32)
    low, high = _bounds(expr.type)

    def checked(x: int, y: int) -> int:
        z: int = rule(x, y)
        if low <= z <= high:
            return z
        raise AnsiError(f"{x} {expr.op.value} {y} is beyond {expr.type}")

    return checked


def _equal(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def _divide(x: float, y: float) -> float:
    if y == 0:
        raise AnsiError(f"{x} / {y}")
    return x / y


def _remainder(x: Any, y: Any) -> Any:
    """As in Java: with the sign of the dividend."""
    if y == 0:
        raise AnsiError(f"{x} % {y}")
    if isinstance(x, int):
        return abs(x) % abs(y) * (1 if x >= 0 else -1)
    return math.nan if math.isinf(x) else math.fmod(x, y)


_ARITHMETIC: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: _divide,
    Op.MOD: _remainder,
}


def _unary_rule(expr: Call) -> Callable[[Any], Any]:
    """What a unary operator does with a value that is not NULL."""
    if expr.op is Op.NOT:
        return lambda x: not x
    if expr.op is Op.CAST:
        return _cast_rule(expr.args[0].type, expr.type)
    if expr.op not in (Op.ABS, Op.NEG):
        raise InternalError(f"The oracle does not know the operator {expr.op}")
    rule: Callable[[Any], Any] = operator.abs if expr.op is Op.ABS else operator.neg
    if expr.type.is_floating or expr.type.kind is Kind.DECIMAL:
        return rule
    low, high = _bounds(expr.type)

    def checked(x: int) -> int:
        y: int = rule(x)
        if low <= y <= high:
            return y
        raise AnsiError(f"{expr.op.value} {x} is beyond {expr.type}")

    return checked


def _cast_rule(source: Type, target: Type) -> Callable[[Any], Any]:
    """How a value of one type becomes one of another; what lies beyond the target is refused."""
    if source.kind is Kind.NULL or source == target:
        return lambda x: x
    if target.kind is Kind.DECIMAL:
        return lambda x: rescaled(x, source.scale, target)
    if target.kind is Kind.TIMESTAMP_NTZ:
        return _within(target, lambda days: days * 86_400_000_000)
    if target.kind is Kind.DATE:
        return lambda time: time // 86_400_000_000
    if target.is_floating and source.is_floating:
        return to_float32 if target.kind is Kind.FLOAT else lambda x: x
    if target.is_floating:
        return rule(Call(Op.CAST, (Literal(0, source),), target))
    unit = 10**source.scale
    if source.is_floating:
        return lambda x: _truncated(x, target)
    return _within(target, lambda x: x if unit == 1 else abs(x) // unit * (1 if x > 0 else -1))


def _within(target: Type, convert: Callable[[int], int]) -> Callable[[int], int]:
    low, high = _bounds(target)

    def checked(x: int) -> int:
        y = convert(x)
        if low <= y <= high:
            return y
        raise AnsiError(f"{x} is beyond {target}")

    return checked


def _truncated(x: float, target: Type) -> int:
    """A floating number without what is behind the point; just beyond the largest bigint there is no other double."""
    low, high = _bounds(target)
    if x != x or math.isinf(x) or not (math.floor(x) <= float(high) and math.ceil(x) >= low):
        raise AnsiError(f"{x} is beyond {target}")
    return min(math.trunc(x), high)


def _bounds(type_: Type) -> tuple[int, int]:
    """The smallest and largest value of an integer, time or interval type."""
    bits = type_.bits if type_.is_integer else 64
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


_OWN = frozenset({*_ARITHMETIC, Op.EQ, Op.LT, Op.LE, Op.NOT, Op.NEG, Op.ABS, Op.CAST})
