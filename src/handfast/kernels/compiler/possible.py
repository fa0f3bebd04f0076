"""Where a condition can be true: a test of few instructions for the many pairs that do not match.

It leaves out what seldom matters. A NULL or an error is taken for whatever lies under it, a NaN for a number that
fulfils any comparison. So the test never rejects a pair for which the condition is true, and the few others that pass
are rejected by the condition itself.

Why none is lost: where a comparison is known, it is what its arguments say, and so are NOT, AND and OR of what is
known. What looks at NULLs itself (IS NULL, <=>, COALESCE, CASE and the like) is emitted as it is.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from handfast.kernels.compiler.codegen import Emitter
from handfast.kernels.compiler.program import Slot, may_fail
from handfast.spec.expression import Call, Column, Expr, Literal, Op, walk
from handfast.spec.types import Kind, Type

_SEES_NULL = frozenset({Op.SAME, Op.IS_NULL, Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST})
_ORDERS = frozenset({Op.EQ, Op.LT, Op.LE})


class Possible:
    """Emits where a condition can be true, given two emitters of the same lanes: one that knows of NULLs and errors,
    and one that takes every value for what it is.
    """

    def __init__(self, builder: ir.IRBuilder, exact: Emitter, plain: Emitter) -> None:
        self._b = builder
        self._exact = exact
        self._plain = plain

    def emit(self, expr: Expr, wanted: bool = True) -> ir.Value:
        """Lanes of bits: set at least where the condition is known and is what is wanted."""
        if isinstance(expr, Call) and expr.op is Op.NOT:
            return self.emit(expr.args[0], not wanted)
        if isinstance(expr, Call) and expr.op in (Op.AND, Op.OR):
            build = self._b.and_ if (expr.op is Op.AND) == wanted else self._b.or_
            # one behind the other, not as a tree: with AVX-512 each comparison then takes in the one before
            return reduce(build, (self.emit(part, wanted) for part in _chain(expr.op, expr)))
        if any(_sees_null(node) for node in walk(expr)):
            return self._exact.truth(expr) if wanted else self._exact.falsehood(expr)
        if isinstance(expr, Call) and expr.op in _ORDERS:
            a, b = (self._plain.emit(arg).lanes for arg in expr.args)
            return self._compare(expr.op, a, b, expr.args[0].type, wanted)
        lanes = self._plain.emit(expr).lanes
        return lanes if wanted else self._b.not_(lanes)

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


def _sees_null(node: Expr) -> bool:
    """Whether a NULL under it does not make it NULL, or it is one."""
    if isinstance(node, Literal):
        return node.value is None
    return isinstance(node, Call) and node.op in _SEES_NULL


def is_exact(shape: Expr, inputs: tuple[tuple[Slot, ...], ...], nullable: bool) -> bool:
    """Whether the condition is true wherever it can be: then there is nothing to reject."""
    if nullable or any(slot.may_fail for own in inputs for slot in own):
        return False
    return all(_is_simple(node) for node in walk(shape))


def _is_simple(node: Expr) -> bool:
    if isinstance(node, Column | Literal):
        return isinstance(node, Column) or node.value is not None
    return not may_fail(node) and not any(arg.type.is_floating for arg in node.args)
