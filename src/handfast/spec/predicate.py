"""From the SQL that a user writes to a typed tree: parse, bind to the schemas, type as Spark's ANSI mode does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from struct import pack, unpack
from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from handfast.errors import SpecError
from handfast.spec.expression import Call, Column, Expr, Literal, Op, balanced, depth
from handfast.spec.schema import Schema, nearest
from handfast.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    as_decimal,
    common_type,
    decimal,
)
from handfast.spec.window import parse_duration

_COMPARE: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expression], Op] = {
    exp.Add: Op.ADD,
    exp.Sub: Op.SUB,
    exp.Mul: Op.MUL,
    exp.Div: Op.DIV,
    exp.Mod: Op.MOD,
}
_CAST_TARGETS = {
    "TINYINT": INT8,
    "SMALLINT": INT16,
    "INT": INT32,
    "BIGINT": INT64,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST = 150  # levels of a tree that every part of handfast can walk
_EXACT_DIGITS = 15  # a decimal of so many digits is one correctly rounded division away from its double


def parse(text: str) -> exp.Expression:
    """The AST of the user's predicate text, or an error that shows the line and column."""
    if not isinstance(text, str) or not text.strip():
        raise SpecError("A join needs a predicate; write it as SQL, e.g. on='r.x = s.x', or on='TRUE' for every pair")
    try:
        # Databricks' dialect is Spark's in ANSI mode: CAST is not TRY_CAST there
        statements = sqlglot.parse(text, dialect="databricks")
    except (ParseError, TokenError) as error:
        raise SpecError(_syntax_message(text, error)) from None
    except RecursionError:
        raise _too_deep() from None
    if len(statements) != 1 or statements[0] is None:
        raise SpecError(f"The predicate must be one SQL condition, not {text!r}")
    statement: exp.Expression = statements[0]  # type: ignore[assignment]
    return statement


def _syntax_message(text: str, error: ParseError | TokenError) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return f"The predicate is not valid SQL: {str(error).splitlines()[0]}"
    line, column = details[0].get("line") or 1, details[0].get("col") or 1
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    description = (details[0].get("description") or "").split(" for <class")[0].rstrip(".")
    pointer = " " * max(0, column - 1) + "^"
    return f"The predicate is not valid SQL at line {line}, column {column} ({description}):\n  {shown}\n  {pointer}"


def bind(text: str, schemas: Mapping[str, Schema]) -> Expr:
    """The typed tree of a predicate over the named streams."""
    try:
        tree = _Binder(tuple(schemas), tuple(schemas.values())).bind(parse(text))
    except RecursionError:
        raise _too_deep() from None
    if depth(tree) > _DEEPEST:
        raise _too_deep()
    tree = _cast(tree, BOOLEAN) if tree.type.kind is Kind.NULL else tree
    if tree.type != BOOLEAN:
        raise SpecError(f"The predicate must be true or false, but {text!r} is of type {tree.type}")
    return tree


def _too_deep() -> SpecError:
    return SpecError(
        f"The predicate is nested more than {_DEEPEST} deep; compute a part of it as a column of its stream"
    )


