"""The second judge: DuckDB, from the raw tables and the user's own predicate text, sharing no code with handfast.

Spark's types are derived here once more, and every implicit conversion is written out, because DuckDB types differently
(TINYINT + 1 is a TINYINT there, FLOAT + 0.5 a FLOAT). Integers, decimals (unscaled), times, intervals and dates are
HUGEINTs in the query, so nothing overflows inside DuckDB; whether Spark would have failed travels beside the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tests.judges.rows import rows_of

FIRST_TIME, LAST_TIME = -62135596800000000, 253402300799999999
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "timestamp": 64, "timestamp_ntz": 64, "interval": 64}
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
MOST_DIGITS, LEAST_SCALE = 38, 6
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
DUCKDB = {"boolean": "BOOLEAN", "string": "VARCHAR", "binary": "BLOB", "float": "FLOAT", "double": "DOUBLE"}
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


class CannotSay(NotImplementedError):
    """A predicate this judge has no words for."""


@dataclass(frozen=True)
class SparkType:
    """A type as Spark names it; digits and scale for decimals."""

    name: str
    digits: int = 0
    scale: int = 0

    @property
    def exact(self) -> bool:
        return self.name in INTEGERS or self.name == "decimal"

    @property
    def numeric(self) -> bool:
        return self.exact or self.name in FLOATS


@dataclass(frozen=True)
class Term:
    """A piece of the query: its value (NULL where it fails), and the condition under which Spark's ANSI mode fails."""

    sql: str
    type: SparkType
    fails: str = "FALSE"
    constant: Decimal | float | None = None  # a numeric literal, to be converted here


BOOLEAN, NULL, INTERVAL = SparkType("boolean"), SparkType("null"), SparkType("interval")


ONE_SIDED = ("semi", "anti")
PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


def matches(spec: Any, tables: Mapping[str, pa.Table], watermark: int | None = None) -> list[tuple[int | None, ...]]:
    """Every row of the result as the row numbers of its members, None where it has none, and its match_time."""
    connection = _connection()
    for position, stream in enumerate(spec.streams):
        table = tables[stream.name]
        columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
        names = [f"c{i}" for i in range(len(columns))]
        numbers = pa.array(range(len(table)), pa.int64())
        connection.register(f"raw{position}", pa.table([*columns, numbers], names=[*names, "row"]))
    return connection.sql(query(spec, {name: table.schema for name, table in tables.items()}, watermark)).fetchall()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One database for all queries: starting one takes longer than most of them."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    return connection


def result(spec: Any, tables: Mapping[str, pa.Table], watermark: int | None = None) -> list[tuple[Any, ...]]:
    """The result's rows: all columns of the streams it has, then match_time; at the end, or at a watermark."""
    rows = [rows_of(tables[stream.name]) for stream in spec.streams]
    shown = (0,) if spec.how in ONE_SIDED else range(len(rows))
    nothing = [(None,) * len(tables[stream.name].column_names) for stream in spec.streams]
    made = []
    for *members, time in matches(spec, tables, watermark):
        values = [rows[k][members[k]].values() if members[k] is not None else nothing[k] for k in shown]
        made.append((*(value for own in values for value in own), time))
    return made


