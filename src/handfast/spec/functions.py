"""The functions a predicate can call: their names, arguments and types. What they mean is in `spec/meaning.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from handfast.spec.coerce import alike, arithmetic, cast, unify
from handfast.spec.expression import Call, Expr, Literal, Op
from handfast.spec.meaning import FIXED_UNITS, TRUNC_UNITS, Refused, rule
from handfast.spec.refusal import refuse
from handfast.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT32,
    INT64,
    INTERVAL,
    MAX_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
)

Bind = Callable[[exp.Expression], Expr]

# functions of strings and whole numbers: operator, the types of the arguments, the type of the result
_PLAIN: dict[type[exp.Expression], tuple[Op, tuple[Type, ...], Type]] = {
    exp.Upper: (Op.UPPER, (STRING,), STRING),
    exp.Lower: (Op.LOWER, (STRING,), STRING),
    exp.Reverse: (Op.REVERSE, (STRING,), STRING),
    exp.Left: (Op.LEFT, (STRING, INT32), STRING),
    exp.Right: (Op.RIGHT, (STRING, INT32), STRING),
    exp.Replace: (Op.REPLACE, (STRING, STRING, STRING), STRING),
    exp.StrPosition: (Op.INSTR, (STRING, STRING), INT32),
    exp.StartsWith: (Op.STARTS_WITH, (STRING, STRING), BOOLEAN),
    exp.EndsWith: (Op.ENDS_WITH, (STRING, STRING), BOOLEAN),
    exp.Contains: (Op.CONTAINS, (STRING, STRING), BOOLEAN),
    exp.DateDiff: (Op.DATE_DIFF, (DATE, DATE), INT32),
}
_PARTS_OF_DATE: dict[type[exp.Expression], Op] = {
    exp.Year: Op.YEAR,
    exp.Quarter: Op.QUARTER,
    exp.Month: Op.MONTH,
    exp.Day: Op.DAY,
    exp.DayOfMonth: Op.DAY,
    exp.DayOfWeek: Op.DAY_OF_WEEK,
    exp.DayOfYear: Op.DAY_OF_YEAR,
}
_PARTS_OF_TIME: dict[type[exp.Expression], Op] = {exp.Hour: Op.HOUR, exp.Minute: Op.MINUTE, exp.Second: Op.SECOND}
_EXTREMES = {True: Op.GREATEST, False: Op.LEAST}
# what sqlglot adds to a node that says nothing more than the arguments do
_SAID_TWICE = {"safe", "coalesce", "ignore_nulls", "unit", "negate"}


class Functions:
    """Binds the calls of functions; `bind` binds their arguments."""

    def __init__(self, bind: Bind, condition: Bind) -> None:
        self._bind = bind
        self._condition = condition

    def call(self, node: exp.Expression) -> Expr | None:
        """The tree of a call, or None if this is no function we know."""
        kind = type(node)
        if kind is exp.DateDiff and str(node.args.get("unit") or "DAY") != "DAY":
            refuse(node, "counts another unit than days; subtract the times, and compare with an INTERVAL")
        if kind in _PLAIN:
            op, types, to = _PLAIN[kind]
            return Call(op, self._typed(node, self._arguments(node), types), to)
        if kind in _PARTS_OF_DATE or kind in _PARTS_OF_TIME:
            return self._part(node, kind)
        bound = _BOUND.get(kind)
        return None if bound is None else bound(self, node)

    # -- arguments -------------------------------------------------------------------------------

    def _arguments(self, node: exp.Expression) -> list[Expr]:
        """The arguments in their order; sqlglot names each."""
        parts = [part for name, part in node.args.items() if name not in _SAID_TWICE and part is not None]
        flat = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        if not all(isinstance(each, exp.Expression) for each in flat):
            refuse(node, "is not supported in this form; make it a column of its stream")
        return [self._bind(each.this if isinstance(each, exp.TsOrDsToDate) else each) for each in flat]

    def _typed(self, node: exp.Expression, args: Sequence[Expr], types: Sequence[Type]) -> tuple[Expr, ...]:
        """The arguments, each of the type it must have."""
        if len(args) != len(types):
            refuse(node, f"takes {len(types)} arguments here, not {len(args)}")
        return tuple(_as(arg, to, node) for arg, to in zip(args, types, strict=True))

    # -- strings ---------------------------------------------------------------------------------

    def like(self, node: exp.Expression, escape: str = "\\") -> Expr:
        """LIKE and ILIKE, also with NOT; the text beside an escape stands around them."""
        if isinstance(node.expression, exp.Any | exp.All):
            refuse(node, "compares with several patterns; write one LIKE for each")
        text, pattern = self._typed(node, [self._bind(node.this), self._bind(node.expression)], (STRING, STRING))
        op = Op.ILIKE if isinstance(node, exp.ILike) else Op.LIKE
        tree = Call(op, (text, pattern, Literal(escape, STRING)), BOOLEAN)
        if isinstance(pattern, Literal) and pattern.value is not None:
            try:
                rule(tree)("", pattern.value, escape)
            except Refused as why:
                refuse(node, f"has a pattern that Spark refuses: {why}")
        return Call(Op.NOT, (tree,), BOOLEAN) if node.args.get("negate") else tree

    def _escape(self, node: exp.Expression) -> Expr:
        letter = node.expression
        if not (isinstance(letter, exp.Literal) and letter.is_string and len(letter.this) == 1):
            refuse(node, "needs one character to escape with, e.g. ESCAPE '/'")
        return self.like(node.this, letter.this)

    def _length(self, node: exp.Expression) -> Expr:
        (text,) = self._arguments(node)
        return Call(Op.LENGTH, (text if text.type == BINARY else _as(text, STRING, node),), INT32)

    def _trim(self, node: exp.Expression) -> Expr:
        op = {"LEADING": Op.LTRIM, "TRAILING": Op.RTRIM}.get(str(node.args.get("position") or ""), Op.TRIM)
        characters = self._bind(node.expression) if node.expression else Literal(" ", STRING)
        return Call(op, self._typed(node, [self._bind(node.this), characters], (STRING, STRING)), STRING)

    def _substring(self, node: exp.Expression) -> Expr:
        args = self._arguments(node)
        args += [Literal(2**31 - 1, INT32)] * (3 - len(args))
        text = BINARY if args[0].type == BINARY else STRING
        return Call(Op.SUBSTRING, self._typed(node, args, (text, INT32, INT32)), text)

    def _concat(self, node: exp.Expression) -> Expr:
        if not node.args.get("safe"):
            # sqlglot does not tell 'a''b', which is a'b in Spark, from 'a' 'b', which is ab
            refuse(node, "is written as strings side by side; write a quote inside a string as \\', and || between two")
        args = self._arguments(node)
        text = BINARY if all(arg.type == BINARY for arg in args) else STRING
        return Call(Op.CONCAT, self._typed(node, args, [text] * len(args)), text)

    # -- choices ---------------------------------------------------------------------------------

    def _case(self, node: exp.Expression) -> Expr:
        conditions, values = [], []
        for branch in node.args["ifs"]:
            if node.this is None:
                conditions.append(self._condition(branch.this))
            else:
                conditions.append(Call(Op.EQ, unify(self._bind(node.this), self._bind(branch.this), node), BOOLEAN))
            values.append(self._bind(branch.args["true"]))
        default = node.args.get("default")
        return _choice(conditions, [*values, self._bind(default) if default else Literal(None, NULL)], node)

    def _if(self, node: exp.Expression) -> Expr:
        other = node.args.get("false")
        values = [self._bind(node.args["true"]), self._bind(other) if other else Literal(None, NULL)]
        return _choice([self._condition(node.this)], values, node)

    def _null_if(self, node: exp.Expression) -> Expr:
        value = self._bind(node.this)
        same = Call(Op.EQ, unify(value, self._bind(node.expression), node), BOOLEAN)
        return _choice([same], [Literal(None, value.type), value], node)

    def _chosen(self, node: exp.Expression) -> Expr:
        op = Op.COALESCE if isinstance(node, exp.Coalesce) else _EXTREMES[isinstance(node, exp.Greatest)]
        args = alike(self._arguments(node), node)
        return args[0] if len(args) == 1 else Call(op, tuple(args), args[0].type)

    def _is_nan(self, node: exp.Expression) -> Expr:
        number = _as(self._bind(node.this), DOUBLE, node)
        return Call(Op.SAME, (number, Literal(float("nan"), DOUBLE)), BOOLEAN)

    # -- numbers ---------------------------------------------------------------------------------

    def _of_double(self, node: exp.Expression) -> Expr:
        op = Op.SQRT if isinstance(node, exp.Sqrt) else Op.SIGN
        return Call(op, self._typed(node, self._arguments(node), (DOUBLE,)), DOUBLE)

    def _whole(self, node: exp.Expression) -> Expr:
        args = self._arguments(node)
        if len(args) != 1:
            refuse(node, "takes one argument here; write ROUND, or make it a column of its stream")
        (number,) = args
        type_ = number.type
        if type_.is_integer or type_ == NULL:
            return cast(number, INT64)
        op = Op.FLOOR if isinstance(node, exp.Floor) else Op.CEIL
        if type_.kind is Kind.DECIMAL:
            to = Type(Kind.DECIMAL, min(type_.precision - type_.scale + 1, MAX_PRECISION), 0)
            return Call(op, (number,), to) if type_.scale else number
        return Call(op, (_as(number, DOUBLE, node),), INT64)

    def _round(self, node: exp.Expression) -> Expr:
        args = self._arguments(node)
        number, digits = args if len(args) == 2 else (args[0], Literal(0, INT32))
        type_ = number.type
        if not isinstance(digits, Literal) or digits.type != INT32 or not isinstance(digits.value, int):
            refuse(node, "must name the number of digits as a constant")
        if not (type_.is_integer or type_.kind is Kind.DECIMAL):
            refuse(node, f"rounds a {type_} by the way Java prints it; make it a decimal column in the input, or CAST")
        if type_.kind is Kind.DECIMAL:
            whole = type_.precision - type_.scale + 1
            kept = min(max(digits.value, 0), type_.scale)
            whole = max(whole, 1 - digits.value) if digits.value < 0 else whole
            type_ = Type(Kind.DECIMAL, min(whole + kept, MAX_PRECISION), kept)
        return Call(Op.ROUND, (number, digits), type_)

    def _int_div(self, node: exp.Expression) -> Expr:
        a, b = self._arguments(node)
        if not all(t.is_integer or t.kind is Kind.DECIMAL for t in (a.type, b.type)):
            refuse(node, f"cannot be computed with {a.type} and {b.type}")
        return Call(Op.INT_DIV, (a, b), INT64)

    # -- dates and times -------------------------------------------------------------------------

    def _part(self, node: exp.Expression, kind: type[exp.Expression]) -> Expr:
        args = self._arguments(node)
        if len(args) != 1:
            refuse(node, "takes one argument")
        (time,) = args
        of_time = _PARTS_OF_TIME.get(kind)
        if of_time is not None:
            if not time.type.is_timestamp:
                refuse(node, f"needs a timestamp, not {time.type}")
            return Call(of_time, (time,), INT32)
        if not (time.type.is_timestamp or time.type == DATE):
            refuse(node, f"needs a date or a timestamp, not {time.type}")
        return Call(_PARTS_OF_DATE[kind], (time,), INT32)

    def _trunc(self, node: exp.Expression) -> Expr:
        unit, time = node.args["unit"].name.upper(), self._bind(node.this)
        if unit not in TRUNC_UNITS:
            refuse(node, f"truncates to no unit of {', '.join(TRUNC_UNITS)}")
        if time.type != TIMESTAMP:
            refuse(node, f"needs a timestamp with a zone, not {time.type}")
        fixed = FIXED_UNITS.get(unit)
        start = Literal(unit, STRING) if fixed is None else Literal(fixed, INTERVAL)
        return Call(Op.DATE_TRUNC, (start, time), TIMESTAMP)

    def _add_days(self, node: exp.Expression) -> Expr:
        # sqlglot writes date_sub(day, n) as day + n * -1
        minus_one = exp.Neg(this=exp.Literal.number(1))
        subtracts = isinstance(node.expression, exp.Mul) and node.expression.expression == minus_one
        op, count = (Op.SUB, node.expression.this) if subtracts else (Op.ADD, node.expression)
        day, days = self._bind(node.this), self._bind(count)
        if day.type != DATE or node.args["unit"].name != "DAY":
            refuse(node, f"adds days to a {day.type}, not to a date")
        return arithmetic(op, day, days, node)


_BOUND: dict[type[exp.Expression], Callable[[Functions, exp.Expression], Expr]] = {
    exp.Like: Functions.like,
    exp.ILike: Functions.like,
    exp.Escape: Functions._escape,
    exp.Length: Functions._length,
    exp.Trim: Functions._trim,
    exp.Substring: Functions._substring,
    exp.Concat: Functions._concat,
    exp.DPipe: Functions._concat,
    exp.Case: Functions._case,
    exp.If: Functions._if,
    exp.Nullif: Functions._null_if,
    exp.Coalesce: Functions._chosen,
    exp.Greatest: Functions._chosen,
    exp.Least: Functions._chosen,
    exp.IsNan: Functions._is_nan,
    exp.Sqrt: Functions._of_double,
    exp.Sign: Functions._of_double,
    exp.Floor: Functions._whole,
    exp.Ceil: Functions._whole,
    exp.Round: Functions._round,
    exp.IntDiv: Functions._int_div,
    exp.TimestampTrunc: Functions._trunc,
    exp.TsOrDsAdd: Functions._add_days,
}


def _as(tree: Expr, to: Type, node: exp.Expression) -> Expr:
    """The argument of a function in the type it must have: narrower integers are widened, numbers become doubles."""
    source = tree.type
    widens = source.is_integer and to.is_integer and source.bits <= to.bits
    if source in (to, NULL) or widens or (to == DOUBLE and source.is_numeric):
        return cast(tree, to)
    return refuse(node, f"needs {to} where it has {source}; cast it in the input")


def _choice(conditions: list[Expr], values: list[Expr], node: exp.Expression) -> Expr:
    """CASE: conditions and values in turn, then the value that is left."""
    values = alike(values, node)
    if values[0].type == NULL:
        refuse(node, "has no type: all its values are NULL")
    pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return Call(Op.CASE, (*pairs, values[-1]), values[0].type)
