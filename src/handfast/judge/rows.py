"""Arrow tables as the plain rows that the oracle takes, and results as multisets that compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Values = tuple[Any, ...]  # one row of a result, column by column

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def rows_of(table: pa.Table) -> list[Row]:
    """An Arrow table as plain rows: times in microseconds, dates in days, decimals unscaled, lists as tuples."""
    names = table.column_names
    return [dict(zip(names, values, strict=True)) for values in result_of(table)]


def tables_of(tables: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    """Every stream's rows."""
    return {name: rows_of(table) for name, table in tables.items()}


def result_of(table: pa.Table) -> list[Values]:
    """An engine's result as the oracle's `result` gives it."""
    if not table.num_columns:
        return []
    return list(zip(*(plain_values(column) for column in table.columns), strict=True))


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
    if pa.types.is_date(arrow):
        wide = pa.types.is_date64(arrow)  # it counts milliseconds
        numbers = column.cast(pa.int64() if wide else pa.int32()).to_pylist()
        return [n // 86_400_000 if wide and n is not None else n for n in numbers]
    if pa.types.is_decimal(arrow):
        return [None if d is None else _unscaled(d, arrow.scale) for d in column.to_pylist()]
    return [_frozen(value) for value in column.to_pylist()]


def _unscaled(value: Decimal, scale: int) -> int:
    """All its digits as one integer, whatever the context of decimals is."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return int((-1) ** sign * int("".join(map(str, digits))) * 10 ** (exponent + scale))


def multiset(rows: Iterable[Values]) -> Counter[Values]:
    """Rows with how often each stands there. NaN is one value, -0.0 is another than 0.0."""
    return Counter(tuple(map(_comparable, row)) for row in rows)


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):  # a map is a list of pairs
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    return value


def _comparable(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, float) and (value != value or value == 0):
        return repr(value)  # NaN differs from itself, -0.0 is equal to 0.0: neither would do as a key
    return value


def table_of(rows: Sequence[Values], schema: pa.Schema) -> pa.Table:
    """Plain rows as an Arrow table again, for people to read: times in microseconds, what is nested as text."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, names=schema.names)


def _array(values: list[Any], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(arrow):
        return _array(values, arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", arrow.tz))
    if pa.types.is_date(arrow):
        return pa.array(values, pa.int32()).cast(pa.date32())
    if pa.types.is_decimal(arrow):
        return pa.array([None if n is None else _scaled(n, arrow.scale) for n in values], arrow)
    if pa.types.is_nested(arrow):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array(values, arrow)


def _scaled(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))