def query(spec: Any, schemas: Mapping[str, pa.Schema], watermark: int | None = None) -> str:
    """The join as one SQL query over the raw tables `raw0`, `raw1`, ….

    Their columns are called c0, c1, … and `row`; times are the integers they are in Arrow.
    """
    translator = _Translator([(stream.name, schemas[stream.name]) for stream in spec.streams])
    on = translator.term(sqlglot.parse_one(spec.on, dialect="databricks"))
    streams = range(len(spec.streams))
    stamped = [
        f"stamped{i} AS ({_stamped(i, stream, schemas[stream.name], spec.order)})"
        for i, stream in enumerate(spec.streams)
    ]
    every = " UNION ALL ".join(
        f"SELECT {i} AS stream, row, {_place(stream, schemas[stream.name], spec.order)} AS place, seq FROM stamped{i}"
        for i, stream in enumerate(spec.streams)
    )
    counts = ", ".join(f"count(*) FILTER (stream = {i}) OVER before AS seen{i}" for i in streams)
    seen = ", ".join(f"seen{i}" for i in streams)
    tuples = [
        f"t{i} AS (SELECT s.*, rank, {seen} FROM stamped{i} s JOIN seen r ON r.stream = {i} AND r.row = s.row)"
        for i in streams
    ]
    at_rank = f"greatest({', '.join(f't{i}.rank' for i in streams)})"
    held = " AND ".join(
        f"(t{i}.rank = {at_rank} OR {_held(s.window, i, at_rank, streams)})" for i, s in enumerate(spec.streams)
    )
    return f"""
WITH {", ".join(stamped)},
     ranks AS (SELECT stream, row, row_number() OVER (ORDER BY place NULLS FIRST, stream, seq) AS rank FROM ({every})),
     seen AS (SELECT *, {counts}
              FROM ranks WINDOW before AS (ORDER BY rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
     {", ".join(tuples)},
     found AS (SELECT {", ".join(f"t{i}.row AS row{i}" for i in streams)}, {at_rank} AS at_rank,
                      {_of_at("time", at_rank, streams)} AS at_time
               FROM {", ".join(f"t{i}" for i in streams)}
               WHERE {held} AND ({on.fails}) IS NOT TRUE AND ({on.sql}))
{" UNION ALL ".join(_parts(spec, watermark))}"""


def _parts(spec: Any, watermark: int | None) -> list[str]:
    """The queries whose rows together are the result."""
    streams = range(len(spec.streams))
    rows = ", ".join(f"row{i}" for i in streams)
    parts = []
    if spec.how == "semi":
        time = "arg_min(at_time, at_rank)" if spec.in_order else "any_value(t0.time)"
        parts.append(f"SELECT row0, NULL AS row1, {time} FROM found JOIN t0 ON t0.row = row0 GROUP BY row0")
    elif spec.how not in ONE_SIDED:
        parts.append(f"SELECT {rows}, at_time FROM found")
    for kept in PRESERVED.get(spec.how, ()):
        own = ", ".join(f"t{kept}.row AS row{i}" if i == kept else f"NULL AS row{i}" for i in streams)
        over = _over(spec.streams[kept].window, kept, watermark)
        parts.append(
            f"SELECT {own}, t{kept}.time FROM t{kept} WHERE row NOT IN (SELECT row{kept} FROM found) AND {over}"
        )
    return parts


def _over(window: Any, stream: int, watermark: int | None) -> str:
    """Whether no tuple still to come can meet this one."""
    if watermark is None:
        return "TRUE"
    if hasattr(window, "rows"):
        return f"t{stream}.seq <= (SELECT count(*) FROM t{stream}) - {window.rows}"
    return f"t{stream}.time + {window.length} <= {watermark}::HUGEINT"


def _held(window: Any, stream: int, at_rank: str, streams: range) -> str:
    """Whether the tuple of this stream is in its window at the arrival of the last one."""
    if hasattr(window, "rows"):
        return f"{_of_at(f'seen{stream}', at_rank, streams)} - {window.rows} < t{stream}.seq"  # seq counts from 1 here
    return f"{_of_at('time', at_rank, streams)} - t{stream}.time < {window.length}"


def _of_at(column: str, at_rank: str, streams: range) -> str:
    """A column of the match's last tuple."""
    cases = " ".join(f"WHEN t{i}.rank THEN t{i}.{column}" for i in streams)
    return f"(CASE {at_rank} {cases} END)"


def _place(stream: Any, schema: pa.Schema, order: str) -> str:
    """What a tuple's place among those of all streams goes by."""
    return f"c{_index(schema, stream.sequence)}" if order == "arrival" else "time"


def _stamped(position: int, stream: Any, schema: pa.Schema, order: str) -> str:
    """A stream's rows with time and place in their stream; those without a valid time are left out."""
    index = _index(schema, stream.time)
    micros = _micros(f"c{index}", schema.field(index).type)
    ties = [*([_index(schema, stream.sequence)] if stream.sequence else []), *range(len(schema))]
    columns = ", ".join(f"c{i} ASC NULLS FIRST" for i in ties)
    first = "" if order == "arrival" else "time, "
    return f"""SELECT *, row_number() OVER (ORDER BY {first}{columns}) AS seq
      FROM (SELECT *, {micros} AS time FROM raw{position})
      WHERE time BETWEEN {max(FIRST_TIME, stream.valid_from)} AND {min(LAST_TIME, stream.valid_to)}"""


