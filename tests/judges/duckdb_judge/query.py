"""The join in SQL over the raw tables: stamps by `row_number`, windows by stamps, the user's own condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.judges.duckdb_judge.asked import FIRST_TIME, LAST_TIME, Asked, Stream, asked
from tests.judges.duckdb_judge.database import connect
from tests.judges.duckdb_judge.translator import index_of, micros_of, translated, value_of

ONE_SIDED = ("semi", "anti")
PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


def matches(tables: Mapping[str, pa.Table], watermark: int | None = None, **words: Any) -> pa.Table:
    """Every row of the result: the row numbers of its members, NULL where it has none, then `time` and `rank`.

    These are the match_time, and the rank of the last tuple where rows are matched. `words` are the keywords of a join,
    as a user writes them; the result is that of the end, or what is decided at a watermark.
    """
    join = asked(tuple(tables), **words)
    schemas = [table.schema for table in tables.values()]
    with connect() as connection:
        for position, table in enumerate(tables.values()):
            columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
            names = [f"c{i}" for i in range(len(columns))]
            numbers = pa.array(range(len(table)), pa.int64())
            connection.register(f"raw{position}", pa.table([*columns, numbers], names=[*names, "row"]))
        for statement in _ranks(join, schemas):
            connection.execute(statement)
        [(reach,)] = connection.sql(_reach(join)).fetchall()
        for statement in _tuples(join, reach or 0):
            connection.execute(statement)
        return connection.sql(_result(join, schemas, watermark)).to_arrow_table()


def _ranks(join: Asked, schemas: Sequence[pa.Schema]) -> list[str]:
    """Statements that rank the rows of the raw tables `raw0`, `raw1`, …

    The columns of a raw table are called c0, c1, … and `row`; times are the integers they are in Arrow.
    """
    every = " UNION ALL ".join(
        f"SELECT {i} AS stream, row, {_place(stream, schemas[i], join.order)} AS place, time, seq FROM stamped{i}"
        for i, stream in enumerate(join.streams)
    )
    return [
        *(
            f"CREATE TEMP TABLE stamped{i} AS {_stamped(i, stream, schemas[i], join.order)}"
            for i, stream in enumerate(join.streams)
        ),
        "CREATE TEMP TABLE ranks AS SELECT stream, row, time, seq, "
        f"row_number() OVER (ORDER BY place NULLS FIRST, stream, seq) AS rank FROM ({every})",
    ]


def _tuples(join: Asked, reach: int) -> list[str]:
    """Statements that make the tuples `t0`, `t1`, …: rows with their rank, how many of each stream they have seen, and
    a bucket of ranks; and `around`, where each tuple of the first stream stands once for every choice of buckets, its
    own or a neighbour, in which the other members of its matches can lie.
    """
    streams = range(len(join.streams))
    before = " ".join(
        f"ASOF LEFT JOIN (SELECT rank, seq FROM ranks WHERE stream = {i}) AS b{i} ON r.rank > b{i}.rank"
        for i in streams
    )
    seen = ", ".join(f"coalesce(b{i}.seq, 0) AS seen{i}" for i in streams)
    made = [
        f"CREATE TEMP TABLE t{i} AS SELECT s.*, r.rank, r.rank // {reach + 1} AS bucket, {seen} "
        f"FROM (FROM ranks WHERE stream = {i}) AS r {before} JOIN stamped{i} AS s ON r.row = s.row"
        for i in streams
    ]
    chosen = ", ".join(f"bucket + d{i}.d AS bucket{i}" for i in streams[1:])
    steps = " ".join(f"CROSS JOIN (VALUES (-1), (0), (1)) AS d{i}(d)" for i in streams[1:])
    return [*made, f"CREATE TEMP TABLE around AS SELECT t0.*, {chosen} FROM t0 {steps}"]


def _reach(join: Asked) -> str:
    """How far apart in rank two tuples of a match can be, at most."""
    reaches = []
    for i, stream in enumerate(join.streams):
        if stream.rows is not None:  # in the window until so many have come behind it
            until = f"coalesce(lead(rank, {stream.rows}) OVER (ORDER BY seq), (SELECT max(rank) FROM ranks))"
            reaches.append(f"SELECT {until} - rank AS reach FROM ranks WHERE stream = {i}")
        else:
            near = f"RANGE BETWEEN {stream.length} PRECEDING AND CURRENT ROW"
            reaches.append(f"SELECT count(*) OVER (ORDER BY time::HUGEINT {near}) AS reach FROM ranks")
    return f"SELECT max(reach) FROM ({' UNION ALL '.join(reaches)})"


def _result(join: Asked, schemas: Sequence[pa.Schema], watermark: int | None) -> str:
    """The query whose rows are the result. The buckets follow from the windows, and are there for DuckDB to join by."""
    on = translated(join.on, [(stream.name, schema) for stream, schema in zip(join.streams, schemas, strict=True)])
    streams = range(len(join.streams))
    at_rank = f"greatest({', '.join(f't{i}.rank' for i in streams)})"
    held = " AND ".join(
        f"(t{i}.rank = {at_rank} OR {_held(s, i, at_rank, streams)})" for i, s in enumerate(join.streams)
    )
    others = " ".join(f"JOIN t{i} ON t{i}.bucket = t0.bucket{i}" for i in streams[1:])
    return f"""
WITH found AS MATERIALIZED (
       SELECT {", ".join(f"t{i}.row AS row{i}" for i in streams)}, {at_rank} AS at_rank,
              {_of_at("time", at_rank, streams)} AS at_time,
              {", ".join(f"{_of_at(f'seen{i}', at_rank, streams)} AS at_seen{i}" for i in streams)}
       FROM around AS t0 {others}
       WHERE {held} AND ({on.fails}) IS NOT TRUE AND ({on.sql}))
{" UNION ALL ".join(_parts(join, watermark))}"""


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
    columns = ", ".join(f"v{i} ASC NULLS FIRST" for i in ties)
    first = "" if order == "arrival" else "time, "
    values = ", ".join(f"{value_of(f'c{i}', field.type)} AS v{i}" for i, field in enumerate(schema))
    return f"""SELECT *, row_number() OVER (ORDER BY {first}{columns}) AS seq
      FROM (SELECT *, {micros} AS time, {values} FROM raw{position})
      WHERE time BETWEEN {max(FIRST_TIME, stream.first)} AND {min(LAST_TIME, stream.last)}"""
