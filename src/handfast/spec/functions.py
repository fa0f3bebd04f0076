"""The functions a predicate can call: their names, arguments and types. What they mean is in `spec/meaning.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from handfast.spec.coerce import alike, arithmetic, cast, unify
from handfast.spec.expression import Call, Expr, Literal, Op
from handfast.spec.meaning import FIXED_UNITS, TRUNC_UNITS, AnsiError, rule
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
Arguments = list[exp.Expression]

# operators that mean the same as a function of Spark's
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.DPipe: "CONCAT",
    exp.IntDiv: "DIV",
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Spark's: how many arguments it takes here, and how a call of it is bound."""

    least: int
    most: int | None  # None: any number
    bind: Callable[[Functions, exp.Expression, Arguments], Expr]

    def check(self, node: exp.Expression, name: str, count: int) -> None:
        """Refuse a call with too few or too many arguments."""
        if self.least <= count and (self.most is None or count <= self.most):
            return
        if self.most is None:
            takes = f"{self.least} or more"
        else:
            takes = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        refuse(node, f"has {count} argument{'' if count == 1 else 's'}; {name} takes {takes} in a predicate")


class Functions:
    """Binds the calls of functions; `bind` binds their arguments, `condition` those that must be conditions."""

    def __init__(self, bind: Bind, condition: Bind) -> None:
        self._bind = bind
        self._condition = condition

    def call(self, node: exp.Expression) -> Expr | None:
        """The tree of a call, or None if this is no function we know."""
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.TimestampDiff):
            return self._units_between(node)
        if isinstance(node, exp.Concat):
            # sqlglot does not tell 'a''b', which is a'b in Spark, from 'a' 'b', which is ab
            refuse(node, "is written as strings side by side; write a quote inside a string as \\', and || between two")
        name, arguments = _written(node)
        function = FUNCTIONS.get(name)
        if function is None:
            return None
        function.check(node, name, len(arguments))
        return function.bind(self, node, arguments)

    def _typed(self, node: exp.Expression, args: Sequence[Expr], types: Sequence[Type]) -> tuple[Expr, ...]:
        """The arguments, each of the type it must have."""
        return tuple(_as(arg, to, node) for arg, to in zip(args, types, strict=True))

    def _all(self, arguments: Arguments) -> list[Expr]:
        return [self._bind(argument) for argument in arguments]

    # -- strings ---------------------------------------------------------------------------------

    def _like(self, node: exp.Expression, arguments: Arguments) -> Expr:
        text, pattern, *letters = arguments
        if isinstance(pattern, exp.Any | exp.All):
            refuse(node, "compares with several patterns; write one LIKE for each")
        escape = self._bind(letters[0]) if letters else Literal("\\", STRING)
        if not (isinstance(escape, Literal) and isinstance(escape.value, str) and len(escape.value) == 1):
            refuse(node, "needs one character to escape with, e.g. ESCAPE '/'")
        typed = self._typed(node, [self._bind(text), self._bind(pattern), escape], (STRING, STRING, STRING))
        tree = Call(Op(_written(node)[0]), typed, BOOLEAN)
        if isinstance(typed[1], Literal) and typed[1].value is not None:
            try:
                rule(tree)("", typed[1].value, escape.value)
            except AnsiError as why:
                refuse(node, f"has a pattern that Spark refuses: {why}")
        return tree

    def _length(self, node: exp.Expression, arguments: Arguments) -> Expr:
        (text,) = self._all(arguments)
        return Call(Op.LENGTH, (text if text.type == BINARY else _as(text, STRING, node),), INT32)

    def _trim(self, node: exp.Expression, arguments: Arguments) -> Expr:
        *characters, text = self._all(arguments)  # the characters come first
        args = [text, *(characters or [Literal(" ", STRING)])]
        return Call(Op(_written(node)[0]), self._typed(node, args, (STRING, STRING)), STRING)

    def _substring(self, node: exp.Expression, arguments: Arguments) -> Expr:
        args = self._all(arguments)
        args += [Literal(2**31 - 1, INT32)] * (3 - len(args))
        text = BINARY if args[0].type == BINARY else STRING
        return Call(Op.SUBSTRING, self._typed(node, args, (text, INT32, INT32)), text)

    def _locate(self, node: exp.Expression, arguments: Arguments) -> Expr:
        part, text = self._all(arguments)
        return Call(Op.INSTR, self._typed(node, [text, part], (STRING, STRING)), INT32)

    def _concat(self, node: exp.Expression, arguments: Arguments) -> Expr:
        args = self._all(arguments) or [Literal("", STRING)]
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

    def _if(self, node: exp.Expression, arguments: Arguments) -> Expr:
        condition, *values = arguments
        return _choice([self._condition(condition)], self._all(values), node)

    def _null_if(self, node: exp.Expression, arguments: Arguments) -> Expr:
        value, other = self._all(arguments)
        same = Call(Op.EQ, unify(value, other, node), BOOLEAN)
        return _choice([same], [Literal(None, value.type), value], node)

    def _is_null(self, node: exp.Expression, arguments: Arguments) -> Expr:
        return Call(Op.IS_NULL, tuple(self._all(arguments)), BOOLEAN)

    def _is_not_null(self, node: exp.Expression, arguments: Arguments) -> Expr:
        return Call(Op.NOT, (self._is_null(node, arguments),), BOOLEAN)

    def _is_nan(self, node: exp.Expression, arguments: Arguments) -> Expr:
        (number,) = self._typed(node, self._all(arguments), (DOUBLE,))
        return Call(Op.SAME, (number, Literal(float("nan"), DOUBLE)), BOOLEAN)

    # -- numbers ---------------------------------------------------------------------------------

    def _absolute(self, node: exp.Expression, arguments: Arguments) -> Expr:
        (tree,) = self._all(arguments)
        if not (tree.type.is_numeric or tree.type == INTERVAL):
            refuse(node, f"needs a number, not {tree.type}")
        return Call(Op.ABS, (tree,), tree.type)

    def _remainder(self, node: exp.Expression, arguments: Arguments) -> Expr:
        a, b = self._all(arguments)
        return arithmetic(Op.MOD, a, b, node)

    def _round(self, node: exp.Expression, arguments: Arguments) -> Expr:
        number, *rest = self._all(arguments)
        digits = rest[0] if rest else Literal(0, INT32)
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

    def _int_div(self, node: exp.Expression, arguments: Arguments) -> Expr:
        a, b = self._all(arguments)
        if not all(t.is_integer or t.kind is Kind.DECIMAL for t in (a.type, b.type)):
            refuse(node, f"cannot be computed with {a.type} and {b.type}")
        return Call(Op.INT_DIV, (a, b), INT64)

    # -- dates and times -------------------------------------------------------------------------

    def _trunc(self, node: exp.Expression, arguments: Arguments) -> Expr:
        unit, time = self._all(arguments)
        if not isinstance(unit, Literal) or str(unit.value).upper() not in TRUNC_UNITS:
            refuse(node, f"truncates to no unit of {', '.join(TRUNC_UNITS)}")
        if time.type != TIMESTAMP:
            refuse(node, f"needs a timestamp with a zone, not {time.type}")
        name = str(unit.value).upper()
        fixed = FIXED_UNITS.get(name)
        start = Literal(name, STRING) if fixed is None else Literal(fixed, INTERVAL)
        return Call(Op.DATE_TRUNC, (start, time), TIMESTAMP)

    def _units_between(self, node: exp.Expression) -> Expr:
        """DATEDIFF(DAY, start, end): a bigint, unlike DATEDIFF(end, start)."""
        if node.args["unit"].name != "DAY":
            refuse(node, "counts another unit than days; subtract the times, and compare with an INTERVAL")
        days = [self._bind(node.this), self._bind(node.expression)]
        return cast(Call(Op.DATE_DIFF, self._typed(node, days, (DATE, DATE)), INT32), INT64)


