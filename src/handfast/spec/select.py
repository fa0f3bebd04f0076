"""The columns of the result: which of the streams' columns it has, in which order, by which names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from handfast.errors import SpecError
from handfast.spec.schema import Schema, nearest

MATCH_TIME = "match_time"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the result: a stream's own, or, without a stream, the time of the match."""

    stream: int | None
    column: str
    name: str


def every_field(schemas: Mapping[str, Schema], streams: Sequence[int]) -> tuple[Field, ...]:
    """Every column of these streams as `<stream>_<column>`, then `match_time`."""
    names = list(schemas)
    own = [Field(k, column, f"{names[k]}_{column}") for k in streams for column in schemas[names[k]].names]
    return (*own, Field(None, MATCH_TIME, MATCH_TIME))


def select_fields(select: str, schemas: Mapping[str, Schema], streams: Sequence[int]) -> tuple[Field, ...]:
    """The columns that a SQL list names: `r.price, s.price AS bid, t.*, match_time`."""
    fields = [field for item in _items(select) for field in _fields(item, schemas, streams)]
    names = [field.name.lower() for field in fields]
    twice = [field.name for field in fields if names.count(field.name.lower()) > 1]
    if twice:
        raise SpecError(f"Two columns of the result would be called {twice[0]!r}; name one of them with AS")
    return tuple(fields)


def _items(select: str) -> list[exp.Expression]:
    if not isinstance(select, str) or not select.strip():
        raise SpecError(f"select must be a list of columns like 'r.price, s.price AS bid', not {select!r}")
    try:
        query = sqlglot.parse_one(f"SELECT {select}", dialect="databricks")
    except (ParseError, TokenError) as error:
        raise SpecError(f"select={select!r} is not a SQL list: {str(error).splitlines()[0]}") from None
    if not isinstance(query, exp.Select) or any(value for key, value in query.args.items() if key != "expressions"):
        raise SpecError(f"select={select!r} must be a list of columns alone, without FROM, WHERE or DISTINCT")
    return list(query.expressions)


def _fields(item: exp.Expression, schemas: Mapping[str, Schema], streams: Sequence[int]) -> list[Field]:
    alias = item.alias if isinstance(item, exp.Alias) else None
    column = item.this if isinstance(item, exp.Alias) else item
    names = list(schemas)
    if isinstance(column, exp.Star):
        return list(every_field(schemas, streams))
    if not isinstance(column, exp.Column):
        raise SpecError(
            f"{item.sql(dialect='spark')!r} in select is no column; compute it from the result, "
            "e.g. with DataFrame.selectExpr"
        )
    if not column.table and column.name.lower() == MATCH_TIME:
        return [Field(None, MATCH_TIME, alias or MATCH_TIME)]
    stream = _stream(column, schemas, streams)
    if isinstance(column.this, exp.Star):
        return [Field(stream, own, f"{names[stream]}_{own}") for own in schemas[names[stream]].names]
    found, _ = schemas[names[stream]].column(names[stream], column.name)
    return [Field(stream, found, alias or f"{names[stream]}_{found}")]


def _stream(column: exp.Column, schemas: Mapping[str, Schema], streams: Sequence[int]) -> int:
    names = list(schemas)
    if column.table:
        alike = [k for k, name in enumerate(names) if name.lower() == column.table.lower()]
        if not alike:
            near = nearest(column.table, tuple(names))
            hint = f"; did you mean {near!r}?" if near else ""
            raise SpecError(f"select names a stream {column.table!r} that the join does not have{hint}")
    else:
        alike = [k for k in streams if schemas[names[k]].find(column.name) is not None]
        if len(alike) != 1:
            where = "several streams" if alike else "no stream"
            raise SpecError(f"{column.name!r} in select is in {where}; name its stream, one of {', '.join(names)}")
    if alike[0] not in streams:
        raise SpecError(
            f"The result has no columns of stream {names[alike[0]]!r}: a semi or anti join gives the first's"
        )
    return alike[0]
