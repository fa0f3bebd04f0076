"""From the user's own predicate text to DuckDB SQL with Spark's types."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tests.judges.duckdb_judge.arithmetic import arithmetic, signed
from tests.judges.duckdb_judge.terms import (
    BOOLEAN,
    FLOATS,
    INTEGERS,
    INTERVAL,
    NULL,
    CannotSay,
    SparkType,
    Term,
    any_of,
    both,
    common_type,
    compare,
    either,
    moment,
    number,
    quoted,
    to,
)

ARROW = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.null(): "null",
}
INTERVAL_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 10**3,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
    "WEEK": 604800 * 10**6,
}


def translated(on: str, streams: list[tuple[str, pa.Schema]]) -> Term:
    """The condition over the tuples `t0`, `t1`, … whose values (`value_of`) are called v0, v1, …."""
    return _Translator(streams).term(sqlglot.parse_one(on, dialect="databricks"))


def micros_of(sql: str, arrow: pa.TimestampType) -> str:
    """A time's integer in microseconds, nanoseconds floored."""
    if arrow.unit == "ns":
        return f"(({sql} - ({sql} % 1000 + 1000) % 1000) // 1000)"
    factor = {"s": 10**6, "ms": 10**3, "us": 1}[arrow.unit]
    return f"({sql} * {factor})"


def index_of(schema: pa.Schema, name: str) -> int:
    names = schema.names
    if name in names:
        return names.index(name)
    alike = [i for i, other in enumerate(names) if other.lower() == name.lower()]
    if len(alike) != 1:
        raise KeyError(name)
    return alike[0]


def _arrow_type(arrow: pa.DataType) -> SparkType:
    if pa.types.is_dictionary(arrow):
        return _arrow_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return SparkType("timestamp" if arrow.tz else "timestamp_ntz")
    if pa.types.is_decimal(arrow):
        return SparkType("decimal", arrow.precision, arrow.scale)
    return SparkType(ARROW[arrow])


def value_of(sql: str, arrow: pa.DataType) -> str:
    """A column's values as the condition computes with them: integers, decimals, times and dates as HUGEINTs."""
    if pa.types.is_timestamp(arrow):
        return f"CAST({micros_of(sql, arrow)} AS HUGEINT)"
    if pa.types.is_date32(arrow):
        return f"CAST({sql} - DATE '1970-01-01' AS HUGEINT)"
    if pa.types.is_decimal(arrow):
        # the text of a decimal always shows all digits of its scale
        return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"
    return f"CAST({sql} AS HUGEINT)" if pa.types.is_integer(arrow) else sql