def _micros(sql: str, arrow: pa.TimestampType) -> str:
    """A time's integer in microseconds, nanoseconds floored."""
    if arrow.unit == "ns":
        return f"(({sql} - ({sql} % 1000 + 1000) % 1000) // 1000)"
    factor = {"s": 10**6, "ms": 10**3, "us": 1}[arrow.unit]
    return f"({sql} * {factor})"


def _index(schema: pa.Schema, name: str) -> int:
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
        index = _index(schema, node.name)
        type_ = _arrow_type(schema.field(index).type)
        sql = f"t{position}.c{index}"
        if type_.name in ("timestamp", "timestamp_ntz"):
            sql = f"CAST({_micros(sql, schema.field(index).type)} AS HUGEINT)"
        elif type_.name == "date":
            sql = f"CAST({sql} - DATE '1970-01-01' AS HUGEINT)"
        elif type_.name == "decimal":
            # the text of a decimal always shows all digits of its scale
            sql = f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"
        elif type_.name in INTEGERS:
            sql = f"CAST({sql} AS HUGEINT)"
        return Term(sql, type_)

    def literal(self, node: exp.Literal) -> Term:
        if node.is_string:
            return Term(_quoted(node.this), SparkType("string"))
        return _number(node.this)

    def negative(self, node: exp.Neg) -> Term:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number("-" + node.this.this)
        return _signed(self.term(node.this), "-({})")

    def absolute(self, node: exp.Abs) -> Term:
        return _signed(self.term(node.this), "abs({})")

    def truth(self, node: exp.Boolean) -> Term:
        return Term("TRUE" if node.this else "FALSE", BOOLEAN)

    def null(self, node: exp.Null) -> Term:
        return Term("NULL", NULL)

    def paren(self, node: exp.Paren) -> Term:
        return self.term(node.this)

    def both(self, node: exp.And) -> Term:
        return _and(self.term(node.this), self.term(node.expression))

    def either(self, node: exp.Or) -> Term:
        return _or(self.term(node.this), self.term(node.expression))

    def negation(self, node: exp.Not) -> Term:
        inner = self.term(node.this)
        return Term(f"(NOT {_to(inner, BOOLEAN).sql})", BOOLEAN, inner.fails)

    def comparison(self, node: exp.Binary) -> Term:
        return _compare(_SIGNS[type(node)], self.term(node.this), self.term(node.expression))

    def between(self, node: exp.Between) -> Term:
        item = self.term(node.this)
        low, high = self.term(node.args["low"]), self.term(node.args["high"])
        return _and(_compare(">=", item, low), _compare("<=", item, high))

    def among(self, node: exp.In) -> Term:
        item, choices = self.term(node.this), [self.term(choice) for choice in node.expressions]
        common = item.type
        for choice in choices:
            common = _common(common, choice.type)
        tests = [_compare("=", _to(item, common), _to(choice, common)) for choice in choices]
        whole = tests[0]
        for test in tests[1:]:
            whole = _or(whole, test)
        return whole

    def is_(self, node: exp.Is) -> Term:
        inner = self.term(node.this)
        what = {exp.Null: "NULL"}.get(type(node.expression)) or str(bool(node.expression.this)).upper()
        return Term(f"({inner.sql} IS {what})", BOOLEAN, inner.fails)

    def arithmetic(self, node: exp.Binary) -> Term:
        return _arithmetic(_SIGNS[type(node)], self.term(node.this), self.term(node.expression))

    def like(self, node: exp.Like) -> Term:
        text, pattern = self.term(node.this), self.term(node.expression)
        sql = f"({text.sql} LIKE {pattern.sql} ESCAPE '\\')"
        return Term(f"(NOT {sql})" if node.args.get("negate") else sql, BOOLEAN, _any(text.fails, pattern.fails))

    def cased(self, node: exp.Upper | exp.Lower) -> Term:
        inner = self.term(node.this)
        return Term(f"{type(node).__name__.lower()}({inner.sql})", inner.type, inner.fails)

    def joined(self, node: exp.DPipe) -> Term:
        a, b = self.term(node.this), self.term(node.expression)
        return Term(f"({a.sql} || {b.sql})", a.type, _any(a.fails, b.fails))

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
        common = _common(chosen.type, other.type)
        sql = f"(CASE WHEN {condition.sql} THEN {_to(chosen, common).sql} ELSE {_to(other, common).sql} END)"
        fails = f"(CASE WHEN {condition.sql} THEN {chosen.fails} ELSE {other.fails} END)"
        return Term(sql, common, _any(condition.fails, fails))

    def greatest(self, node: exp.Greatest) -> Term:
        terms = [self.term(part) for part in (node.this, *node.expressions)]
        return Term(f"greatest({', '.join(t.sql for t in terms)})", terms[0].type, _any(*(t.fails for t in terms)))

    def days(self, node: exp.DateDiff) -> Term:
        a, b = self.term(node.this), self.term(node.expression)
        return Term(f"({a.sql} - {b.sql})", SparkType("int"), _any(a.fails, b.fails))

    def interval(self, node: exp.Interval) -> Term:
        unit = node.args["unit"].name.upper().removesuffix("S")
        micros = Decimal(node.this.this) * INTERVAL_UNITS[unit]
        return Term(f"CAST({int(micros)} AS HUGEINT)", INTERVAL)

    def cast(self, node: exp.Cast) -> Term:
        target = node.to.sql(dialect="spark").lower()
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            return _moment(node.this.this, target)
        inner = self.term(node.this)
        if target not in (*INTEGERS, *FLOATS):
            raise CannotSay(f"no words for a cast to {target}")
        return _to(inner, SparkType(target))

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


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(text: str) -> Term:
    if "e" in text.lower():
        return _float_constant(float(text), SparkType("double"))
    value = Decimal(text)
    if "." in text:
        scale = len(text.split(".")[1])
        digits = max(len(value.as_tuple().digits), scale)
        return Term(f"CAST({int(value.scaleb(scale))} AS HUGEINT)", SparkType("decimal", digits, scale), constant=value)
    number = int(text)
    name = next((n for n in ("int", "bigint") if -(2 ** (BITS[n] - 1)) <= number < 2 ** (BITS[n] - 1)), "decimal")
    digits = len(str(abs(number))) if name == "decimal" else 0
    return Term(f"CAST({_quoted(str(number))} AS HUGEINT)", SparkType(name, digits), constant=value)


