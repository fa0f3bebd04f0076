"""Which predicates fit into a circuit, and the columns that such a circuit reads; it needs no Amaranth to say so."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.errors import UnsupportedError
from handfast.spec.expression import Call, Column, Expr, Literal, Op, walk
from handfast.spec.shown import shown
from handfast.spec.types import Kind, Type

# what a circuit computes: rules on integers that need no division
OPERATORS = frozenset(
    {
        *(Op.AND, Op.OR, Op.NOT, Op.EQ, Op.LT, Op.LE, Op.SAME, Op.IS_NULL, Op.IN),
        *(Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.ABS, Op.CAST, Op.DATE_DIFF),
        *(Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST),
    }
)
_DIVISIONS = frozenset(
    {
        *(Op.DIV, Op.MOD, Op.INT_DIV, Op.FLOOR, Op.CEIL, Op.ROUND),
        *(Op.YEAR, Op.QUARTER, Op.MONTH, Op.DAY, Op.DAY_OF_WEEK, Op.DAY_OF_YEAR),
        *(Op.HOUR, Op.MINUTE, Op.SECOND, Op.DATE_TRUNC),
    }
)
_NO_ROOM = "a circuit that decides a pair in one cycle has no room for"


def fits(tree: Expr) -> bool:
    """Whether a circuit can compute the tree."""
    return all(_misfit(node) is None for node in walk(tree))


def check_fits(tree: Expr, streams: Sequence[str]) -> None:
    """Refuse a tree that no circuit can compute; the error names the part, the reason and the engines that can."""
    # a column or a function says more than the conversions and constants around it, which follow from it
    for node in sorted(walk(tree), key=_importance):
        why = _misfit(node)
        if why is not None:
            raise UnsupportedError(
                f"Engine 'hardware' cannot compute {_written(node, streams)!r}: {why}; use engine 'local' or 'spark'"
            )


def _importance(node: Expr) -> int:
    return 2 if isinstance(node, Literal) else 1 if isinstance(node, Call) and node.op is Op.CAST else 0


def column_widths(tree: Expr) -> dict[Column, int]:
    """The columns that a circuit for the tree reads, by stream and name, and how many bits a value of each has.

    A column that is nothing but NULLs is not read.
    """
    read = {node for node in walk(tree) if isinstance(node, Column) and node.type.kind is not Kind.NULL}
    return {column: width_of(column.type) for column in sorted(read, key=lambda c: (c.stream, c.name))}


def width_of(type_: Type) -> int:
    """The bits of any value of a type, in two's complement; a boolean is one bit, without a sign."""
    low, high = bounds(type_)
    return max(high.bit_length() + (low < 0), 1)


def bounds(type_: Type) -> tuple[int, int]:
    """The smallest and the largest value of a type: a date in days, times in microseconds, a decimal without its point.

    A NULL that nothing gives a type has no value; 0 stands for it.
    """
    if type_.kind is Kind.NULL:
        return 0, 0
    if type_.kind is Kind.BOOLEAN:
        return 0, 1
    if type_.kind is Kind.DECIMAL:
        limit = 10**type_.precision
        return 1 - limit, limit - 1
    bits = type_.bits if type_.is_integer else 32 if type_.kind is Kind.DATE else 64
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _misfit(node: Expr) -> str | None:
    """Why a circuit cannot compute this node, whatever its arguments are; None if it can."""
    if isinstance(node, Call):
        if node.op is Op.PYTHON:
            return "it is a function in Python"
        if node.op in _DIVISIONS:
            return f"it takes a division, which {_NO_ROOM}"
        if node.op not in OPERATORS and any(arg.type.is_text for arg in node.args):
            return "it works on text, and a circuit computes with integers"
    if node.type.is_text:
        return f"it is text ({node.type}), and a circuit computes with integers"
    if node.type.is_floating:
        return f"it is floating point ({node.type}), which {_NO_ROOM}"
    if node.type.kind is Kind.PAYLOAD:
        return f"it is of type {node.type}, and a circuit computes with integers"
    if isinstance(node, Call):
        if node.op is Op.CAST:
            return _inexact(node.args[0].type, node.type)
        if node.op is Op.MUL and node.type.scale != sum(arg.type.scale for arg in node.args):
            return f"its result is rounded to {node.type}, by a division, which {_NO_ROOM}"
        if node.op not in OPERATORS:
            return "it has no rule on integers"
    return None


def _inexact(source: Type, to: Type) -> str | None:
    """Why a cast takes a division; None if it does not."""
    if source.is_floating:
        return f"it converts floating point ({source}), which {_NO_ROOM}"
    if source.is_timestamp and to.kind is Kind.DATE:
        return f"the day of a time takes a division, which {_NO_ROOM}"
    if source.kind is Kind.DECIMAL and to.scale < source.scale:
        return f"digits behind the point are cut off by a division, which {_NO_ROOM}"
    return None


def _written(node: Expr, streams: Sequence[str]) -> str:
    """The node as SQL; a conversion is written out, even where nobody wrote it."""
    text = shown(node, streams)
    return f"CAST({text} AS {node.type})" if isinstance(node, Call) and node.op is Op.CAST else text