def _written(node: exp.Expression) -> tuple[str, Arguments]:
    """The function that a node calls, and its arguments; an operator is written as the call that means the same."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper(), node.expressions
    if isinstance(node, exp.Escape):
        name, arguments = _written(node.this)
        return name, [*arguments, node.expression]
    if type(node) in _OPERATORS:
        return _OPERATORS[type(node)], [node.this, node.expression]
    return "", []


def _plain(op: Op, types: Sequence[Type], to: Type, *defaults: Literal) -> Function:
    """A function of strings, dates or numbers: the types of its arguments and its own; the last may be left out."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        args = functions._all(arguments)
        args += defaults[len(defaults) - (len(types) - len(args)) :]
        return Call(op, functions._typed(node, args, types), to)

    return Function(len(types) - len(defaults), len(types), bind)


def _chosen(op: Op, least: int, most: int | None) -> Function:
    """The first that is not NULL, the greatest or the least of some values."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        args = alike(functions._all(arguments), node)
        return args[0] if len(args) == 1 else Call(op, tuple(args), args[0].type)

    return Function(least, most, bind)


def _whole(op: Op) -> Function:
    """The whole number below or above."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        (number,) = functions._all(arguments)
        type_ = number.type
        if type_.is_integer or type_ == NULL:
            return cast(number, INT64)
        if type_.kind is Kind.DECIMAL:
            to = Type(Kind.DECIMAL, min(type_.precision - type_.scale + 1, MAX_PRECISION), 0)
            return Call(op, (number,), to) if type_.scale else number
        return Call(op, (_as(number, DOUBLE, node),), INT64)

    return Function(1, 1, bind)


