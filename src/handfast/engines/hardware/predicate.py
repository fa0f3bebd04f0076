"""The predicate as a circuit: the spec's typed tree as combinational logic, with SQL's NULL and ANSI's refusals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from amaranth import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib.wiring import Component, In, Out, Signature

from handfast.engines.hardware.fits import bounds, check_fits, column_widths, width_of
from handfast.errors import InternalError
from handfast.spec.expression import Call, Column, Expr, Literal, Op
from handfast.spec.types import DATE, Kind, Type

Inputs = Mapping[Column, tuple[Value, Value]]  # of every column its word, and whether it is NULL
_MICROSECONDS_OF_A_DAY = 86_400_000_000


def predicate(m: Module, tree: Expr, inputs: Inputs, streams: Sequence[str] = ("r", "s")) -> tuple[Value, Value]:
    """Add the logic of a tree to a module; return its value, and whether it is NULL (the value is any then).

    A pair matches iff `value & ~null`. A word of `inputs` is read as two's complement; it may be narrower than the
    column's type where all values fit. What Spark's ANSI mode refuses for a pair makes the whole tree NULL. `streams`
    has their names for the error that is raised where the tree does not fit.
    """
    check_fits(tree, streams)
    term = _Circuit(m, inputs).of(tree)
    return term.value, _any(term.null, term.error)


class Predicate(Component):
    """The circuit of one tree, by itself: combinational, so k comparisons per cycle are k of these [000 A.2].

    Ports: `value_<stream>_<column>` and `null_<stream>_<column>` for every column read (`inputs` has them by column);
    `value` and `null` go out.

    Args:
        tree: The predicate, or any other tree.
        streams: The names of its streams.
        widths: The bits of a column's word, where they are fewer than its type has.
    """

    def __init__(
        self, tree: Expr, streams: Sequence[str] = ("r", "s"), *, widths: Mapping[Column, int] | None = None
    ) -> None:
        check_fits(tree, streams)
        self.tree = tree
        self.streams = tuple(streams)
        self.widths = {column: (widths or {}).get(column, width) for column, width in column_widths(tree).items()}
        names = _port_names(list(self.widths), self.streams)
        ports = {"value": Out(_shape(tree.type, width_of(tree.type))), "null": Out(1)}
        for column, name in names.items():
            ports[f"value_{name}"] = In(_shape(column.type, self.widths[column]))
            ports[f"null_{name}"] = In(1)
        super().__init__(Signature(ports))
        self.inputs: Inputs = {
            column: (getattr(self, f"value_{name}"), getattr(self, f"null_{name}")) for column, name in names.items()
        }

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        value, null = predicate(m, self.tree, self.inputs, self.streams)
        m.d.comb += [self.value.eq(value), self.null.eq(null)]
        return m


def _port_names(columns: Sequence[Column], streams: Sequence[str]) -> dict[Column, str]:
    """A name of letters, digits and underscores for every column, each another one."""
    names: dict[Column, str] = {}
    for column in columns:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", f"{streams[column.stream]}_{column.name}")
        name, count = plain, 1
        while name in names.values():
            count += 1
            name = f"{plain}_{count}"
        names[column] = name
    return names


def _shape(type_: Type, width: int) -> Shape:
    return unsigned(1) if type_.kind is Kind.BOOLEAN else signed(width)


@dataclass(frozen=True, slots=True, eq=False)
class _Term:
    """A value in the circuit. Where `null` is set, `value` means nothing; where `error` is, neither means anything."""

    value: Value
    low: int  # the value lies between these two: it is as wide as they need, and no check is made in vain
    high: int
    null: Value = field(default_factory=lambda: Const(0, 1))
    error: Value = field(default_factory=lambda: Const(0, 1))  # Spark's ANSI mode refuses the pair

    @property
    def is_true(self) -> Value:
        return _all(self.value, _not(self.null), _not(self.error))

    @property
    def is_false(self) -> Value:
        return _all(_not(self.value), _not(self.null), _not(self.error))


class _Circuit:
    """Makes the terms of a tree; a part that stands in it twice is made once."""

    def __init__(self, m: Module, inputs: Inputs) -> None:
        self._m = m
        self._inputs = inputs
        self._made: dict[Expr, _Term] = {}

    def of(self, expr: Expr) -> _Term:
        """The term of any node."""
        term = self._made.get(expr)
        if term is None:
            term = self._made[expr] = self._make(expr)
        return term

    def _make(self, expr: Expr) -> _Term:
        if isinstance(expr, Column):
            return self._column(expr)
        if isinstance(expr, Literal):
            return _constant(expr)
        name = expr.op.name.lower()
        term = _RULES[expr.op](self, expr, [self.of(arg) for arg in expr.args])
        # a wire of its own for each: a simulator computes an expression again for every use of it
        return replace(
            term,
            value=self._wire(term.value, name),
            null=self._wire(term.null, f"{name}_null"),
            error=self._wire(term.error, f"{name}_error"),
        )

    def _wire(self, value: Value, name: str, shape: Shape | None = None) -> Value:
        shape = value.shape() if shape is None else shape
        if isinstance(value, Const) or (isinstance(value, Signal) and value.shape() == shape):
            return value
        wire = Signal(shape, name=name)
        self._m.d.comb += wire.eq(value)
        return wire

    def _column(self, column: Column) -> _Term:
        if column.type.kind is Kind.NULL:
            return _constant(Literal(None, column.type))
        word, null = self._inputs[column]
        low, high = bounds(column.type)
        if not 0 < len(word) <= width_of(column.type):
            raise InternalError(
                f"Column {column.name!r} is read from {len(word)} bits; {column.type} has {width_of(column.type)}"
            )
        if column.type.kind is Kind.BOOLEAN:
            return _Term(word.as_unsigned(), low, high, null)
        half = 1 << (len(word) - 1)
        return _Term(word.as_signed(), max(low, -half), min(high, half - 1), null)

    # -- logic -----------------------------------------------------------------------------------

    def _and(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        return self._lazy(_all(a.is_true, b.is_true), _any(a.is_false, b.is_false), a, b, decided=a.is_false)

    def _or(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        return self._lazy(_any(a.is_true, b.is_true), _all(a.is_false, b.is_false), a, b, decided=a.is_true)

    def _lazy(self, true: Value, false: Value, a: _Term, b: _Term, *, decided: Value) -> _Term:
        """AND and OR go from left to right: an error of the right side counts only where the left decides nothing."""
        error = _any(a.error, _all(b.error, _not(decided)))
        return _Term(true, 0, 1, _not(_any(true, false)), error)

    def _negation(self, call: Call, args: Sequence[_Term]) -> _Term:
        return replace(args[0], value=_not(args[0].value))

    def _is_null(self, call: Call, args: Sequence[_Term]) -> _Term:
        return _Term(args[0].null, 0, 1, error=args[0].error)

    def _compare(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        compare: Callable[[Value, Value], Value] = _COMPARE[call.op]
        return _Term(compare(a.value, b.value), 0, 1, _any(a.null, b.null), _any(a.error, b.error))

    def _same(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        equal = _all(a.value == b.value, _not(_any(a.null, b.null)))
        return _Term(_any(equal, _all(a.null, b.null)), 0, 1, error=_any(a.error, b.error))

    def _in(self, call: Call, args: Sequence[_Term]) -> _Term:
        item, *members = args
        equal = [item.value == member.value for member in members if item.low <= member.low <= item.high]
        return _Term(_any(*equal), 0, 1, item.null, item.error)

    # -- arithmetic ------------------------------------------------------------------------------

    def _sum(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        return self._result(call, args, a.value + b.value, a.low + b.low, a.high + b.high)

    def _difference(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        return self._result(call, args, a.value - b.value, a.low - b.high, a.high - b.low)

    def _product(self, call: Call, args: Sequence[_Term]) -> _Term:
        a, b = args
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return self._result(call, args, a.value * b.value, min(corners), max(corners))

    def _negative(self, call: Call, args: Sequence[_Term]) -> _Term:
        (a,) = args
        return self._result(call, args, -a.value, -a.high, -a.low)

    def _absolute(self, call: Call, args: Sequence[_Term]) -> _Term:
        (a,) = args
        low = max(a.low, -a.high, 0)
        return self._result(call, args, Mux(a.value < 0, -a.value, a.value), low, max(-a.low, a.high))

    def _cast(self, call: Call, args: Sequence[_Term]) -> _Term:
        (a,), source, to = args, call.args[0].type, call.type
        # to fewer digits behind the point there is no cast: that does not fit
        unit = _MICROSECONDS_OF_A_DAY if source.kind is Kind.DATE else 10 ** (to.scale - source.scale)
        if source.kind is Kind.NULL or source == to or unit == 1:
            return self._result(call, args, a.value, a.low, a.high)
        return self._result(call, args, a.value * unit, a.low * unit, a.high * unit)

    def _result(self, call: Call, args: Sequence[_Term], value: Value, low: int, high: int) -> _Term:
        """The exact result of arithmetic, which lies between `low` and `high`, as one of the call's type."""
        null, error = _any(*(arg.null for arg in args)), _any(*(arg.error for arg in args))
        exact = self._exact(value, low, high, f"{call.op.name.lower()}_exact")
        least, most = bounds(call.type)
        if least <= low and high <= most:
            return _Term(exact, low, high, null, error)
        if call.type == DATE or call.op is Op.DATE_DIFF:  # days overflow silently, as Java's integers do
            return _Term(exact[: width_of(call.type)].as_signed(), least, most, null, error)
        beyond = _any(*[exact < least] * (low < least), *[exact > most] * (high > most))
        low, high = max(low, least), min(high, most)
        if low > high:  # refused for every pair: any value will do
            return _Term(Const(0), 0, 0, null, _any(error, _not(null)))
        # NULL + anything is NULL, never refused
        failed = _all(beyond, _not(null))
        return _Term(self._exact(exact, low, high, call.op.name.lower()), low, high, null, _any(error, failed))

    def _exact(self, value: Value, low: int, high: int, name: str) -> Value:
        """The value as wide as its bounds need."""
        if low == high:
            return Const(low)
        # no Shape.cast(range(…)): Python's ranges end at 64 bits
        shape = signed(max(~low, high).bit_length() + 1) if low < 0 else unsigned(high.bit_length())
        return self._wire(value, name, shape)

    # -- choices ---------------------------------------------------------------------------------

    def _case(self, call: Call, args: Sequence[_Term]) -> _Term:
        *branches, chosen = args
        for condition, value in zip(branches[-2::-2], branches[::-2], strict=True):
            chosen = _select(condition.is_true, value, chosen)
            # a condition that fails is looked at only where none before it holds: those are still to come
            chosen = replace(chosen, error=_any(chosen.error, condition.error))
        return chosen

    def _coalesce(self, call: Call, args: Sequence[_Term]) -> _Term:
        *firsts, chosen = args
        for value in reversed(firsts):
            chosen = _select(_any(_not(value.null), value.error), value, chosen)
        return chosen

    def _extreme(self, call: Call, args: Sequence[_Term]) -> _Term:
        """The greatest or the least of those that are not NULL; all are computed, so an error of any of them counts."""
        chosen = args[0]
        for term in args[1:]:
            is_better = term.value > chosen.value if call.op is Op.GREATEST else term.value < chosen.value
            chosen = _select(_any(chosen.null, _all(is_better, _not(term.null))), term, chosen)
            chosen = replace(
                chosen,
                value=self._wire(chosen.value, "extreme"),
                null=self._wire(chosen.null, "extreme_null"),
            )
        return replace(chosen, error=_any(*(arg.error for arg in args)))