class _Binder:
    """Binds and types one AST, bottom up."""

    def __init__(self, streams: tuple[str, ...], schemas: tuple[Schema, ...]) -> None:
        self._streams = streams
        self._schemas = schemas

    def bind(self, node: exp.Expression) -> Expr:
        """The typed tree of one AST node."""
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Literal):
            return _string(node.this) if node.is_string else _number(node.this)
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this), BOOLEAN)
        if isinstance(node, exp.Null):
            return Literal(None, NULL)
        if isinstance(node, exp.And | exp.Or):
            parts = [self._condition(part) for part in _chain(node)]
            return balanced(Op.AND if isinstance(node, exp.And) else Op.OR, parts)
        if isinstance(node, exp.Not):
            return _not(self._condition(node.this))
        if type(node) in _COMPARE:
            return self._comparison(node, _COMPARE[type(node)], node.this, node.expression)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            same = Call(Op.SAME, _unify(self.bind(node.this), self.bind(node.expression), node), BOOLEAN)
            return same if isinstance(node, exp.NullSafeEQ) else _not(same)
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if type(node) in _ARITHMETIC:
            return _arithmetic(_ARITHMETIC[type(node)], self.bind(node.this), self.bind(node.expression), node)
        if isinstance(node, exp.Neg | exp.Abs):
            return self._signed(node)
        if isinstance(node, exp.Interval):
            return _interval(node)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return self._explicit_cast(node)
        return _refuse(
            node, "is not supported in a predicate; make it a column of its stream, or filter the result by it"
        )

    def _condition(self, node: exp.Expression) -> Expr:
        tree = self.bind(node)
        if tree.type.kind is Kind.NULL:
            return _cast(tree, BOOLEAN)
        if tree.type != BOOLEAN:
            _refuse(node, f"is of type {tree.type} where a condition is needed")
        return tree

    def _column(self, node: exp.Column) -> Column:
        name, qualifier = node.name, node.table
        if node.args.get("db"):
            _refuse(node, "has too many parts; write stream.column")
        if not qualifier:
            owners = [i for i, schema in enumerate(self._schemas) if schema.find(name)]
            if len(owners) != 1:
                what = "is in several streams" if owners else "is in no stream"
                _refuse(node, f"{what}; name its stream, one of {', '.join(self._streams)}")
            stream = owners[0]
        else:
            alike = [i for i, s in enumerate(self._streams) if s == qualifier or s.lower() == qualifier.lower()]
            if not alike:
                near = nearest(qualifier, self._streams)
                hint = f"; did you mean {near!r}?" if near else ""
                raise SpecError(
                    f"The predicate names a stream {qualifier!r} that the join does not have{hint} "
                    f"(it has {', '.join(self._streams)})"
                )
            stream = alike[0]
        found, type_ = self._schemas[stream].column(self._streams[stream], name)
        if type_.kind is Kind.PAYLOAD:
            _refuse(node, f"is of type {type_}, which a predicate cannot use; it can only ride along")
        return Column(stream, found, type_)

    def _comparison(self, node: exp.Expression, sign: str, left: exp.Expression, right: exp.Expression) -> Expr:
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            _refuse(node, "compares tuples; write the comparisons one by one with AND")
        a, b = _unify(self.bind(left), self.bind(right), node)
        if sign in (">", ">="):
            a, b, sign = b, a, sign.replace(">", "<")
        if sign == "<>":
            return _not(Call(Op.EQ, (a, b), BOOLEAN))
        return Call(Op(sign), (a, b), BOOLEAN)

    def _between(self, node: exp.Between) -> Expr:
        if node.args.get("symmetric"):
            _refuse(node, "is not Spark SQL; write the bounds in order, without SYMMETRIC")
        low = self._comparison(node, ">=", node.this, node.args["low"])
        high = self._comparison(node, "<=", node.this, node.args["high"])
        return Call(Op.AND, (low, high), BOOLEAN)

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") or not node.expressions:
            _refuse(node, "needs a list of values, not a query")
        item, choices = self.bind(node.this), [self.bind(choice) for choice in node.expressions]
        target = item.type
        for choice in choices:
            target = common_type(target, choice.type) or _mismatch(node, target, choice.type)
        tests = [Call(Op.EQ, (_cast(item, target), _cast(choice, target)), BOOLEAN) for choice in choices]
        return balanced(Op.OR, tests)

    def _is(self, node: exp.Is) -> Expr:
        tree = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return Call(Op.IS_NULL, (tree,), BOOLEAN)
        if isinstance(node.expression, exp.Boolean):
            truth = Literal(bool(node.expression.this), BOOLEAN)
            return Call(Op.SAME, (self._condition(node.this), truth), BOOLEAN)
        return _refuse(node, "must be IS [NOT] NULL, TRUE or FALSE")

    def _signed(self, node: exp.Neg | exp.Abs) -> Expr:
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number("-" + node.this.this)  # so that the smallest bigint can be written
        tree = self.bind(node.this)
        allowed = tree.type.is_numeric or tree.type == INTERVAL
        if not allowed:
            _refuse(node, f"needs a number, not {tree.type}")
        return Call(Op.NEG if isinstance(node, exp.Neg) else Op.ABS, (tree,), tree.type)

    def _explicit_cast(self, node: exp.Cast) -> Expr:
        target = node.to.sql(dialect="spark").upper()
        text = node.this.this if isinstance(node.this, exp.Literal) and node.this.is_string else None
        if text is not None and target in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
            return _moment(text, target, node)
        tree = self.bind(node.this)
        if target not in _CAST_TARGETS:
            _refuse(node, f"casts to {target}; a predicate can cast to {', '.join(_CAST_TARGETS)}")
        to = _CAST_TARGETS[target]
        if isinstance(tree, Literal) and tree.type.is_numeric and to.is_floating:
            return _fold_float(tree, to)
        if isinstance(tree, Literal) and isinstance(tree.value, int) and tree.type.is_integer and to.is_integer:
            half = 2 ** (to.bits - 1)
            return Literal(tree.value, to) if -half <= tree.value < half else _refuse(node, "is out of range")
        widening = tree.type.is_numeric and common_type(tree.type, to) == to
        if not widening and not (tree.type.is_numeric and to.is_floating) and tree.type != NULL:
            _refuse(node, f"would lose values of {tree.type}; only widening casts of numbers are supported")
        return _cast(tree, to)


