"""A typed tree as a column of Spark's: only what means the same there as here, and whose computation never fails.

Every conversion is written out, so neither Spark's coercion of types nor its ANSI mode has anything to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, and_, eq, le, lt, mul, or_, sub
from typing import Any

from pyspark.sql import functions as F

from handfast.spec.expression import Column, Expr, Literal, Op, walk
from handfast.spec.types import Kind, Type

Named = Callable[[int, str], Any]  # the column of a stream's number and a column's name
Say = Callable[..., Any]  # the column that an operator makes of those of its operands


def _case(*args: Any) -> Any:
    """The first value whose condition is true; conditions and values stand in turn, then what holds otherwise."""
    pairs = list(zip(args[:-1:2], args[1::2], strict=True))
    return reduce(lambda chosen, pair: chosen.when(*pair), pairs[1:], F.when(*pairs[0])).otherwise(args[-1])


_SAID: dict[Op, Say] = {
    Op.AND: and_,
    Op.OR: or_,
    Op.NOT: lambda a: ~a,
    Op.EQ: eq,
    Op.LT: lt,
    Op.LE: le,
    Op.SAME: lambda a, b: a.eqNullSafe(b),
    Op.IS_NULL: lambda a: a.isNull(),
    Op.IN: lambda a, *constants: a.isin(*constants),
    Op.CASE: _case,
    Op.COALESCE: F.coalesce,
    Op.GREATEST: F.greatest,
    Op.LEAST: F.least,
}
_SAID_OF_FLOATS: dict[Op, Say] = {  # of integers and decimals they may overflow
    Op.ADD: add,
    Op.SUB: sub,
    Op.MUL: mul,
    Op.NEG: lambda a: -a,
    Op.ABS: F.abs,
}
# Added to every floating column, which changes no comparison: a bare column beside a constant is left to files to test,
# and Parquet's statistics and dictionaries pass over NaN and take -0.0 and 0.0 for different numbers.
_ZERO = 0.0
_CONSTANTS = (Kind.BOOLEAN, Kind.FLOAT, Kind.DOUBLE, Kind.STRING)


def beyond(tree: Expr) -> Expr | None:
    """The first part of a tree that `as_column` does not say; None if it says all of it."""
    return next((node for node in walk(tree) if not _is_said(node)), None)


def as_column(tree: Expr, named: Named) -> Any:
    """The tree as a column, for a tree of which nothing is `beyond`."""
    if isinstance(tree, Column):
        column = named(tree.stream, tree.name)
        return column + F.lit(_ZERO).cast(str(tree.type)) if tree.type.is_floating else column
    if isinstance(tree, Literal):
        return F.lit(tree.value).cast(str(tree.type))
    args = [as_column(arg, named) for arg in tree.args]
    if tree.op is Op.CAST:
        return args[0].cast(str(tree.type))
    return (_SAID | _SAID_OF_FLOATS)[tree.op](*args)


def _is_said(node: Expr) -> bool:
    if isinstance(node, Column):
        return True
    if isinstance(node, Literal):
        return node.value is None or node.type.is_integer or node.type.kind in _CONSTANTS
    if node.op is Op.CAST:
        return _never_fails(node.args[0].type, node.type)
    return node.op in _SAID or (node.op in _SAID_OF_FLOATS and node.type.is_floating)


def _never_fails(source: Type, to: Type) -> bool:
    """Whether a cast gives a number for every number."""
    if source.is_integer and to.is_integer:
        return to.bits >= source.bits
    return to.is_floating and (source.is_integer or source.kind is Kind.FLOAT)