def _float_constant(value: Decimal | float, type_: SparkType) -> Term:
    if isinstance(value, float) and type_.name == "float":
        return _to(Term(f"CAST('{value}' AS DOUBLE)", SparkType("double")), type_)
    return Term(f"CAST('{value}' AS {DUCKDB[type_.name]})", type_, constant=value)


def _moment(text: str, target: str) -> Term:
    if target == "date":
        days = (date.fromisoformat(text) - date(1970, 1, 1)).days
        return Term(f"CAST({days} AS HUGEINT)", SparkType("date"))
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return Term(f"CAST({micros} AS HUGEINT)", SparkType(target))


def _any(*conditions: str) -> str:
    said = [condition for condition in conditions if condition != "FALSE"]
    return f"({' OR '.join(said)})" if said else "FALSE"


def _and(a: Term, b: Term) -> Term:
    """Lazy from left to right: what stands on the right can fail only if the left is not false."""
    left, right = _to(a, BOOLEAN), _to(b, BOOLEAN)
    lazily = "FALSE" if b.fails == "FALSE" else f"({left.sql} IS NOT FALSE AND {b.fails})"
    return Term(f"({left.sql} AND {right.sql})", BOOLEAN, _any(a.fails, lazily))


def _or(a: Term, b: Term) -> Term:
    left, right = _to(a, BOOLEAN), _to(b, BOOLEAN)
    lazily = "FALSE" if b.fails == "FALSE" else f"({left.sql} IS NOT TRUE AND {b.fails})"
    return Term(f"({left.sql} OR {right.sql})", BOOLEAN, _any(a.fails, lazily))


def _compare(sign: str, a: Term, b: Term) -> Term:
    common = _common(*_beside(a, b))
    x, y = _to(a, common), _to(b, common)
    return Term(f"({x.sql} {sign} {y.sql})", BOOLEAN, _any(x.fails, y.fails))


