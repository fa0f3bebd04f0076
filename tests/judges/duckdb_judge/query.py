"""The join as one SQL query over the raw tables: stamps by `row_number`, windows by stamps, the user's condition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from tests.judges.duckdb_judge.asked import FIRST_TIME, LAST_TIME, Asked, Stream, asked
from tests.judges.duckdb_judge.translator import index_of, micros_of, translated

ONE_SIDED = ("semi", "anti")
PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


def matches(tables: Mapping[str, pa.Table], watermark: int | None = None, **words: Any) -> pa.Table:
    """Every row of the result: the row numbers of its members, NULL where it has none, then `time` and `rank`.

    These are the match_time, and the rank of the last tuple where rows are matched. `words` are the keywords of a join,
    as a user writes them; the result is that of the end, or what is decided at a watermark.
    """
    join = asked(tuple(tables), **words)
    connection = _connection()
    for position, table in enumerate(tables.values()):
        columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
        names = [f"c{i}" for i in range(len(columns))]
        numbers = pa.array(range(len(table)), pa.int64())
        connection.register(f"raw{position}", pa.table([*columns, numbers], names=[*names, "row"]))
    text = query(join, {name: table.schema for name, table in tables.items()}, watermark)
    return connection.sql(text).to_arrow_table()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One database for all queries: starting one takes longer than most of them."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    return connection


def query(join: Asked, schemas: Mapping[str, pa.Schema], watermark: int | None = None) -> str:
    """The join as one SQL query over the raw tables `raw0`, `raw1`, ….

    Their columns are called c0, c1, … and `row`; times are the integers they are in Arrow.
    """
    on = translated(join.on, [(stream.name, schemas[stream.name]) for stream in join.streams])
    streams = range(len(join.streams))
    stamped = [
        f"stamped{i} AS MATERIALIZED ({_stamped(i, stream, schemas[stream.name], join.order)})"
        for i, stream in enumerate(join.streams)
    ]
    every = " UNION ALL ".join(
        f"SELECT {i} AS stream, row, {_place(stream, schemas[stream.name], join.order)} AS place, seq FROM stamped{i}"
        for i, stream in enumerate(join.streams)
    )
    counts = ", ".join(f"count(*) FILTER (stream = {i}) OVER before AS seen{i}" for i in streams)
    seen = ", ".join(f"seen{i}" for i in streams)
    tuples = [
        f"t{i} AS MATERIALIZED (SELECT s.*, rank, {seen} FROM stamped{i} s "
        f"JOIN seen r ON r.stream = {i} AND r.row = s.row)"
        for i in streams
    ]
    at_rank = f"greatest({', '.join(f't{i}.rank' for i in streams)})"
    held = " AND ".join(
        f"(t{i}.rank = {at_rank} OR {_held(s, i, at_rank, streams)})" for i, s in enumerate(join.streams)
    )
    near = " AND ".join(_near(s, i, j, join.order) for i, s in enumerate(join.streams) for j in streams if i != j)
    return f"""
