"""A predicate with its comparisons made narrower: more pairs are tried at a time, less is stored, nothing changes.

A FLOAT is compared with a DOUBLE of the other stream, or a constant, as a DOUBLE. The same is true where it is compared
with the nearest FLOAT on the right side, and that one is made once per tuple: a FLOAT is below a bound iff it is below
the least FLOAT that is not below the bound. Strings are equal iff their codes are, and these fit in 32 bits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from handfast.spec.expression import Call, Expr, Literal, Op, rewrite, streams_of, walk
from handfast.spec.types import FLOAT, INT32, Kind


def narrowed(predicate: Expr, *, codes: bool) -> Expr:
    """The predicate as kernels are best off with it; true, false and NULL for the same pairs.

    With `codes`, equal strings are compared by codes of 32 bits.
    """
    coded = codes and not any(_orders_text(node) for node in walk(predicate))  # ordinals are wider than codes

    def change(node: Expr) -> Expr | None:
        if not isinstance(node, Call) or len(streams_of(node)) < 2:
            return None
        if node.op in (Op.LT, Op.LE):
            return _in_floats(node)
        if node.op in (Op.EQ, Op.SAME) and coded and node.args[0].type.is_text and _apart(node):
            return replace(node, args=tuple(Call(Op.CODE, (arg,), INT32) for arg in node.args))
        return None

    return rewrite(predicate, change)


def _in_floats(node: Call) -> Expr | None:
    """A comparison by order of a FLOAT, as a DOUBLE, with what is known of each tuple."""
    a, b = node.args
    if _is_float(a) and _is_float(b):
        return replace(node, args=(_float(a), _float(b)))
    if _is_float(a) and _is_bound(b, a):
        return replace(node, args=(_float(a), _rounded(Op.FLOAT_ABOVE if node.op is Op.LT else Op.FLOAT_BELOW, b)))
    if _is_float(b) and _is_bound(a, b):
        return replace(node, args=(_rounded(Op.FLOAT_BELOW if node.op is Op.LT else Op.FLOAT_ABOVE, a), _float(b)))
    return None


def _is_float(expr: Expr) -> bool:
    """Whether an expression is a FLOAT made a DOUBLE."""
    is_cast = isinstance(expr, Call) and expr.op is Op.CAST and expr.type.kind is Kind.DOUBLE
    return is_cast and _float(expr).type == FLOAT


def _float(cast: Expr) -> Expr:
    assert isinstance(cast, Call)
    return cast.args[0]


def _is_bound(expr: Expr, other: Expr) -> bool:
    """Whether an expression is a constant, or is computed once for every tuple, and not of the other's stream alone."""
    own = streams_of(expr)
    return expr.type.kind is Kind.DOUBLE and (isinstance(expr, Literal) or (len(own) == 1 and own != streams_of(other)))


def _rounded(op: Op, bound: Expr) -> Expr:
    if not isinstance(bound, Literal):
        return Call(op, (bound,), FLOAT)
    return Literal(None if bound.value is None else float_near(float(bound.value), op), FLOAT)


def float_near(bound: float, op: Op) -> float:
    """The greatest FLOAT that is at most the bound, or the least that is at least the bound."""
    with np.errstate(over="ignore"):
        near = np.float32(bound)
        if op is Op.FLOAT_BELOW and float(near) > bound:  # as doubles: NumPy would make a float of the bound
            near = np.nextafter(near, np.float32(-np.inf))
        if op is Op.FLOAT_ABOVE and float(near) < bound:
            near = np.nextafter(near, np.float32(np.inf))
    return float(near)


def _apart(node: Call) -> bool:
    """Whether the two sides are each of one stream, and of different ones."""
    a, b = (streams_of(arg) for arg in node.args)
    return len(a) == 1 == len(b) and a != b


def _orders_text(node: Expr) -> bool:
    return isinstance(node, Call) and node.op in (Op.LT, Op.LE) and node.args[0].type.is_text