def _beside(a: Term, b: Term) -> tuple[SparkType, SparkType]:
    """Both types; an integer literal beside a decimal has the digits it is written with."""

    def type_(term: Term, other: Term) -> SparkType:
        if other.type.name == "decimal" and term.type.name in INTEGERS and term.constant is not None:
            return SparkType("decimal", len(str(abs(int(term.constant)))), 0)
        return term.type

    return type_(a, b), type_(b, a)


def _common(a: SparkType, b: SparkType) -> SparkType:
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if not (a.numeric and b.numeric):
        raise CannotSay(f"{a} and {b} have no common type")
    if a.name in FLOATS or b.name in FLOATS:
        return SparkType("double")  # equal types were met above: two floats stay float
    if a.name in INTEGERS and b.name in INTEGERS:
        return max(a, b, key=lambda t: BITS[t.name])
    a, b = _decimal(a), _decimal(b)
    whole, scale = max(a.digits - a.scale, b.digits - b.scale), max(a.scale, b.scale)
    return SparkType("decimal", min(whole + scale, MOST_DIGITS), min(scale, MOST_DIGITS - whole))


def _adjusted(digits: int, scale: int) -> SparkType:
    """The type of a result: with too many digits it loses some behind the point."""
    if digits <= MOST_DIGITS:
        return SparkType("decimal", digits, scale)
    return SparkType("decimal", MOST_DIGITS, max(MOST_DIGITS - digits + scale, min(scale, LEAST_SCALE)))


def _decimal(type_: SparkType) -> SparkType:
    return type_ if type_.name == "decimal" else SparkType("decimal", DIGITS[type_.name], 0)


