"""Where a condition can be true: a test of few instructions for the many pairs that do not match.

It leaves out what seldom matters. A NULL or an error is taken for whatever lies under it, a NaN for a number that
fulfils any comparison. So the test never rejects a pair for which the condition is true, and the few others that pass
are rejected by the condition itself.

Why none is lost: where a comparison is known, it is what its arguments say, and so are NOT, AND and OR of what is
known. What looks at NULLs itself (IS NULL, <=>, COALESCE, CASE and the like) is emitted as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeGuard

from llvmlite import ir

from handfast.kernels.compiler.codegen import Emitter
from handfast.kernels.compiler.program import Slot, may_fail
from handfast.spec.expression import Call, Column, Expr, Literal, Op, walk
from handfast.spec.types import Kind, Type

_SEES_NULL = frozenset({Op.SAME, Op.IS_NULL, Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST})
_ORDERS = frozenset({Op.EQ, Op.LT, Op.LE})
_INTEGERS = frozenset({Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ})

Span = tuple[Expr, Expr, Expr]  # a number, and the bounds that it lies between


class Possible:
    """Emits where a condition can be true, given two emitters of the same lanes: one that knows of NULLs and errors,
    and one that takes every value for what it is.

    With `spans`, a number between two bounds is compared once, by its distance from the lower one.
    """

    def __init__(self, builder: ir.IRBuilder, exact: Emitter, plain: Emitter, *, spans: bool = False) -> None:
        self._b = builder
        self._exact = exact
        self._plain = plain
        self._spans = spans

    def emit(self, expr: Expr, wanted: bool = True) -> ir.Value:
        """Lanes of bits: set at least where the condition is known and is what is wanted."""
        if isinstance(expr, Call) and expr.op is Op.NOT:
            return self.emit(expr.args[0], not wanted)
        if isinstance(expr, Call) and expr.op in (Op.AND, Op.OR):
            build = self._b.and_ if (expr.op is Op.AND) == wanted else self._b.or_
            parts = _chain(expr.op, expr)
            between, parts = spans_of(parts) if self._spans and wanted and expr.op is Op.AND else ([], parts)
            # one behind the other, not as a tree: with AVX-512 each comparison then takes in the one before
            return reduce(build, [*map(self._inside, between), *(self.emit(part, wanted) for part in parts)])
        if any(_sees_null(node) for node in walk(expr)):
            return self._exact.truth(expr) if wanted else self._exact.falsehood(expr)
        if isinstance(expr, Call) and expr.op in _ORDERS:
            a, b = (self._plain.emit(arg).lanes for arg in expr.args)
            return self._compare(expr.op, a, b, expr.args[0].type, wanted)
        lanes = self._plain.emit(expr).lanes
        return lanes if wanted else self._b.not_(lanes)

    def _inside(self, span: Span) -> ir.Value:
        """Where a number is from one bound up to another; perhaps also where the lower bound is above the other."""
        b = self._b
        number, low, high = (self._plain.emit(expr).lanes for expr in span)
        # unsigned: the distance of a number below the lower bound is larger than that of any inside
        return b.icmp_unsigned("<=", b.sub(number, low), b.sub(high, low))

    def _compare(self, op: Op, a: ir.Value, b: ir.Value, type_: Type, wanted: bool) -> ir.Value:
        build = self._b
        if op is Op.EQ:
            sign = "==" if wanted else "!="
        elif not wanted:
            a, b, sign = b, a, "<=" if op is Op.LT else "<"
        else:
            sign = "<" if op is Op.LT else "<="
        if type_.is_floating:
            return build.fcmp_unordered(sign, a, b)  # true of a NaN
        if type_.kind is Kind.BOOLEAN:
            return build.icmp_unsigned(sign, a, b)
        return build.icmp_signed(sign, a, b)


def _chain(op: Op, expr: Expr) -> list[Expr]:
    """The parts of a tree of ANDs, or of ORs."""
    if isinstance(expr, Call) and expr.op is op:
        return [part for arg in expr.args for part in _chain(op, arg)]
    return [expr]


def spans_of(parts: Sequence[Expr]) -> tuple[list[Span], list[Expr]]:
    """Of the parts of an AND, the integers that lie between two bounds, and the parts that say nothing of these."""
    left = list(parts)
    spans: list[Span] = []
    for below in [part for part in parts if _bounds(part)]:
        above = next((part for part in left if _bounds(part) and part.args[0] == below.args[1]), None)
        if above is None or below is above or not any(part is below for part in left):
            continue
        spans.append((below.args[1], below.args[0], above.args[1]))
        left = [part for part in left if part is not below and part is not above]
    return spans, left


def _bounds(part: Expr) -> TypeGuard[Call]:
    """Whether a part says which of two integers is the lower."""
    if not isinstance(part, Call) or part.op not in (Op.LT, Op.LE) or any(map(_sees_null, walk(part))):
        return False
    return part.args[0].type.kind in _INTEGERS


def _sees_null(node: Expr) -> bool:
    """Whether a NULL under it does not make it NULL, or it is one."""
    if isinstance(node, Literal):
        return node.value is None
    return isinstance(node, Call) and node.op in _SEES_NULL


def is_exact(shape: Expr, inputs: tuple[tuple[Slot, ...], ...], nullable: bool, *, spans: bool = False) -> bool:
    """Whether the condition is true wherever it can be: then there is nothing to reject."""
    if nullable or any(slot.may_fail for own in inputs for slot in own):
        return False
    if spans and any(isinstance(node, Call) and spans_of(_chain(Op.AND, node))[0] for node in walk(shape)):
        return False
    return all(_is_simple(node) for node in walk(shape))


def _is_simple(node: Expr) -> bool:
    if isinstance(node, Column | Literal):
        return isinstance(node, Column) or node.value is not None
    return not may_fail(node) and not any(arg.type.is_floating for arg in node.args)