_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {Op.EQ: operator.eq, Op.LT: operator.lt, Op.LE: operator.le}
_RULES: dict[Op, Callable[[_Circuit, Call, Sequence[_Term]], _Term]] = {
    Op.AND: _Circuit._and,
    Op.OR: _Circuit._or,
    Op.NOT: _Circuit._negation,
    Op.IS_NULL: _Circuit._is_null,
    Op.EQ: _Circuit._compare,
    Op.LT: _Circuit._compare,
    Op.LE: _Circuit._compare,
    Op.SAME: _Circuit._same,
    Op.IN: _Circuit._in,
    Op.ADD: _Circuit._sum,
    Op.SUB: _Circuit._difference,
    Op.DATE_DIFF: _Circuit._difference,
    Op.MUL: _Circuit._product,
    Op.NEG: _Circuit._negative,
    Op.ABS: _Circuit._absolute,
    Op.CAST: _Circuit._cast,
    Op.CASE: _Circuit._case,
    Op.COALESCE: _Circuit._coalesce,
    Op.GREATEST: _Circuit._extreme,
    Op.LEAST: _Circuit._extreme,
}


def _constant(literal: Literal) -> _Term:
    if literal.value is None:
        return _Term(Const(0), 0, 0, null=Const(1))
    value = int(literal.value)
    return _Term(Const(value), value, value)