def _rescaled(sql: str, scale: int, target: SparkType, *fails: str) -> Term:
    """An unscaled integer with another number of digits behind the point, halves away from zero."""
    shift = target.scale - scale
    if shift >= 0:
        moved = f"({sql} * {_huge(10**shift)})"
    else:
        unit, half = _huge(10**-shift), _huge(10**-shift // 2)
        moved = f"(CASE WHEN {sql} < 0 THEN -((-{sql} + {half}) // {unit}) ELSE ({sql} + {half}) // {unit} END)"
    return Term(moved, target, _any(*fails, f"(abs({moved}) >= {_huge(10**target.digits)})"))


def _huge(number: int) -> str:
    return f"CAST('{number}' AS HUGEINT)"


def _to(term: Term, target: SparkType) -> Term:
    """The term converted to another type."""
    source = term.type
    if source == target:
        return term
    if source == NULL:
        return Term(f"CAST(NULL AS {DUCKDB.get(target.name, 'HUGEINT')})", target)
    if target.name in FLOATS:
        if term.constant is not None:
            return _float_constant(term.constant, target)
        return Term(_floating(term, target), target, term.fails)
    if target.name == "decimal":
        exact = _decimal(source)
        if target.scale >= exact.scale and target.digits - target.scale >= exact.digits - exact.scale:
            return Term(f"({term.sql} * {_huge(10 ** (target.scale - source.scale))})", target, term.fails)
        return _rescaled(term.sql, source.scale, target, term.fails)
    if target.name in INTEGERS and source.name in INTEGERS and BITS[target.name] >= BITS[source.name]:
        return Term(term.sql, target, term.fails, term.constant)
    raise CannotSay(f"no words for a cast from {source} to {target}")


def _floating(term: Term, target: SparkType) -> str:
    if term.type.name == "float":
        return f"CAST({term.sql} AS DOUBLE)"
    if term.type.name == "double":
        # DuckDB refuses what Spark lets become infinite
        return (
            f"CASE WHEN TRY(CAST({term.sql} AS FLOAT)) IS NOT NULL THEN TRY(CAST({term.sql} AS FLOAT)) "
            f"WHEN {term.sql} > 0 THEN CAST('inf' AS FLOAT) WHEN {term.sql} < 0 THEN CAST('-inf' AS FLOAT) END"
        )
    whole = f"CAST({term.sql} AS BIGINT)"  # by way of BIGINT: from HUGEINT, DuckDB rounds twice
    if term.type.scale == 0 and term.type.name != "decimal":
        return f"CAST({whole} AS {DUCKDB[target.name]})"
    if term.type.digits > 15:  # by way of text, which DuckDB reads with one rounding
        digits = f"lpad(CAST(abs({term.sql}) AS VARCHAR), {term.type.digits + 1}, '0')"
        text = f"(CASE WHEN {term.sql} < 0 THEN '-' ELSE '' END || {digits} || 'e-{term.type.scale}')"
        return f"CAST({text} AS {DUCKDB[target.name]})"
    if target.name == "float":
        raise CannotSay(f"no exact words for a cast from {term.type} to {target.name}")
    return f"(CAST({whole} AS DOUBLE) / 1e{term.type.scale})"


def _in_range(sql: str, type_: SparkType) -> str:
    half = 2 ** (BITS[type_.name] - 1)
    return f"{sql} BETWEEN CAST('{-half}' AS HUGEINT) AND CAST('{half - 1}' AS HUGEINT)"


def _checked(sql: str, type_: SparkType, *fails: str) -> Term:
    """The outcome of integer arithmetic: it fails outside the range of its type."""
    inside = _in_range(sql, type_)
    return Term(f"(CASE WHEN {inside} THEN {sql} END)", type_, _any(*fails, f"(NOT ({inside}))"))


def _signed(term: Term, form: str) -> Term:
    sql = form.format(term.sql)
    if term.type.name in FLOATS or term.type.name == "decimal":
        return Term(f"({sql})", term.type, term.fails)
    return _checked(f"({sql})", term.type, term.fails)


def _arithmetic(sign: str, a: Term, b: Term) -> Term:
    temporal = _temporal(sign, a.type, b.type)
    if temporal is not None:
        if temporal.name == "date":  # these days do not go round
            return Term(f"({a.sql} {sign} {b.sql})", temporal, _any(a.fails, b.fails))
        return _checked(f"({a.sql} {sign} {b.sql})", temporal, a.fails, b.fails)
    common = _common(*_beside(a, b))
    if common == NULL or (sign == "/" and common.name != "decimal"):
        common = SparkType("double")
    if common.name == "decimal":
        return _decimal_arithmetic(sign, a, b, common)
    x, y = _to(a, common), _to(b, common)
    fails = [a.fails, b.fails]
    divisor = y.sql
    if sign in "/%":
        fails.append(f"({x.sql} IS NOT NULL AND {y.sql} = 0)")
        divisor = f"NULLIF({y.sql}, 0)"
    sql = f"({x.sql} {sign} {divisor})"
    if common.name in FLOATS:
        return Term(sql, common, _any(*fails))
    return _checked(sql, common, *fails)


def _decimal_arithmetic(sign: str, a: Term, b: Term, common: SparkType) -> Term:
    left, right = (_decimal(t if t != NULL else common) for t in _beside(a, b))
    x, y = _to(a, left).sql, _to(b, right).sql
    whole, scale = max(left.digits - left.scale, right.digits - right.scale), max(left.scale, right.scale)
    if sign == "*":
        product = left.scale + right.scale
        return _rescaled(f"({x} * {y})", product, _adjusted(left.digits + right.digits + 1, product), a.fails, b.fails)
    if sign == "/":
        digits = max(LEAST_SCALE, left.scale + right.digits + 1)
        target = _adjusted(left.digits - left.scale + right.scale + digits, digits)
        zero = f"({x} IS NOT NULL AND {y} = 0)"
        shift = target.scale + right.scale - left.scale
        doubled = f"((2 * abs({x}) * {_huge(10**shift)} + abs({y})) // (2 * abs(NULLIF({y}, 0))))"
        return Term(f"({doubled} * sign({x}) * sign({y}))", target, _any(a.fails, b.fails, zero))
    if sign == "%":
        raise CannotSay("remainders of decimals")
    x, y = (f"({sql} * {_huge(10 ** (scale - t.scale))})" for sql, t in ((x, left), (y, right)))
    return _rescaled(f"({x} {sign} {y})", scale, _adjusted(whole + scale + 1, scale), a.fails, b.fails)


def _temporal(sign: str, a: SparkType, b: SparkType) -> SparkType | None:
    moments = ("timestamp", "timestamp_ntz")
    if sign in "+-" and a.name == "date" and b.name in INTEGERS:
        return a
    if sign == "-" and a.name in moments and a == b:
        return INTERVAL
    if sign in "+-" and b == INTERVAL and a.name in (*moments, "interval"):
        return a
    if sign == "+" and a == INTERVAL and b.name in moments:
        return b
    return None