def _chain(node: exp.Expression) -> list[exp.Expression]:
    """The parts of a chain of ANDs or ORs, in their order; such chains grow long, so no recursion."""
    parts: list[exp.Expression] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) is type(node):
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _not(tree: Expr) -> Call:
    return Call(Op.NOT, (tree,), BOOLEAN)


def _number(text: str) -> Literal:
    """A numeric literal with Spark's type: int or bigint, decimal with a point, double with an exponent."""
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    if "." in text:
        scale = len(text) - text.index(".") - 1
        unscaled = int(text.replace(".", ""))  # no Decimal: its arithmetic rounds to a context's digits
        return Literal(unscaled, decimal(max(len(str(abs(unscaled))), scale), scale))
    number = int(text)
    if -(2**31) <= number < 2**31:
        return Literal(number, INT32)
    if -(2**63) <= number < 2**63:
        return Literal(number, INT64)
    return Literal(number, decimal(len(str(abs(number))), 0))


def _string(text: str) -> Literal:
    return Literal(text, STRING)


def _moment(text: str, target: str, node: exp.Expression) -> Literal:
    """TIMESTAMP '…' and DATE '…'; a timestamp without an offset is taken as UTC."""
    try:
        if target == "DATE":
            return Literal((date.fromisoformat(text.strip()) - _EPOCH.date()).days, DATE)
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        _refuse(node, "is not a date or time; write TIMESTAMP '2026-01-31 12:00:00' or DATE '2026-01-31'")
    naive = moment.tzinfo is None
    if target == "TIMESTAMP_NTZ" and not naive:
        _refuse(node, "has an offset, which a TIMESTAMP_NTZ cannot have")
    moment = moment.replace(tzinfo=UTC) if naive else moment
    return Literal((moment - _EPOCH) // timedelta(microseconds=1), TIMESTAMP_NTZ if "NTZ" in target else TIMESTAMP)


def _interval(node: exp.Interval) -> Literal:
    unit = node.args.get("unit")
    text = f"{node.this.this} {unit.name}" if unit is not None else str(node.this.this)
    try:
        return Literal(parse_duration(text, what="interval"), INTERVAL)
    except SpecError:
        return _refuse(node, "is not an interval of fixed length; write e.g. INTERVAL 5 SECONDS, up to weeks")


def _fold_float(literal: Literal, to: Type) -> Literal:
    """A numeric literal as a float or double constant, rounded once and correctly."""
    assert isinstance(literal.value, int | float)
    if isinstance(literal.value, float) and (literal.value == 0 or not math.isfinite(literal.value)):
        return Literal(literal.value, to)
    exact = Fraction(literal.value) / 10**literal.type.scale
    number = float(exact)
    if to == FLOAT:
        if Fraction(number) != exact and math.frexp(number)[0] * 2**53 % 2 == 0:
            # the neighbour on the other side of `exact`, which has an odd last bit: rounding twice would lose that side
            number = math.nextafter(number, math.inf if Fraction(number) < exact else -math.inf)
        number = unpack("@f", pack("@f", number))[0]  # native: what is too large becomes infinite
    return Literal(number, to)


def _cast(tree: Expr, to: Type) -> Expr:
    """`tree` brought to type `to`; constants are converted here and now."""
    if tree.type == to:
        return tree
    if isinstance(tree, Literal):
        if tree.value is None:
            return Literal(None, to)
        if to.is_floating:
            return _fold_float(tree, to)
        if to.kind is Kind.DECIMAL and isinstance(tree.value, int):
            return Literal(tree.value * 10 ** (to.scale - tree.type.scale), to)
        return Literal(tree.value, to)
    if tree.type.kind is Kind.DECIMAL and to.is_floating and tree.type.precision > _EXACT_DIGITS:
        raise SpecError(
            f"A decimal of {tree.type.precision} digits has no exact double; "
            "CAST the operands AS DOUBLE before the arithmetic, or write the literal with a D: 0.5D"
        )
    return Call(Op.CAST, (tree,), to)


def _unify(a: Expr, b: Expr, node: exp.Expression) -> tuple[Expr, Expr]:
    """Both sides of a comparison in their common type."""
    to = common_type(a.type, b.type) or _mismatch(node, a.type, b.type)
    return _cast(a, to), _cast(b, to)


def _arithmetic(op: Op, a: Expr, b: Expr, node: exp.Expression) -> Expr:
    temporal = _temporal(op, a.type, b.type)
    if temporal is not None:
        left, right, to = temporal
        return Call(op, (_cast(a, left), _cast(b, right)), to)
    if not all(t.is_numeric or t == NULL for t in (a.type, b.type)):
        _refuse(node, f"cannot be computed with {a.type} and {b.type}")
    to = common_type(a.type, b.type) or DOUBLE
    if to == NULL:
        to = DOUBLE
    if to.kind is Kind.DECIMAL:
        if op in (Op.DIV, Op.MOD):
            _refuse(node, "divides decimals; CAST one operand AS DOUBLE, or write the literal with a D: 0.5D")
        left, right = as_decimal(a.type if a.type != NULL else to), as_decimal(b.type if b.type != NULL else to)
        if op is Op.MUL:
            to = decimal(left.precision + right.precision + 1, left.scale + right.scale)
            return Call(op, (_cast(a, left), _cast(b, right)), to)
        to = decimal(to.precision + 1, to.scale)
        return Call(op, (_cast(a, to), _cast(b, to)), to)
    if op is Op.DIV:
        to = DOUBLE
    return Call(op, (_cast(a, to), _cast(b, to)), to)


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


def _mismatch(node: exp.Expression, a: Type, b: Type) -> NoReturn:
    hint = " (timestamps with and without zone do not compare)" if a.is_timestamp and b.is_timestamp else ""
    _refuse(node, f"compares {a} with {b}{hint}; cast one side in the input")


def _refuse(node: exp.Expression, why: str) -> NoReturn:
    raise SpecError(f"{node.sql(dialect='spark')!r} {why}")