def _part(op: Op, *, of_dates: bool) -> Function:
    """A part of a timestamp, or of a date as well."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        (time,) = functions._all(arguments)
        if not (time.type.is_timestamp or (of_dates and time.type == DATE)):
            refuse(node, f"needs a {'date or a ' if of_dates else ''}timestamp, not {time.type}")
        return Call(op, (time,), INT32)

    return Function(1, 1, bind)


def _days_later(op: Op) -> Function:
    """A date so many days later or earlier."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        day, days = functions._all(arguments)
        if day.type != DATE:
            refuse(node, f"adds days to a {day.type}, not to a date")
        return arithmetic(op, day, days, node)

    return Function(2, 2, bind)


def _cast_to(target: str) -> Function:
    """A type's name as a function: INT(x) is CAST(x AS INT)."""

    def bind(functions: Functions, node: exp.Expression, arguments: Arguments) -> Expr:
        return functions._bind(exp.Cast(this=arguments[0], to=exp.DataType.build(target, dialect="spark")))

    return Function(1, 1, bind)


_LENGTH = Function(1, 1, Functions._length)
_TRIM = Function(1, 2, Functions._trim)
_SUBSTRING = Function(2, 3, Functions._substring)
_LOCATE = Function(2, 2, Functions._locate)
_LIKE = Function(2, 3, Functions._like)
_UPPER = _plain(Op.UPPER, (STRING,), STRING)
_LOWER = _plain(Op.LOWER, (STRING,), STRING)
_SIGN = _plain(Op.SIGN, (DOUBLE,), DOUBLE)
_CEIL = _whole(Op.CEIL)
_NVL = _chosen(Op.COALESCE, 2, 2)
_DAY = _part(Op.DAY, of_dates=True)
_DATE_ADD = _days_later(Op.ADD)
_DATE_DIFF = _plain(Op.DATE_DIFF, (DATE, DATE), INT32)

