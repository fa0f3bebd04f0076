"""From the SQL that a user writes to a typed tree: parse, bind to the schemas, type as Spark's ANSI mode does."""

from __future__ import annotations

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from handfast.errors import SpecError
from handfast.spec import literals
from handfast.spec.coerce import arithmetic, cast, checked_decimal, explicit_cast, unify
from handfast.spec.expression import Call, Column, Expr, Literal, Op, balanced, depth
from handfast.spec.functions import Functions
from handfast.spec.grammar import SUFFIX, SparkConditions
from handfast.spec.refusal import mismatch, refuse
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
    TIMESTAMP_NTZ,
    Kind,
    Type,
    comparison_type,
)

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
    "DATE": DATE,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_DEEPEST = 150  # levels of a tree that every part of handfast can walk
_SHORT_LIST = 16  # constants that are compared one by one; more make a set


def parse(text: str) -> exp.Expression:
    """The AST of the user's predicate text, or an error that shows the line and column."""
    if not isinstance(text, str) or not text.strip():
        raise SpecError("A join needs a predicate; write it as SQL, e.g. on='r.x = s.x', or on='TRUE' for every pair")
    try:
        statements = sqlglot.parse(text, dialect=SparkConditions)
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
    if details:
        line, column = details[0].get("line") or 1, details[0].get("col") or 1
        description = (details[0].get("description") or "").split(" for <class")[0].rstrip(".")
    else:
        at = _unclosed(text)
        description = f"{text[at]} is not closed" if at < len(text) else str(error).splitlines()[0]
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    pointer = " " * max(0, column - 1) + "^"
    message = f"The predicate is not valid SQL at line {line}, column {column} ({description}):\n  {shown}\n  {pointer}"
    keyword = next((word for word in re.findall(r"(?<![\w`.])(\w+)\.", text) if _is_keyword(word)), None)
    if keyword is not None:
        message += f"\n  if {keyword!r} is a stream, its name is a word of SQL: write `{keyword}` in backticks"
    return message


