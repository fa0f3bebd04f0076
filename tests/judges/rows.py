"""Types and rows as the judges see them: Arrow columns in Spark's terms, DuckDB's result as the oracle has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from handfast.judge.rows import Row, multiset, plain_values, result_of, rows_of, tables_of
from handfast.spec import types
from handfast.spec.schema import Schema
from handfast.spec.types import Kind, Type
from tests.judges import duckdb_judge

__all__ = [
    "Row",
    "by_duckdb",
    "multiset",
    "plain_values",
    "result_of",
    "rows_of",
    "schemas_of",
    "tables_of",
    "type_of",
]

_PLAIN = {
    pa.bool_(): types.BOOLEAN,
    pa.int8(): types.INT8,
    pa.int16(): types.INT16,
    pa.int32(): types.INT32,
    pa.int64(): types.INT64,
    pa.float32(): types.FLOAT,
    pa.float64(): types.DOUBLE,
    pa.date32(): types.DATE,
    pa.null(): types.NULL,
}


def type_of(arrow: pa.DataType) -> Type:
    """The type of an Arrow column in Spark's terms."""
    if pa.types.is_dictionary(arrow):
        return type_of(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return types.TIMESTAMP if arrow.tz else types.TIMESTAMP_NTZ
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return types.STRING
    if pa.types.is_decimal(arrow) and arrow.precision <= 38:
        return types.decimal(arrow.precision, arrow.scale)
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow):
        return types.BINARY
    return _PLAIN.get(arrow, Type(Kind.PAYLOAD, label=str(arrow)))


def schema_of(schema: pa.Schema) -> Schema:
    """An Arrow schema in Spark's terms."""
    return Schema(tuple((field.name, type_of(field.type)) for field in schema))


def schemas_of(tables: Mapping[str, pa.Table]) -> dict[str, Schema]:
    """The schema of every stream."""
    return {name: schema_of(table.schema) for name, table in tables.items()}


def by_duckdb(tables: Mapping[str, pa.Table], watermark: int | None = None, **words: Any) -> list[tuple[Any, ...]]:
    """DuckDB's result for a join in a user's words: all columns of the streams it has, then match_time."""
    rows = [result_of(table) for table in tables.values()]
    nothing = [(None,) * table.num_columns for table in tables.values()]
    shown = (0,) if words.get("how") in ("semi", "anti") else range(len(rows))
    made = []
    for *members, time, _ in result_of(duckdb_judge.matches(tables, watermark, **words)):
        own = [rows[k][members[k]] if members[k] is not None else nothing[k] for k in shown]
        made.append((*(value for values in own for value in values), time))
    return made
