"""Typed trees to LLVM vectors: values with their NULLs and errors, as Spark's ANSI mode has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llvmlite import ir

from handfast.errors import InternalError
from handfast.spec.expression import Column, Expr, Literal, Op
from handfast.spec.types import Kind, Type

I1, I8, I32, I64, I128 = (ir.IntType(bits) for bits in (1, 8, 32, 64, 128))
PTR = ir.PointerType()
LITERAL_BYTES = 16  # room for the widest literal, a decimal

# how a column lies in memory, and an expression in registers
_ELEMENT: dict[Kind, ir.Type] = {
    Kind.BOOLEAN: I8,
    Kind.INT8: I8,
    Kind.INT16: ir.IntType(16),
    Kind.INT32: I32,
    Kind.INT64: I64,
    Kind.FLOAT: ir.FloatType(),
    Kind.DOUBLE: ir.DoubleType(),
    Kind.DECIMAL: I128,
    Kind.STRING: I64,
    Kind.DATE: I32,
    Kind.TIMESTAMP: I64,
    Kind.TIMESTAMP_NTZ: I64,
    Kind.INTERVAL: I64,
    Kind.NULL: I8,  # a NULL that nothing gives a type: NULL = NULL
}
NULL_STATUS, ERROR_STATUS = 1, 2


def element(type_: Type) -> ir.Type:
    """The LLVM type of one value of a column."""
    return _ELEMENT[type_.kind]


@dataclass(frozen=True, slots=True)
class Value:
    """Lanes of a value; `null` and `error` are lanes of bits, or None where there can be none."""

    lanes: ir.Value
    null: ir.Value | None = None
    error: ir.Value | None = None


class Emitter:
    """Emits a typed tree over `width` lanes into a builder."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        width: int,
        columns: Mapping[Column, Value],
        literals: Callable[[Literal], ir.Value],
    ) -> None:
        self._b = builder
        self._width = width
        self._columns = columns
        self._literals = literals

    def truth(self, expr: Expr) -> ir.Value:
        """Lanes of bits: where the condition is true, neither NULL nor an error."""
        return self._is_true(self.emit(expr))

    def emit(self, expr: Expr) -> Value:
        """The lanes of any expression."""
        if isinstance(expr, Column):
            return self._columns[expr]
        if isinstance(expr, Literal):
            return self._literal(expr)
        op = expr.op
        if op in (Op.AND, Op.OR):
            return self._lazy(op, self.emit(expr.args[0]), self.emit(expr.args[1]))
        args = [self.emit(arg) for arg in expr.args]
        if op is Op.NOT:
            return Value(self._b.not_(args[0].lanes), args[0].null, args[0].error)
        if op is Op.IS_NULL:
            return Value(args[0].null or self._bits(False), None, args[0].error)
        if op is Op.CAST:
            return Value(self._cast(args[0].lanes, expr.args[0].type, expr.type), args[0].null, args[0].error)
        null = self._either(*(arg.null for arg in args))
        error = self._either(*(arg.error for arg in args))
        if op in (Op.EQ, Op.LT, Op.LE):
            return Value(self._compare(op, args[0].lanes, args[1].lanes, expr.args[0].type), null, error)
        if op is Op.SAME:
            return self._same(args[0], args[1], expr.args[0].type, error)
        lanes, failed = self._arithmetic(op, [arg.lanes for arg in args], expr.type)
        if failed is not None and null is not None:
            failed = self._b.and_(failed, self._b.not_(null))  # NULL + anything is NULL, never an error
        return Value(lanes, null, self._either(error, failed))

    # -- logic -----------------------------------------------------------------------------------

    def _lazy(self, op: Op, a: Value, b: Value) -> Value:
        """AND and OR from left to right: the right side's error counts only where the left side decides nothing."""
        build = self._b.and_ if op is Op.AND else self._b.or_
        if a.null is None and b.null is None and a.error is None and b.error is None:
            return Value(build(a.lanes, b.lanes))
        true_a, true_b, false_a, false_b = self._is_true(a), self._is_true(b), self._is_false(a), self._is_false(b)
        decided = false_a if op is Op.AND else true_a
        late_error = self._b.and_(b.error, self._b.not_(decided)) if b.error is not None else None
        error = self._either(a.error, late_error)
        if op is Op.AND:
            true, false = self._b.and_(true_a, true_b), self._b.or_(false_a, false_b)
        else:
            true, false = self._b.or_(true_a, true_b), self._b.and_(false_a, false_b)
        null = self._b.not_(self._b.or_(true, false))
        if error is not None:
            null = self._b.and_(null, self._b.not_(error))
        return Value(true, null, error)

    def _is_true(self, value: Value) -> ir.Value:
        return self._known(value, value.lanes)

    def _is_false(self, value: Value) -> ir.Value:
        return self._known(value, self._b.not_(value.lanes))

    def _known(self, value: Value, lanes: ir.Value) -> ir.Value:
        unknown = self._either(value.null, value.error)
        return lanes if unknown is None else self._b.and_(lanes, self._b.not_(unknown))

    def _same(self, a: Value, b: Value, type_: Type, error: ir.Value | None) -> Value:
        equal = self._compare(Op.EQ, a.lanes, b.lanes, type_)
        unknown = self._either(a.null, b.null)
        if unknown is None:
            return Value(equal, None, error)
        both = self._b.and_(a.null or self._bits(False), b.null or self._bits(False))
        return Value(self._b.or_(self._b.and_(equal, self._b.not_(unknown)), both), None, error)

    # -- comparison ------------------------------------------------------------------------------

    def _compare(self, op: Op, a: ir.Value, b: ir.Value, type_: Type) -> ir.Value:
        build = self._b
        sign = {Op.EQ: "==", Op.LT: "<", Op.LE: "<="}[op]
        if not type_.is_floating:
            if type_.kind is Kind.BOOLEAN:
                return build.icmp_unsigned(sign, a, b)
            return build.icmp_signed(sign, a, b)
        # NaN equals itself and is greater than everything else
        if op is Op.EQ:
            both_nan = build.and_(build.fcmp_unordered("uno", a, a), build.fcmp_unordered("uno", b, b))
            return build.or_(build.fcmp_ordered("==", a, b), both_nan)
        if op is Op.LT:
            return build.and_(build.fcmp_unordered("<", a, b), build.fcmp_ordered("ord", a, a))
        return build.or_(build.fcmp_ordered("<=", a, b), build.fcmp_unordered("uno", b, b))

    # -- arithmetic ------------------------------------------------------------------------------

    def _arithmetic(self, op: Op, args: list[ir.Value], type_: Type) -> tuple[ir.Value, ir.Value | None]:
        """The lanes of the result, and of the failures where there can be any."""
        if type_.is_floating:
            return self._floating(op, args)
        if type_.kind is Kind.DECIMAL:
            return self._decimal(op, args), None
        return self._integer(op, args)

    def _floating(self, op: Op, args: list[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
        build = self._b
        if op is Op.NEG:
            return build.fneg(args[0]), None
        if op is Op.ABS:
            return self._intrinsic("llvm.fabs", args), None
        simple = {Op.ADD: build.fadd, Op.SUB: build.fsub, Op.MUL: build.fmul, Op.DIV: build.fdiv, Op.MOD: build.frem}
        fails = None
        if op in (Op.DIV, Op.MOD):
            fails = build.fcmp_ordered("==", args[1], self._constant(args[1].type, 0.0))
        return simple[op](*args), fails

    def _decimal(self, op: Op, args: list[ir.Value]) -> ir.Value:
        """Exact: the result's type has room for every digit."""
        build = self._b
        if op in (Op.NEG, Op.ABS):
            negated = build.sub(self._constant(args[0].type, 0), args[0])
            if op is Op.NEG:
                return negated
            return build.select(build.icmp_signed("<", args[0], self._constant(args[0].type, 0)), negated, args[0])
        return {Op.ADD: build.add, Op.SUB: build.sub, Op.MUL: build.mul}[op](*args)

    def _integer(self, op: Op, args: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
        build, lanes = self._b, args[0].type
        zero = self._constant(lanes, 0)
        if op in (Op.NEG, Op.ABS):
            least = self._constant(lanes, -(1 << (lanes.element.width - 1)))
            negated = build.sub(zero, args[0])
            result = negated if op is Op.NEG else build.select(build.icmp_signed("<", args[0], zero), negated, args[0])
            return result, build.icmp_signed("==", args[0], least)
        if op is Op.MOD:
            fails = build.icmp_signed("==", args[1], zero)
            # x % -1 is x % 1 = 0, and the smallest integer % -1 would trap
            minus_one = build.icmp_signed("==", args[1], self._constant(lanes, -1))
            divisor = build.select(build.or_(fails, minus_one), self._constant(lanes, 1), args[1])
            return build.srem(args[0], divisor), fails
        name = {
            Op.ADD: "llvm.sadd.with.overflow",
            Op.SUB: "llvm.ssub.with.overflow",
            Op.MUL: "llvm.smul.with.overflow",
        }[op]
        pair = self._intrinsic(name, args, returns=ir.LiteralStructType([lanes, ir.VectorType(I1, self._width)]))
        return build.extract_value(pair, 0), build.extract_value(pair, 1)

    def _cast(self, lanes: ir.Value, source: Type, to: Type) -> ir.Value:
        build, target = self._b, ir.VectorType(element(to), self._width)
        if source.kind is Kind.DECIMAL and to.kind is Kind.DOUBLE:
            # at most 15 digits (the binder sees to it): one correctly rounded division of exact doubles
            narrow = build.trunc(lanes, ir.VectorType(I64, self._width))
            return build.fdiv(build.sitofp(narrow, target), self._constant(target, float(10**source.scale)))
        if to.kind is Kind.DECIMAL:
            wide = lanes if source.kind is Kind.DECIMAL else build.sext(lanes, target)
            scale = 10 ** (to.scale - source.scale)
            return wide if scale == 1 else build.mul(wide, self._constant(target, scale))
        if source.is_integer and to.is_integer:
            return build.sext(lanes, target)
        if source.is_integer and to.is_floating:
            return build.sitofp(lanes, target)
        if source.kind is Kind.FLOAT and to.kind is Kind.DOUBLE:
            return build.fpext(lanes, target)
        if source.kind is Kind.DOUBLE and to.kind is Kind.FLOAT:
            return build.fptrunc(lanes, target)
        raise InternalError(f"No code for a cast from {source} to {to}")

    # -- pieces ----------------------------------------------------------------------------------

    def _literal(self, literal: Literal) -> Value:
        kind = literal.type.kind
        if literal.value is None:
            zero = I1 if kind is Kind.BOOLEAN else element(literal.type)
            return Value(ir.Constant(ir.VectorType(zero, self._width), None), self._bits(True))
        scalar = self._literals(literal)
        scalar = self._b.trunc(scalar, I1) if kind is Kind.BOOLEAN else scalar
        return Value(splat(self._b, scalar, self._width))

    def _either(self, *bits: ir.Value | None) -> ir.Value | None:
        known = [b for b in bits if b is not None]
        if not known:
            return None
        result = known[0]
        for other in known[1:]:
            result = self._b.or_(result, other)
        return result

    def _bits(self, value: bool) -> ir.Value:
        return ir.Constant(ir.VectorType(I1, self._width), [int(value)] * self._width)

    def _constant(self, lanes: ir.VectorType, value: float | int) -> ir.Value:
        return ir.Constant(lanes, [value] * self._width)

    def _intrinsic(self, name: str, args: list[ir.Value], returns: ir.Type | None = None) -> ir.Value:
        lanes = args[0].type
        suffix = {"float": "f32", "double": "f64"}.get(str(lanes.element), str(lanes.element))
        return call_intrinsic(self._b, f"{name}.v{self._width}{suffix}", args, returns or lanes)


def splat(builder: ir.IRBuilder, scalar: ir.Value, width: int) -> ir.Value:
    """The scalar in every lane."""
    lanes = ir.VectorType(scalar.type, width)
    first = builder.insert_element(ir.Constant(lanes, ir.Undefined), scalar, ir.Constant(I32, 0))
    pattern = ir.Constant(ir.VectorType(I32, width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), pattern)


def call_intrinsic(builder: ir.IRBuilder, name: str, args: list[ir.Value], returns: ir.Type) -> ir.Value:
    """Call an LLVM intrinsic by its full name."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(returns, [arg.type for arg in args]), name)
    return builder.call(function, args)