def _unclosed(text: str) -> int:
    """Where a quote begins that does not end."""
    quoted = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|/\*.*?\*/|--[^\n]*""", re.DOTALL)
    rest = quoted.sub(lambda match: " " * len(match[0]), text)
    found = re.search(r"['\"`]|/\*", rest)
    return found.start() if found else len(text)


def _is_keyword(word: str) -> bool:
    return word.upper() in SparkConditions.Tokenizer.KEYWORDS and not word.isdigit()


def bind(text: str, schemas: Mapping[str, Schema]) -> Expr:
    """The typed tree of a predicate over the named streams."""
    try:
        tree = _Binder(tuple(schemas), tuple(schemas.values())).bind(parse(text))
    except RecursionError:
        raise _too_deep() from None
    if depth(tree) > _DEEPEST:
        raise _too_deep()
    tree = cast(tree, BOOLEAN) if tree.type.kind is Kind.NULL else tree
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
        self._functions = Functions(self.bind, self._condition)

    def bind(self, node: exp.Expression) -> Expr:
        """The typed tree of one AST node."""
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Literal):
            return Literal(node.this, STRING) if node.is_string else literals.number(node.this)
        if isinstance(node, exp.RawString):
            return Literal(node.this, STRING)
        if isinstance(node, exp.HexString):
            return literals.hexadecimal(node)
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
            same = Call(Op.SAME, unify(self.bind(node.this), self.bind(node.expression), node), BOOLEAN)
            return same if isinstance(node, exp.NullSafeEQ) else _not(same)
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if type(node) in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[type(node)], self.bind(node.this), self.bind(node.expression), node)
        if isinstance(node, exp.Neg):
            return self._negative(node)
        if isinstance(node, exp.Interval):
            return literals.interval(node)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return self._explicit_cast(node)
        tree = self._functions.call(node)
        if tree is not None:
            return tree
        return refuse(
            node, "is not supported in a predicate; make it a column of its stream, or filter the result by it"
        )

    def _condition(self, node: exp.Expression) -> Expr:
        tree = self.bind(node)
        if tree.type.kind is Kind.NULL:
            return cast(tree, BOOLEAN)
        if tree.type != BOOLEAN:
            refuse(node, f"is of type {tree.type} where a condition is needed")
        return tree

    def _column(self, node: exp.Column) -> Column:
        name, qualifier = node.name, node.table
        if node.args.get("db"):
            refuse(node, "has too many parts; write stream.column")
        if not qualifier:
            owners = [i for i, schema in enumerate(self._schemas) if schema.find(name)]
            if len(owners) != 1:
                what = "is in several streams" if owners else "is in no stream"
                refuse(node, f"{what}; name its stream, one of {', '.join(self._streams)}")
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
            typed = "; a column of NULLs alone has no type of its own: give it one" if str(type_) == "null" else ""
            refuse(node, f"is of type {type_}, which a predicate cannot use; it can only ride along{typed}")
        return Column(stream, found, type_)

    def _comparison(self, node: exp.Expression, sign: str, left: exp.Expression, right: exp.Expression) -> Expr:
        if isinstance(left, exp.Tuple) or isinstance(right, exp.Tuple):
            refuse(node, "compares tuples; write the comparisons one by one with AND")
        a, b = unify(self.bind(left), self.bind(right), node)
        if sign in (">", ">="):
            a, b, sign = b, a, sign.replace(">", "<")
        if sign == "<>":
            return _not(Call(Op.EQ, (a, b), BOOLEAN))
        return Call(Op(sign), (a, b), BOOLEAN)

    def _between(self, node: exp.Between) -> Expr:
        low = self._comparison(node, ">=", node.this, node.args["low"])
        high = self._comparison(node, "<=", node.this, node.args["high"])
        return Call(Op.AND, (low, high), BOOLEAN)

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") or not node.expressions:
            refuse(node, "needs a list of values, not a query")
        item, choices = self.bind(node.this), [self.bind(choice) for choice in node.expressions]
        target = item.type
        for choice in choices:
            target = comparison_type(target, choice.type) or mismatch(node, target, choice.type)
        item, choices = cast(item, target), [cast(choice, target) for choice in choices]
        if len(choices) > _SHORT_LIST and all(isinstance(choice, Literal) for choice in choices):
            return _member(item, [choice for choice in choices if isinstance(choice, Literal)])
        return balanced(Op.OR, [Call(Op.EQ, (item, choice), BOOLEAN) for choice in choices])

    def _is(self, node: exp.Is) -> Expr:
        tree = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return Call(Op.IS_NULL, (tree,), BOOLEAN)
        if isinstance(node.expression, exp.Boolean):
            truth = Literal(bool(node.expression.this), BOOLEAN)
            return Call(Op.SAME, (self._condition(node.this), truth), BOOLEAN)
        return refuse(node, "must be IS [NOT] NULL, TRUE or FALSE")

    def _negative(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literals.number("-" + node.this.this)  # so that the smallest bigint can be written
        if _is_small_integer(node.this):
            to = _CAST_TARGETS[node.this.to.sql(dialect="spark").upper()]
            return literals.small_integer("-" + node.this.this.this, to, node)
        tree = self.bind(node.this)
        if not (tree.type.is_numeric or tree.type == INTERVAL):
            refuse(node, f"needs a number, not {tree.type}")
        return Call(Op.NEG, (tree,), tree.type)

    def _explicit_cast(self, node: exp.Cast) -> Expr:
        target = node.to.sql(dialect="spark").upper()
        text = node.this.this if isinstance(node.this, exp.Literal) and node.this.is_string else None
        if text is not None and target in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
            return literals.moment(text, target, node)
        if text is not None and target.startswith("DECIMAL") and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text):
            return explicit_cast(literals.number(text if "." in text else text + "."), self._target(node, target), node)
        if target == "FLOAT" and node.to.meta.get(SUFFIX):
            return literals.short_float(node.this.this)
        if _is_small_integer(node):
            return literals.small_integer(node.this.this, _CAST_TARGETS[target], node)
        tree = self.bind(node.this)
        return explicit_cast(tree, self._target(node, target), node)

    def _target(self, node: exp.Cast, target: str) -> Type:
        if node.to.is_type("decimal"):
            digits = [int(part.name) for part in node.to.expressions]
            precision, scale = (*digits, *(10, 0)[len(digits) :])
            return checked_decimal(precision, scale, node)
        if target not in _CAST_TARGETS:
            refuse(node, f"casts to {target}; a predicate can cast to {', '.join(_CAST_TARGETS)}, DECIMAL(p,s)")
        return _CAST_TARGETS[target]


def _is_small_integer(node: exp.Expression) -> bool:
    """Whether this is an integer literal that names its type, as 7Y or CAST(7 AS TINYINT)."""
    return (
        isinstance(node, exp.Cast)
        and isinstance(node.this, exp.Literal)
        and node.this.this.isdigit()
        and not node.this.is_string
        and node.to.sql(dialect="spark").upper() in ("TINYINT", "SMALLINT", "INT", "BIGINT")
    )


def _member(item: Expr, choices: list[Literal]) -> Expr:
    """A long list as a set; a NULL in it makes unknown what is not found."""
    known = [choice for choice in choices if choice.value is not None]
    found = Call(Op.IN, (item, *known), BOOLEAN)
    return found if len(known) == len(choices) else Call(Op.OR, (found, Literal(None, BOOLEAN)), BOOLEAN)


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
