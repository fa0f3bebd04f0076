"""Large results compared as multisets of the numbers of their rows, by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.judges import duckdb_judge
from tests.judges.duckdb_judge.database import connect

ID = "id"  # the column of every table that has a row's number


def wanted(tables: Mapping[str, pa.Table], **words: Any) -> pa.Table:
    """What DuckDB finds, as the numbers of the rows, then match_time in microseconds, then the rank it stands by."""
    found = duckdb_judge.matches(tables, **words)
    shown = list(tables)[:1] if words.get("how") in ("semi", "anti") else list(tables)
    numbers = {name: tables[name][ID].take(found[f"row{k}"]) for k, name in enumerate(shown)}
    return pa.table({**numbers, "time": found["time"].cast(pa.int64()), "rank": found["rank"]})


def numbers_of(result: pa.Table, streams: Sequence[str]) -> pa.Table:
    """An engine's result as the numbers of its rows, then match_time in microseconds."""
    times = result["match_time"].cast(pa.timestamp("us", result["match_time"].type.tz)).cast(pa.int64())
    shown = [name for name in streams if f"{name}_{ID}" in result.column_names]
    return pa.table({**{name: result[f"{name}_{ID}"] for name in shown}, "time": times})


def difference(expected: pa.Table, given: pa.Table, certain: pa.Table | None = None) -> str:
    """What one has and the other lacks, in words; nothing if they are the same multiset.

    Where only some of the expected rows are `certain` to be given by now, the others may be missing.
    """
    expected, certain = (table.drop_columns(["rank"]) for table in (expected, expected if certain is None else certain))
    with connect() as connection:
        connection.register("expected", expected)
        connection.register("certain", certain)
        connection.register("given", given)
        lost = connection.sql("FROM certain EXCEPT ALL FROM given").to_arrow_table()
        extra = connection.sql("FROM given EXCEPT ALL FROM expected").to_arrow_table()
    if not len(lost) and not len(extra):
        return ""
    return (
        f"of {len(expected)} rows {len(lost)} are lost, like {lost.slice(0, 3).to_pylist()}, "
        f"and {len(extra)} are too many, like {extra.slice(0, 3).to_pylist()}"
    )


def steps_back(expected: pa.Table, given: pa.Table) -> int:
    """How often a row that is given stands behind one of a higher rank."""
    by = ", ".join(f'"{name}"' for name in given.column_names)
    with connect() as connection:
        connection.register("expected", expected)
        connection.register("given", given.append_column("place", pa.array(range(len(given)), pa.int64())))
        [(count,)] = connection.sql(
            f"SELECT count(*) FROM (SELECT rank < lag(rank) OVER (ORDER BY place) AS back FROM given "
            f"JOIN (SELECT DISTINCT * FROM expected) USING ({by})) WHERE back"
        ).fetchall()
    return int(count)


def carries_other_values(result: pa.Table, tables: Mapping[str, pa.Table]) -> str:
    """A column of the result that does not have the values of the rows whose numbers stand beside it, or nothing."""
    for stream, table in tables.items():
        if f"{stream}_{ID}" not in result.column_names:
            continue
        rows = table.take(result[f"{stream}_{ID}"])
        for name in table.column_names:
            if not _same(rows[name], result[f"{stream}_{name}"]):
                return f"{stream}_{name}"
    return ""


def _same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(a.type):  # NaN is one value here
        nan = [pc.fill_null(pc.is_nan(column), False) for column in (a, b)]
        return nan[0].equals(nan[1]) and pc.if_else(nan[0], None, a).equals(pc.if_else(nan[1], None, b))
    if pa.types.is_dictionary(a.type):
        a, b = (column.cast(a.type.value_type) for column in (a, b))
    return bool(a.equals(b))
