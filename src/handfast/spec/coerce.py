"""Types brought together as Spark's ANSI mode does: every implicit conversion becomes a CAST in the tree."""

from __future__ import annotations

from sqlglot import exp

from handfast.errors import SpecError
from handfast.spec.expression import Call, Expr, Literal, Op
from handfast.spec.literals import as_floating
from handfast.spec.refusal import mismatch, refuse
from handfast.spec.types import (
    DATE,
    DOUBLE,
    INT8,
    INT16,
    INT32,
    INTERVAL,
    MAX_PRECISION,
    NULL,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    adjusted_decimal,
    as_decimal,
    common_type,
    comparison_type,
    decimal,
    exact_decimal,
)


def cast(tree: Expr, to: Type) -> Expr:
    """`tree` brought to type `to`; constants are converted here and now, where that loses nothing."""
    if tree.type == to:
        return tree
    if isinstance(tree, Literal):
        if tree.value is None:
            return Literal(None, to)
        if to.is_floating:
            return as_floating(tree, to)
        if to.kind is Kind.DECIMAL and isinstance(tree.value, int) and to.scale >= tree.type.scale:
            value = tree.value * 10 ** (to.scale - tree.type.scale)
            return Literal(value, to) if abs(value) < 10**to.precision else Call(Op.CAST, (tree,), to)
        if to.is_integer and tree.type.is_integer and to.bits >= tree.type.bits:
            return Literal(tree.value, to)
    return Call(Op.CAST, (tree,), to)


def unify(a: Expr, b: Expr, node: exp.Expression) -> tuple[Expr, Expr]:
    """Both sides of a comparison in the type they are compared in."""
    left, right = _literal_types(a, b)
    to = comparison_type(left, right) or mismatch(node, a.type, b.type)
    return cast(a, to), cast(b, to)


def alike(trees: list[Expr], node: exp.Expression) -> list[Expr]:
    """Values of which one is chosen, in their common type."""
    to = NULL
    for tree in trees:
        to = common_type(to, tree.type) or mismatch(node, to, tree.type)
    return [cast(tree, to) for tree in trees]


def arithmetic(op: Op, a: Expr, b: Expr, node: exp.Expression) -> Expr:
    """The tree of + - * / %."""
    if DATE in (a.type, b.type):
        return _dates(op, a, b, node)
    temporal = _temporal(op, a.type, b.type)
    if temporal is not None:
        left, right, to = temporal
        return Call(op, (cast(a, left), cast(b, right)), to)
    if not all(t.is_numeric or t == NULL for t in (a.type, b.type)):
        refuse(node, f"cannot be computed with {a.type} and {b.type}")
    left, right = _literal_types(a, b)
    to = common_type(left, right) or DOUBLE
    if to == NULL:
        to = DOUBLE
    if to.kind is Kind.DECIMAL:
        left = left if left != NULL else to
        right = right if right != NULL else to
        return _decimals(op, cast(a, as_decimal(left)), cast(b, as_decimal(right)))
    if op is Op.DIV:
        to = DOUBLE
    return Call(op, (cast(a, to), cast(b, to)), to)


def _literal_types(a: Expr, b: Expr) -> tuple[Type, Type]:
    """The types of both sides: beside a decimal, an integer literal has only the digits it is written with."""
    return _beside(a, b.type), _beside(b, a.type)


def _beside(tree: Expr, other: Type) -> Type:
    if other.kind is Kind.DECIMAL and isinstance(tree, Literal) and tree.type.is_integer:
        return decimal(len(str(abs(int(tree.value or 0)))), 0)
    return tree.type


def _decimals(op: Op, a: Expr, b: Expr) -> Expr:
    """Arithmetic of decimals: Spark's result type, and what is too long for it rounded, halves away from zero."""
    left, right = a.type, b.type
    whole, scale = max(left.precision - left.scale, right.precision - right.scale), max(left.scale, right.scale)
    if op in (Op.ADD, Op.SUB):
        exact = exact_decimal(whole + 1, scale)
        result = Call(op, (cast(a, exact), cast(b, exact)), exact)
        return cast(result, adjusted_decimal(exact.precision, scale))
    if op is Op.MUL:
        to = adjusted_decimal(left.precision + right.precision + 1, left.scale + right.scale)
    elif op is Op.DIV:
        digits = max(6, left.scale + right.precision + 1)
        to = adjusted_decimal(left.precision - left.scale + right.scale + digits, digits)
    else:
        least = min(left.precision - left.scale, right.precision - right.scale)
        to = adjusted_decimal(least + scale, scale)
    return Call(op, (a, b), to)


def _temporal(op: Op, a: Type, b: Type) -> tuple[Type, Type, Type] | None:
    """The types of both operands and of the result where times and intervals are added or subtracted."""
    if a.is_timestamp and b == a and op is Op.SUB:
        return a, b, INTERVAL
    if op in (Op.ADD, Op.SUB):
        if (a.is_timestamp or a == INTERVAL) and b == INTERVAL:
            return a, b, a
        if op is Op.ADD and a == INTERVAL and b.is_timestamp:
            return a, b, b
    return None


def _dates(op: Op, a: Expr, b: Expr, node: exp.Expression) -> Expr:
    """A date and a number of days make a date; two dates, or a date and a time without zone, an interval."""
    days = (INT8, INT16, INT32, NULL)
    if op in (Op.ADD, Op.SUB) and a.type == DATE and b.type in days:
        return Call(op, (a, cast(b, INT32)), DATE)
    if op is Op.ADD and b.type == DATE and a.type in days:
        return Call(op, (b, cast(a, INT32)), DATE)
    if op is Op.SUB and {a.type, b.type} <= {DATE, TIMESTAMP_NTZ}:
        return Call(op, (cast(a, TIMESTAMP_NTZ), cast(b, TIMESTAMP_NTZ)), INTERVAL)
    return refuse(node, f"cannot be computed with {a.type} and {b.type}; to a date, add a number of days: r.day + 7")


def explicit_cast(tree: Expr, to: Type, node: exp.Expression) -> Expr:
    """CAST as far as its meaning is the same on every engine."""
    source = tree.type
    if source == to:
        return tree
    exactly = source.is_integer or source.kind is Kind.DECIMAL
    if source == NULL or (source.is_numeric and to.is_numeric and to.kind is not Kind.DECIMAL):
        return cast(tree, to)
    if exactly and to.kind is Kind.DECIMAL:
        return cast(cast(tree, as_decimal(source)), to)
    if source.is_floating and to.kind is Kind.DECIMAL:
        refuse(node, f"rounds a {source} by the way Java prints it; make it a decimal column in the input")
    if (source == DATE and to == TIMESTAMP_NTZ) or (source.is_timestamp and to == DATE):
        return cast(tree, to)
    return refuse(node, f"casts {source} to {to}, which is not supported in a predicate; cast it in the input")


def checked_decimal(precision: int, scale: int, node: exp.Expression) -> Type:
    """The decimal type that a CAST names."""
    try:
        return decimal(precision, scale)
    except SpecError:
        return refuse(node, f"has no type of Spark's: a decimal has at most {MAX_PRECISION} digits")