# every function of Spark's that a predicate can call, by its name
FUNCTIONS: dict[str, Function] = {
    "UPPER": _UPPER,
    "UCASE": _UPPER,
    "LOWER": _LOWER,
    "LCASE": _LOWER,
    "LENGTH": _LENGTH,
    "LEN": _LENGTH,
    "CHAR_LENGTH": _LENGTH,
    "CHARACTER_LENGTH": _LENGTH,
    "TRIM": _TRIM,
    "LTRIM": _TRIM,
    "RTRIM": _TRIM,
    "SUBSTRING": _SUBSTRING,
    "SUBSTR": _SUBSTRING,
    "LEFT": _plain(Op.LEFT, (STRING, INT32), STRING),
    "RIGHT": _plain(Op.RIGHT, (STRING, INT32), STRING),
    "REVERSE": _plain(Op.REVERSE, (STRING,), STRING),
    "CONCAT": Function(0, None, Functions._concat),
    "REPLACE": _plain(Op.REPLACE, (STRING, STRING, STRING), STRING, Literal("", STRING)),
    "INSTR": _plain(Op.INSTR, (STRING, STRING), INT32),
    "LOCATE": _LOCATE,
    "POSITION": _LOCATE,
    "STARTSWITH": _plain(Op.STARTS_WITH, (STRING, STRING), BOOLEAN),
    "ENDSWITH": _plain(Op.ENDS_WITH, (STRING, STRING), BOOLEAN),
    "CONTAINS": _plain(Op.CONTAINS, (STRING, STRING), BOOLEAN),
    "LIKE": _LIKE,
    "ILIKE": _LIKE,
    "IF": Function(3, 3, Functions._if),
    "COALESCE": _chosen(Op.COALESCE, 1, None),
    "NVL": _NVL,
    "IFNULL": _NVL,
    "NULLIF": Function(2, 2, Functions._null_if),
    "GREATEST": _chosen(Op.GREATEST, 2, None),
    "LEAST": _chosen(Op.LEAST, 2, None),
    "ISNULL": Function(1, 1, Functions._is_null),
    "ISNOTNULL": Function(1, 1, Functions._is_not_null),
    "ISNAN": Function(1, 1, Functions._is_nan),
    "ABS": Function(1, 1, Functions._absolute),
    "SIGN": _SIGN,
    "SIGNUM": _SIGN,
    "SQRT": _plain(Op.SQRT, (DOUBLE,), DOUBLE),
    "FLOOR": _whole(Op.FLOOR),
    "CEIL": _CEIL,
    "CEILING": _CEIL,
    "ROUND": Function(1, 2, Functions._round),
    "DIV": Function(2, 2, Functions._int_div),
    "MOD": Function(2, 2, Functions._remainder),
    "YEAR": _part(Op.YEAR, of_dates=True),
    "QUARTER": _part(Op.QUARTER, of_dates=True),
    "MONTH": _part(Op.MONTH, of_dates=True),
    "DAY": _DAY,
    "DAYOFMONTH": _DAY,
    "DAYOFWEEK": _part(Op.DAY_OF_WEEK, of_dates=True),
    "DAYOFYEAR": _part(Op.DAY_OF_YEAR, of_dates=True),
    "HOUR": _part(Op.HOUR, of_dates=False),
    "MINUTE": _part(Op.MINUTE, of_dates=False),
    "SECOND": _part(Op.SECOND, of_dates=False),
    "DATE_TRUNC": Function(2, 2, Functions._trunc),
    "DATE_ADD": _DATE_ADD,
    "DATEADD": _DATE_ADD,
    "DATE_SUB": _days_later(Op.SUB),
    "DATEDIFF": _DATE_DIFF,
    "DATE_DIFF": _DATE_DIFF,
    **{name: _cast_to(name) for name in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")},
    "DATE": _cast_to("DATE"),
    "TIMESTAMP": _cast_to("TIMESTAMP"),
    "TO_TIMESTAMP": _cast_to("TIMESTAMP"),
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