WITH {", ".join(stamped)},
     ranks AS (SELECT stream, row, row_number() OVER (ORDER BY place NULLS FIRST, stream, seq) AS rank FROM ({every})),
     seen AS MATERIALIZED (SELECT *, {counts}
              FROM ranks WINDOW before AS (ORDER BY rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
     {", ".join(tuples)},
     found AS MATERIALIZED (
               SELECT {", ".join(f"t{i}.row AS row{i}" for i in streams)}, {at_rank} AS at_rank,
                      {_of_at("time", at_rank, streams)} AS at_time,
                      {", ".join(f"{_of_at(f'seen{i}', at_rank, streams)} AS at_seen{i}" for i in streams)}
               FROM {", ".join(f"t{i}" for i in streams)}
               WHERE {near} AND {held} AND ({on.fails}) IS NOT TRUE AND ({on.sql}))
{" UNION ALL ".join(_parts(join, watermark))}"""


def _near(stream: Stream, own: int, other: int, order: str) -> str:
    """What follows from the windows for two of a match's tuples, in words that DuckDB can join by.

    The match's last tuple has seen what this one has, and is no younger; so what is over now is over then.
    """
    if stream.rows is not None:
        return f"t{other}.seen{own} < t{own}.seq + {stream.rows}"
    return f"t{other}.time < t{own}.time + {stream.length}" if order == "event" else "TRUE"


def _parts(join: Asked, watermark: int | None) -> list[str]:
    """The queries whose rows together are the result."""
    streams = range(len(join.streams))
    rows = ", ".join(f"row{i}" for i in streams)
    parts = []
    if join.how == "semi":
        time = "arg_min(at_time, at_rank)" if join.in_order else "any_value(t0.time)"
        parts.append(
            f"SELECT row0, NULL::BIGINT AS row1, {time} AS time, min(at_rank) AS rank "
            "FROM found JOIN t0 ON t0.row = row0 GROUP BY row0"
        )
    elif join.how not in ONE_SIDED:
        given = _next(join, watermark, "at_time", "at_seen")
        parts.append(f"SELECT {rows}, at_time AS time, at_rank AS rank FROM found WHERE {given}")
    for kept in PRESERVED.get(join.how, ()):
        own = ", ".join(f"t{kept}.row AS row{i}" if i == kept else f"NULL::BIGINT AS row{i}" for i in streams)
        over = _over(join.streams[kept], kept, watermark)
        parts.append(
            f"SELECT {own}, t{kept}.time AS time, NULL::BIGINT AS rank FROM t{kept} "
            f"WHERE row NOT IN (SELECT row{kept} FROM found) AND {over} "
            f"AND {_next(join, watermark, f't{kept}.time', f't{kept}.seen')}"
        )
    return parts


def _over(stream: Stream, position: int, watermark: int | None) -> str:
    """Whether no tuple still to come can meet this one."""
    if watermark is None:
        return "TRUE"
    if stream.rows is not None:
        return f"t{position}.seq <= (SELECT count(*) FROM t{position}) - {stream.rows}"
    return f"t{position}.time + {stream.length} <= {watermark}::HUGEINT"


def _next(join: Asked, watermark: int | None, time: str, seen: str) -> str:
    """Whether, in order, no row can still be given that stands before one of this time that has seen so many."""
    if watermark is None or not join.in_order:
        return "TRUE"
    conditions = ["TRUE"]
    for position in PRESERVED.get(join.how, ()):
        stream = join.streams[position]
        if stream.rows is not None:
            conditions.append(f"(SELECT count(*) FROM t{position}) - {seen}{position} >= {stream.rows}")
        else:
            conditions.append(f"{time} + {stream.length} <= {watermark}::HUGEINT")
    return " AND ".join(conditions)


def _held(stream: Stream, position: int, at_rank: str, streams: range) -> str:
    """Whether the tuple of this stream is in its window at the arrival of the last one."""
    if stream.rows is not None:  # seq counts from 1 here
        return f"{_of_at(f'seen{position}', at_rank, streams)} - {stream.rows} < t{position}.seq"
    return f"{_of_at('time', at_rank, streams)} - t{position}.time < {stream.length}"


def _of_at(column: str, at_rank: str, streams: range) -> str:
    """A column of the match's last tuple."""
    cases = " ".join(f"WHEN t{i}.rank THEN t{i}.{column}" for i in streams)
    return f"(CASE {at_rank} {cases} END)"


def _place(stream: Stream, schema: pa.Schema, order: str) -> str:
    """What a tuple's place among those of all streams goes by."""
    if order == "arrival":
        assert stream.sequence is not None, "tables have no order of arrival but this"
        return f"c{index_of(schema, stream.sequence)}"
    return "time"


def _stamped(position: int, stream: Stream, schema: pa.Schema, order: str) -> str:
    """A stream's rows with time and place in their stream; those without a valid time are left out."""
    index = index_of(schema, stream.time)
    micros = micros_of(f"c{index}", schema.field(index).type)
    ties = [*([index_of(schema, stream.sequence)] if stream.sequence else []), *range(len(schema))]
    columns = ", ".join(f"c{i} ASC NULLS FIRST" for i in ties)
    first = "" if order == "arrival" else "time, "
    return f"""SELECT *, row_number() OVER (ORDER BY {first}{columns}) AS seq
      FROM (SELECT *, {micros} AS time FROM raw{position})
      WHERE time BETWEEN {max(FIRST_TIME, stream.first)} AND {min(LAST_TIME, stream.last)}"""