class _Translator:
    """From the user's AST to DuckDB SQL with Spark's types."""

    def __init__(self, streams: list[tuple[str, pa.Schema]]) -> None:
        self.streams = streams

    def term(self, node: exp.Expression) -> Term:
        for kind, rule in self._RULES.items():
            if isinstance(node, kind):
                return rule(self, node)
        raise CannotSay(f"no words for {node!r}")

    def column(self, node: exp.Column) -> Term:
        owners = [
            (i, schema)
            for i, (name, schema) in enumerate(self.streams)
            if (name.lower() == node.table.lower() if node.table else _has(schema, node.name))
        ]
        [(position, schema)] = owners
        index = index_of(schema, node.name)
        type_ = _arrow_type(schema.field(index).type)
        return Term(f"t{position}.v{index}", type_)

    def literal(self, node: exp.Literal) -> Term:
        if node.is_string:
            return Term(quoted(node.this), SparkType("string"))
        return number(node.this)

    def negative(self, node: exp.Neg) -> Term:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number("-" + node.this.this)
        return signed(self.term(node.this), "-({})")

    def absolute(self, node: exp.Abs) -> Term:
        return signed(self.term(node.this), "abs({})")

    def truth(self, node: exp.Boolean) -> Term:
        return Term("TRUE" if node.this else "FALSE", BOOLEAN)

    def null(self, node: exp.Null) -> Term:
        return Term("NULL", NULL)

    def paren(self, node: exp.Paren) -> Term:
        return self.term(node.this)

    def both(self, node: exp.And) -> Term:
        return both(self.term(node.this), self.term(node.expression))

    def either(self, node: exp.Or) -> Term:
        return either(self.term(node.this), self.term(node.expression))

    def negation(self, node: exp.Not) -> Term:
        inner = self.term(node.this)
        return Term(f"(NOT {to(inner, BOOLEAN).sql})", BOOLEAN, inner.fails)

    def comparison(self, node: exp.Binary) -> Term:
        return compare(_SIGNS[type(node)], self.term(node.this), self.term(node.expression))

    def between(self, node: exp.Between) -> Term:
        item = self.term(node.this)
        low, high = self.term(node.args["low"]), self.term(node.args["high"])
        return both(compare(">=", item, low), compare("<=", item, high))

    def among(self, node: exp.In) -> Term:
        item, choices = self.term(node.this), [self.term(choice) for choice in node.expressions]
        common = item.type
        for choice in choices:
            common = common_type(common, choice.type)
        tests = [compare("=", to(item, common), to(choice, common)) for choice in choices]
        whole = tests[0]
        for test in tests[1:]:
            whole = either(whole, test)
        return whole

    def is_(self, node: exp.Is) -> Term:
        inner = self.term(node.this)
        what = {exp.Null: "NULL"}.get(type(node.expression)) or str(bool(node.expression.this)).upper()
        return Term(f"({inner.sql} IS {what})", BOOLEAN, inner.fails)

    def arithmetic(self, node: exp.Binary) -> Term:
        return arithmetic(_SIGNS[type(node)], self.term(node.this), self.term(node.expression))

    def like(self, node: exp.Like) -> Term:
        text, pattern = self.term(node.this), self.term(node.expression)
        sql = f"({text.sql} LIKE {pattern.sql} ESCAPE '\\')"
        return Term(f"(NOT {sql})" if node.args.get("negate") else sql, BOOLEAN, any_of(text.fails, pattern.fails))

    def cased(self, node: exp.Upper | exp.Lower) -> Term:
        inner = self.term(node.this)
        return Term(f"{type(node).__name__.lower()}({inner.sql})", inner.type, inner.fails)

    def joined(self, node: exp.DPipe) -> Term:
        a, b = self.term(node.this), self.term(node.expression)
        return Term(f"({a.sql} || {b.sql})", a.type, any_of(a.fails, b.fails))

    def part(self, node: exp.Substring) -> Term:
        inner = self.term(node.this)
        start, length = (int(node.args[name].this) for name in ("start", "length"))
        return Term(f"substring({inner.sql}, {start}, {length})", inner.type, inner.fails)

    def case(self, node: exp.Case) -> Term:
        """Lazy: what is not chosen does not fail."""
        [branch] = node.args["ifs"]
        condition, chosen, other = (
            self.term(part) for part in (branch.this, branch.args["true"], node.args["default"])
        )
        common = common_type(chosen.type, other.type)
        sql = f"(CASE WHEN {condition.sql} THEN {to(chosen, common).sql} ELSE {to(other, common).sql} END)"
        fails = f"(CASE WHEN {condition.sql} THEN {chosen.fails} ELSE {other.fails} END)"
        return Term(sql, common, any_of(condition.fails, fails))

    def greatest(self, node: exp.Greatest) -> Term:
        terms = [self.term(part) for part in (node.this, *node.expressions)]
        return Term(f"greatest({', '.join(t.sql for t in terms)})", terms[0].type, any_of(*(t.fails for t in terms)))

    def days(self, node: exp.DateDiff) -> Term:
        a, b = self.term(node.this), self.term(node.expression)
        return Term(f"({a.sql} - {b.sql})", SparkType("int"), any_of(a.fails, b.fails))

    def interval(self, node: exp.Interval) -> Term:
        unit = node.args["unit"].name.upper().removesuffix("S")
        micros = Decimal(node.this.this) * INTERVAL_UNITS[unit]
        return Term(f"CAST({int(micros)} AS HUGEINT)", INTERVAL)

    def cast(self, node: exp.Cast) -> Term:
        target = node.to.sql(dialect="spark").lower()
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            return moment(node.this.this, target)
        inner = self.term(node.this)
        if target not in (*INTEGERS, *FLOATS):
            raise CannotSay(f"no words for a cast to {target}")
        return to(inner, SparkType(target))

    _RULES: ClassVar = {
        exp.Column: column,
        exp.Literal: literal,
        exp.Neg: negative,
        exp.Abs: absolute,
        exp.Boolean: truth,
        exp.Null: null,
        exp.Paren: paren,
        exp.And: both,
        exp.Or: either,
        exp.Not: negation,
        exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NullSafeEQ | exp.NullSafeNEQ: comparison,
        exp.Between: between,
        exp.In: among,
        exp.Is: is_,
        exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod: arithmetic,
        exp.Like: like,
        exp.Upper | exp.Lower: cased,
        exp.DPipe: joined,
        exp.Substring: part,
        exp.Case: case,
        exp.Greatest: greatest,
        exp.DateDiff: days,
        exp.Interval: interval,
        exp.Cast: cast,
    }


_SIGNS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}


def _has(schema: pa.Schema, name: str) -> bool:
    return name.lower() in [other.lower() for other in schema.names]
