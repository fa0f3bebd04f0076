"""Which operators there is machine code for."""

from __future__ import annotations

from handfast.spec.expression import Call, Expr, Op, walk
from handfast.spec.types import Kind

_NATIVE = frozenset(
    {
        *(Op.AND, Op.OR, Op.NOT, Op.EQ, Op.LT, Op.LE, Op.SAME, Op.IS_NULL, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD),
        *(Op.NEG, Op.ABS, Op.CAST, Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST, Op.SQRT, Op.SIGN, Op.FLOOR, Op.CEIL),
        *(Op.INT_DIV, Op.DATE_DIFF, Op.DATE_TRUNC, Op.YEAR, Op.QUARTER, Op.MONTH, Op.DAY, Op.DAY_OF_WEEK),
        *(Op.HOUR, Op.MINUTE, Op.SECOND, Op.FLOAT_BELOW, Op.FLOAT_ABOVE, Op.CODE),
    }
)
_EXACT_DIGITS = 15  # one correctly rounded division turns a decimal of so many digits into its double
_PRODUCT_DIGITS = 38


def is_native(call: Call) -> bool:
    """Whether there is code for an operator: not where it makes text, nor where a decimal would be rounded twice."""
    if call.op not in _NATIVE or call.type.is_text:
        return False
    source = call.args[0].type
    if call.op is Op.CAST and source.kind is Kind.DECIMAL and call.type.is_floating:
        return call.type.kind is Kind.DOUBLE and source.precision <= _EXACT_DIGITS
    if call.op in (Op.MUL, Op.DIV, Op.MOD) and call.type.kind is Kind.DECIMAL:
        return call.op is Op.MUL and sum(arg.type.precision for arg in call.args) < _PRODUCT_DIGITS
    if call.op in (Op.FLOOR, Op.CEIL, Op.INT_DIV):
        return all(arg.type.kind is not Kind.DECIMAL for arg in call.args)
    if call.op is Op.DATE_TRUNC:
        return source.kind is Kind.INTERVAL
    return True


def is_native_throughout(expr: Expr) -> bool:
    """Whether there is code for all of it."""
    return all(is_native(node) for node in walk(expr) if isinstance(node, Call))
