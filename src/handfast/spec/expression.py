"""The typed tree of a predicate: what the oracle evaluates and the kernels compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from handfast.spec.types import BOOLEAN, Type

if TYPE_CHECKING:
    from handfast.spec.python_predicate import PythonPredicate


class Op(Enum):
    """What a `Call` does. Implicit conversions are explicit CASTs here."""

    AND = "AND"
    OR = "OR"
    NOT = "NOT"
    EQ = "="
    LT = "<"
    LE = "<="
    SAME = "<=>"
    IS_NULL = "IS NULL"
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"
    NEG = "NEG"
    ABS = "ABS"
    CAST = "CAST"
    CASE = "CASE"  # condition, value, condition, value, …, value
    COALESCE = "COALESCE"
    GREATEST = "GREATEST"
    LEAST = "LEAST"
    IN = "IN"  # a value and constants
    # what follows is what `spec/meaning.py` says of each, of values that are not NULL
    LIKE = "LIKE"  # text, pattern, escape
    ILIKE = "ILIKE"
    UPPER = "UPPER"
    LOWER = "LOWER"
    LENGTH = "LENGTH"
    TRIM = "TRIM"  # text, characters
    LTRIM = "LTRIM"
    RTRIM = "RTRIM"
    SUBSTRING = "SUBSTRING"  # text, position, length
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    CONCAT = "CONCAT"
    REPLACE = "REPLACE"
    REVERSE = "REVERSE"
    INSTR = "INSTR"
    STARTS_WITH = "STARTSWITH"
    ENDS_WITH = "ENDSWITH"
    CONTAINS = "CONTAINS"
    SIGN = "SIGN"
    SQRT = "SQRT"
    FLOOR = "FLOOR"
    CEIL = "CEIL"
    ROUND = "ROUND"  # number, digits
    INT_DIV = "DIV"
    YEAR = "YEAR"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    DAY = "DAY"
    DAY_OF_WEEK = "DAYOFWEEK"
    DAY_OF_YEAR = "DAYOFYEAR"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"
    DATE_TRUNC = "DATE_TRUNC"  # unit, time
    DATE_DIFF = "DATEDIFF"
    PYTHON = "PYTHON"  # a function of the user's
    # what follows no user can write: the kernels make it of what was written
    FLOAT_BELOW = "FLOAT BELOW"  # the greatest FLOAT that is at most a DOUBLE
    FLOAT_ABOVE = "FLOAT ABOVE"  # the least FLOAT that is at least a DOUBLE
    CODE = "CODE"  # the number that stands for a string


COMPARISONS = frozenset({Op.EQ, Op.LT, Op.LE, Op.SAME})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of stream number `stream`."""

    stream: int
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `slot` is its place among a compiled kernel's arguments; NULL has none.

    Decimals are kept as the unscaled integer, dates as days, times and intervals as microseconds.
    """

    value: bool | int | float | str | bytes | None
    type: Type
    slot: int = -1


@dataclass(frozen=True, slots=True)
class Call:
    """An operator on typed arguments."""

    op: Op
    args: tuple[Expr, ...]
    type: Type
    function: PythonPredicate | None = None  # with Op.PYTHON


Expr = Column | Literal | Call


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of the tree, parents first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def depth(expr: Expr) -> int:
    """How many levels the tree has."""
    levels, now = 0, [expr]
    while now:
        levels += 1
        now = [arg for node in now if isinstance(node, Call) for arg in node.args]
    return levels


def streams_of(expr: Expr) -> frozenset[int]:
    """The streams whose columns the tree names."""
    return frozenset(node.stream for node in walk(expr) if isinstance(node, Column))


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a top-level AND."""
    if isinstance(expr, Call) and expr.op is Op.AND:
        return [part for arg in expr.args for part in conjuncts(arg)]
    return [expr]


def conjunction(parts: Sequence[Expr]) -> Expr:
    """The parts joined by AND, as a tree of little depth; TRUE where there are none."""
    if not parts:
        return Literal(True, BOOLEAN)
    return balanced(Op.AND, parts)


def balanced(op: Op, parts: Sequence[Expr]) -> Expr:
    """The parts of a chain as a tree of little depth; from left to right they decide as the chain does."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return Call(op, (balanced(op, parts[:half]), balanced(op, parts[half:])), BOOLEAN)


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The tree with every node for which `change` gives another one replaced, parents first."""
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, Call):
        return replace(expr, args=tuple(rewrite(arg, change) for arg in expr.args))
    return expr


def number_literals(expr: Expr, first: int = 0) -> tuple[Expr, tuple[Literal, ...]]:
    """Give every literal but NULL a slot from `first` on; return the tree and its literals in order."""
    found: list[Literal] = []

    def numbered(node: Expr) -> Expr | None:
        if not isinstance(node, Literal) or node.value is None:
            return None
        found.append(replace(node, slot=first + len(found)))
        return found[-1]

    return rewrite(expr, numbered), tuple(found)
