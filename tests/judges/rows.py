"""Arrow tables as the plain rows that the oracle takes, and results as multisets that compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from handfast.spec import types
from handfast.spec.schema import Schema
from handfast.spec.types import Kind, Type

Row = dict[str, Any]

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
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


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


def rows_of(table: pa.Table) -> list[Row]:
    """An Arrow table as plain rows: times in microseconds, dates in days, decimals unscaled, lists as tuples."""
    columns = [plain_values(column) for column in table.columns]
    names = table.column_names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def tables_of(tables: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    """Every stream's rows."""
    return {name: rows_of(table) for name, table in tables.items()}


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """A column as plain values."""
    arrow = column.type
    if pa.types.is_dictionary(arrow):
        return plain_values(pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], arrow.value_type))
    if pa.types.is_timestamp(arrow):
        numbers = column.cast(pa.int64()).to_pylist()
        if arrow.unit == "ns":
            return [None if n is None else n // 1_000 for n in numbers]
        return [None if n is None else n * _MICROS[arrow.unit] for n in numbers]
    if pa.types.is_date32(arrow):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_decimal(arrow):
        return [None if d is None else _unscaled(d, arrow.scale) for d in column.to_pylist()]
    return [_frozen(value) for value in column.to_pylist()]


def _unscaled(value: Decimal, scale: int) -> int:
    """All its digits, whatever the context of decimals is."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return (-1) ** sign * int("".join(map(str, digits))) * 10 ** (exponent + scale)


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    return value


def result_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """An engine's result as the oracle's `result` gives it."""
    columns = [plain_values(column) for column in table.columns]
    return list(zip(*columns, strict=True))


def multiset(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows with how often each stands there. NaN is one value, -0.0 is another than 0.0."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, float) and (value != value or value == 0):
        return repr(value)  # NaN differs from itself, -0.0 is equal to 0.0: neither would do as a key
    return value
