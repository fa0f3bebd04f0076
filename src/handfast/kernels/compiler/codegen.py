"""Typed trees as LLVM vectors: values with their NULLs and errors, as in Spark's ANSI mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llvmlite import ir

from handfast.errors import InternalError
from handfast.kernels.compiler.calendar import Calendar
from handfast.spec.expression import Column, Expr, Literal, Op
from handfast.spec.types import Kind, Type, as_decimal

I1, I8, I32, I64, I128, I256 = (ir.IntType(bits) for bits in (1, 8, 32, 64, 128, 256))
PTR = ir.PointerType()
LITERAL_BYTES = 32  # room for the widest literal, a decimal

# how a column lies in memory, and an expression in registers
_ELEMENT: dict[Kind, ir.Type] = {
    Kind.BOOLEAN: I8,
    Kind.INT8: I8,
    Kind.INT16: ir.IntType(16),
    Kind.INT32: I32,
    Kind.INT64: I64,
    Kind.FLOAT: ir.FloatType(),
    Kind.DOUBLE: ir.DoubleType(),
    Kind.STRING: I64,
    Kind.BINARY: I64,
    Kind.DATE: I32,
    Kind.TIMESTAMP: I64,
    Kind.TIMESTAMP_NTZ: I64,
    Kind.INTERVAL: I64,
    Kind.NULL: I8,  # a NULL that nothing gives a type: NULL = NULL
}
NULL_STATUS, ERROR_STATUS = 1, 2
_FUNCTIONS = frozenset(
    {
        *(Op.SQRT, Op.SIGN, Op.FLOOR, Op.CEIL, Op.INT_DIV, Op.DATE_DIFF, Op.DATE_TRUNC, Op.YEAR, Op.QUARTER),
        *(Op.MONTH, Op.DAY, Op.DAY_OF_WEEK, Op.HOUR, Op.MINUTE, Op.SECOND, Op.FLOAT_BELOW, Op.FLOAT_ABOVE, Op.CODE),
    }
)


def element(type_: Type) -> ir.Type:
    """The LLVM type of one value of a column."""
    return _decimal_element(type_.precision) if type_.kind is Kind.DECIMAL else _ELEMENT[type_.kind]


def _decimal_element(digits: int) -> ir.IntType:
    return I64 if digits <= 18 else I128 if digits <= 38 else I256


@dataclass(frozen=True, slots=True)
class Value:
    """Lanes of a value; `null` and `error` are lanes of bits, or None where there can be none."""

    lanes: ir.Value
    null: ir.Value | None = None
    error: ir.Value | None = None


class Emitter:
    """Emits a typed tree over `width` lanes into a builder.

    Where it is `plain`, every value is taken for what it is: nothing is NULL and nothing fails.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        width: int,
        columns: Mapping[Column, Value],
        literals: Callable[[Literal], ir.Value],
        *,
        plain: bool = False,
    ) -> None:
        self._b = builder
        self._plain = plain
        self._width = width
        self._columns = columns
        self._literals = literals

    def truth(self, expr: Expr) -> ir.Value:
        """Lanes of bits: where the condition is true, neither NULL nor an error."""
        return self._is_true(self.emit(expr))

    def falsehood(self, expr: Expr) -> ir.Value:
        """Lanes of bits: where the condition is false, neither NULL nor an error."""
        return self._is_false(self.emit(expr))

    def emit(self, expr: Expr) -> Value:
        """The lanes of any expression."""
        value = self._emit(expr)
        return Value(value.lanes) if self._plain else value

    def _emit(self, expr: Expr) -> Value:
        if isinstance(expr, Column):
            return self._columns[expr]
        if isinstance(expr, Literal):
            return self._literal(expr)
        op = expr.op
        if op in (Op.AND, Op.OR):
            return self._lazy(op, self.emit(expr.args[0]), self.emit(expr.args[1]))
        args = [self.emit(arg) for arg in expr.args]
        if op in (Op.CASE, Op.COALESCE, Op.GREATEST, Op.LEAST):
            return self._choice(op, args, expr.type)
        if op is Op.NOT:
            return Value(self._b.not_(args[0].lanes), args[0].null, args[0].error)
        if op is Op.IS_NULL:
            return Value(args[0].null or self._bits(False), None, args[0].error)
        null = self._either(*(arg.null for arg in args))
        error = self._either(*(arg.error for arg in args))
        if op in (Op.EQ, Op.LT, Op.LE):
            return Value(self._compare(op, args[0].lanes, args[1].lanes, expr.args[0].type), null, error)
        if op is Op.SAME:
            return self._same(args[0], args[1], expr.args[0].type, error)
        if op is Op.CAST:
            lanes, failed = self._cast(args[0].lanes, expr.args[0].type, expr.type)
        elif op in _FUNCTIONS:
            lanes, failed = self._function(op, [arg.lanes for arg in args], [arg.type for arg in expr.args])
        else:
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

    def _choice(self, op: Op, args: list[Value], type_: Type) -> Value:
        """One of several values: an error counts where its value is looked at."""
        if op is Op.CASE:
            *branches, chosen = args
            for condition, value in zip(branches[-2::-2], branches[::-2], strict=True):
                chosen = self._select(self._is_true(condition), value, chosen)
                if condition.error is not None:
                    # a condition that fails is looked at only where none before it holds: those are still to come
                    chosen = Value(chosen.lanes, chosen.null, self._either(chosen.error, condition.error))
            return chosen
        if op is Op.COALESCE:
            *firsts, chosen = args
            for value in reversed(firsts):
                if value.null is not None:
                    known = self._either(self._b.not_(value.null), value.error)
                    chosen = self._select(known, value, chosen)
                else:
                    chosen = value
            return chosen
        error = self._either(*(arg.error for arg in args))
        chosen = args[0]
        for value in args[1:]:
            pair = (chosen.lanes, value.lanes) if op is Op.GREATEST else (value.lanes, chosen.lanes)
            better = self._compare(Op.LT, *pair, type_)
            if value.null is not None:
                better = self._b.and_(better, self._b.not_(value.null))
            if chosen.null is not None:
                better = self._b.or_(better, chosen.null)
            chosen = self._select(better, Value(value.lanes, value.null), Value(chosen.lanes, chosen.null))
        return Value(chosen.lanes, chosen.null, error)

    def _select(self, where: ir.Value, a: Value, b: Value) -> Value:
        """Lane by lane `a` where the bit is set, else `b`."""

        def bits(x: ir.Value | None, y: ir.Value | None) -> ir.Value | None:
            if x is None and y is None:
                return None
            left, right = (self._bits(False) if z is None else z for z in (x, y))
            return self._b.select(where, left, right)

        return Value(self._b.select(where, a.lanes, b.lanes), bits(a.null, b.null), bits(a.error, b.error))

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
            return self._decimal(op, args, type_), None
        if type_.kind is Kind.DATE:  # days overflow silently, as Java's integers do
            return (self._b.add if op is Op.ADD else self._b.sub)(*args), None
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

    def _decimal(self, op: Op, args: list[ir.Value], type_: Type) -> ir.Value:
        """Exact: the result's type has room for every digit."""
        build = self._b
        args = [self._resized(arg, element(type_)) for arg in args]
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

    # -- functions -------------------------------------------------------------------------------

    def _function(self, op: Op, args: list[ir.Value], types: list[Type]) -> tuple[ir.Value, ir.Value | None]:
        """The lanes of a function, and of its failures where there can be any."""
        build, ints, longs = self._b, ir.VectorType(I32, self._width), ir.VectorType(I64, self._width)
        if op is Op.SQRT:
            return self._intrinsic("llvm.sqrt", args), None
        if op is Op.SIGN:
            (x,) = args
            one = self._constant(x.type, 1.0)
            is_itself = build.fcmp_unordered("ueq", x, self._constant(x.type, 0.0))  # NaN, and either zero
            return build.select(is_itself, x, self._intrinsic("llvm.copysign", [one, x])), None
        if op in (Op.FLOOR, Op.CEIL):
            return self._whole("llvm.floor" if op is Op.FLOOR else "llvm.ceil", args[0])
        if op is Op.DATE_DIFF:  # days overflow silently, as Java's integers do
            return build.sub(*args), None
        if op is Op.CODE:
            return build.trunc(args[0], ints), None
        if op in (Op.FLOAT_BELOW, Op.FLOAT_ABOVE):
            return self._float_near(op, args[0]), None
        if op is Op.INT_DIV:
            return self._int_div(*(self._resized(arg, I64) for arg in args))
        calendar = Calendar(build, longs)
        if op is Op.DATE_TRUNC:
            unit, time = args
            start = build.sub(time, calendar.floor(time, unit)[1])
            return start, build.icmp_signed(">", start, time)
        time = self._resized(args[0], I64)
        if op in (Op.HOUR, Op.MINUTE, Op.SECOND):
            return build.trunc(calendar.part_of_time(op, time), ints), None
        days = time if types[0].kind is Kind.DATE else calendar.day_of(time)
        return build.trunc(calendar.part_of_day(op, days), ints), None

    def _float_near(self, op: Op, lanes: ir.Value) -> ir.Value:
        """Doubles as the nearest floats on one side; NaN stays what it is."""
        build, floats, ints = self._b, ir.VectorType(ir.FloatType(), self._width), ir.VectorType(I32, self._width)
        near = build.fptrunc(lanes, floats)
        up = op is Op.FLOAT_ABOVE
        wrong = build.fcmp_ordered("<" if up else ">", build.fpext(near, lanes.type), lanes)
        bits = build.bitcast(near, ints)
        negative = build.icmp_signed("<", bits, self._constant(ints, 0))
        # floats of one sign are in the order of their bits
        away, back = build.add(bits, self._constant(ints, 1)), build.sub(bits, self._constant(ints, 1))
        next_one = build.select(negative, back, away) if up else build.select(negative, away, back)
        is_zero = build.fcmp_ordered("==", near, self._constant(floats, 0.0))
        least = self._constant(ints, 1 if up else -(2**31) + 1)
        next_one = build.select(is_zero, least, next_one)
        return build.select(wrong, build.bitcast(next_one, floats), near)

    def _whole(self, name: str, lanes: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A double as a bigint; NaN is 0, and what is beyond fails."""
        build, target = self._b, ir.VectorType(I64, self._width)
        beyond = build.or_(
            build.fcmp_ordered("<", lanes, self._constant(lanes.type, -(2.0**63))),
            build.fcmp_ordered(">=", lanes, self._constant(lanes.type, 2.0**63)),
        )
        whole = self._intrinsic(name, [lanes])
        return call_intrinsic(build, f"llvm.fptosi.sat.v{self._width}i64.v{self._width}f64", [whole], target), beyond

    def _int_div(self, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        build = self._b
        least, minus_one = self._constant(x.type, -(2**63)), self._constant(x.type, -1)
        overflow = build.and_(build.icmp_signed("==", x, least), build.icmp_signed("==", y, minus_one))
        fails = build.or_(build.icmp_signed("==", y, self._constant(x.type, 0)), overflow)
        return build.sdiv(x, build.select(fails, self._constant(x.type, 1), y)), fails

    # -- casts -----------------------------------------------------------------------------------

    def _cast(self, lanes: ir.Value, source: Type, to: Type) -> tuple[ir.Value, ir.Value | None]:
        """The lanes as another type, and of the failures where there can be any."""
        build, target = self._b, ir.VectorType(element(to), self._width)
        if to.kind is Kind.DECIMAL:
            return self._to_decimal(lanes, source, to)
        if source.kind is Kind.DECIMAL and to.kind is Kind.DOUBLE:
            # at most 15 digits (`is_native` sees to it): one correctly rounded division of exact doubles
            return build.fdiv(build.sitofp(lanes, target), self._constant(target, float(10**source.scale))), None
        if source.kind is Kind.DECIMAL and to.is_integer:
            return self._narrowed(self._quotient(lanes, source.scale), to)
        if source.kind is Kind.DATE and to.kind is Kind.TIMESTAMP_NTZ:
            day = self._constant(target, 86_400_000_000)
            return self._integer(Op.MUL, [build.sext(lanes, target), day])
        if source.is_timestamp and to.kind is Kind.DATE:
            return build.trunc(Calendar(build, lanes.type).day_of(lanes), target), None
        if source.is_integer and to.is_integer:
            return self._narrowed(lanes, to) if to.bits < source.bits else (build.sext(lanes, target), None)
        if source.is_integer and to.is_floating:
            return build.sitofp(lanes, target), None
        if source.is_floating and to.is_integer:
            return self._truncated(lanes, source, to)
        if source.kind is Kind.FLOAT and to.kind is Kind.DOUBLE:
            return build.fpext(lanes, target), None
        if source.kind is Kind.DOUBLE and to.kind is Kind.FLOAT:
            return build.fptrunc(lanes, target), None
        raise InternalError(f"No code for a cast from {source} to {to}")

    def _to_decimal(self, lanes: ir.Value, source: Type, to: Type) -> tuple[ir.Value, ir.Value | None]:
        """Halves are rounded away from zero; what has too many digits fails."""
        build, source = self._b, as_decimal(source)
        shift = to.scale - source.scale
        digits = max(source.precision + max(shift, 0), to.precision)
        wide = self._resized(lanes, _decimal_element(digits))
        if shift > 0:
            wide = build.mul(wide, self._constant(wide.type, 10**shift))
        elif shift < 0:
            half = self._constant(wide.type, 10**-shift // 2)
            negative = build.icmp_signed("<", wide, self._constant(wide.type, 0))
            wide = build.select(negative, build.sub(wide, half), build.add(wide, half))
            wide = self._quotient(wide, -shift)
        failed = None
        if source.precision + shift + (shift < 0) > to.precision:
            limit = 10**to.precision
            failed = build.or_(
                build.icmp_signed(">=", wide, self._constant(wide.type, limit)),
                build.icmp_signed("<=", wide, self._constant(wide.type, -limit)),
            )
        return self._resized(wide, element(to)), failed

    def _quotient(self, lanes: ir.Value, zeros: int) -> ir.Value:
        """Division by a power of ten, towards zero: no processor divides 128 bits, so it is done by hand, 32 by 32."""
        build, width = self._b, lanes.type.element.width
        if width == 64:
            return lanes if zeros == 0 else build.sdiv(lanes, self._constant(lanes.type, 10**zeros))
        negative = build.icmp_signed("<", lanes, self._constant(lanes.type, 0))
        size = build.select(negative, build.sub(self._constant(lanes.type, 0), lanes), lanes)
        words = ir.VectorType(I64, self._width)
        low, by_32 = self._constant(words, 2**32 - 1), self._constant(words, 32)
        limbs = [
            build.and_(build.trunc(build.lshr(size, self._constant(lanes.type, 32 * k)), words), low)
            for k in range(width // 32)
        ]
        while zeros:
            divisor = self._constant(words, 10 ** min(zeros, 9))
            zeros -= min(zeros, 9)
            rest = self._constant(words, 0)
            for k in reversed(range(len(limbs))):
                part = build.or_(build.shl(rest, by_32), limbs[k])
                limbs[k], rest = build.udiv(part, divisor), build.urem(part, divisor)
        quotient = self._constant(lanes.type, 0)
        for k, limb in enumerate(limbs):
            shifted = build.shl(build.zext(limb, lanes.type), self._constant(lanes.type, 32 * k))
            quotient = build.or_(quotient, shifted)
        return build.select(negative, build.sub(self._constant(lanes.type, 0), quotient), quotient)

    def _narrowed(self, lanes: ir.Value, to: Type) -> tuple[ir.Value, ir.Value | None]:
        """Integers as narrower ones; what does not fit fails."""
        build, narrow = self._b, element(to)
        if lanes.type.element.width <= narrow.width:
            return self._resized(lanes, narrow), None
        small = self._resized(lanes, narrow)
        return small, build.icmp_signed("!=", self._resized(small, lanes.type.element), lanes)

    def _truncated(self, lanes: ir.Value, source: Type, to: Type) -> tuple[ir.Value, ir.Value]:
        """Floating numbers without what is behind the point."""
        build, doubles = self._b, ir.VectorType(ir.DoubleType(), self._width)
        if source.kind is Kind.FLOAT:
            lanes = build.fpext(lanes, doubles)
        high, low = (
            self._constant(doubles, float(2 ** (to.bits - 1) - 1)),
            self._constant(doubles, -(2.0 ** (to.bits - 1))),
        )
        inside = build.and_(
            build.fcmp_ordered("<=", self._intrinsic("llvm.floor", [lanes]), high),
            build.fcmp_ordered(">=", self._intrinsic("llvm.ceil", [lanes]), low),
        )
        target = ir.VectorType(element(to), self._width)
        name = f"llvm.fptosi.sat.v{self._width}i{to.bits}.v{self._width}f64"
        return call_intrinsic(build, name, [lanes], target), build.not_(inside)

    def _resized(self, lanes: ir.Value, to: ir.IntType) -> ir.Value:
        """Integers in another width."""
        width, target = lanes.type.element.width, ir.VectorType(to, self._width)
        if width == to.width:
            return lanes
        return self._b.sext(lanes, target) if width < to.width else self._b.trunc(lanes, target)

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