def _select(where: Value, a: _Term, b: _Term) -> _Term:
    """`a` where the bit is set, else `b`."""
    if isinstance(where, Const):
        return a if where.value else b
    return _Term(
        Mux(where, a.value, b.value),
        min(a.low, b.low),
        max(a.high, b.high),
        _any(_all(where, a.null), _all(_not(where), b.null)),
        _any(_all(where, a.error), _all(_not(where), b.error)),
    )


# --- bits: what is constant leaves no logic behind --------------------------------------------------------------------


def _any(*bits: Value) -> Value:
    """Whether any of the bits is set."""
    if any(_is(bit, 1) for bit in bits):
        return Const(1, 1)
    open_ = [bit for bit in bits if not _is(bit, 0)]
    return Const(0, 1) if not open_ else open_[0] if len(open_) == 1 else Cat(*open_).any()


def _all(*bits: Value) -> Value:
    """Whether all of the bits are set."""
    if any(_is(bit, 0) for bit in bits):
        return Const(0, 1)
    open_ = [bit for bit in bits if not _is(bit, 1)]
    return Const(1, 1) if not open_ else open_[0] if len(open_) == 1 else Cat(*open_).all()


def _not(bit: Value) -> Value:
    return Const(1 - bit.value, 1) if isinstance(bit, Const) else ~bit


def _is(bit: Value, value: int) -> bool:
    return isinstance(bit, Const) and bit.value == value
