"""Batches of tuples as Arrow: their types, and how rows of Arrow, pandas or Polars become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from handfast.errors import SpecError
from handfast.flow.plain import plain
from handfast.flow.wide import wide_schema
from handfast.spec import types
from handfast.spec.schema import Schema
from handfast.spec.types import Kind, Type

_SIMPLE = {
    pa.bool_(): types.BOOLEAN,
    pa.int8(): types.INT8,
    pa.int16(): types.INT16,
    pa.int32(): types.INT32,
    pa.int64(): types.INT64,
    pa.uint8(): types.INT16,
    pa.uint16(): types.INT32,
    pa.uint32(): types.INT64,
    pa.float32(): types.FLOAT,
    pa.float64(): types.DOUBLE,
    pa.string(): types.STRING,
    pa.large_string(): types.STRING,
    pa.binary(): types.BINARY,
    pa.large_binary(): types.BINARY,
    pa.date32(): types.DATE,
    pa.date64(): types.DATE,
}


def schema_of(schema: pa.Schema) -> Schema:
    """The columns of an Arrow schema with the types a predicate sees."""
    return Schema(tuple((field.name, type_of(field.type)) for field in schema))


def type_of(arrow: pa.DataType) -> Type:
    """The type a predicate sees; unsigned integers are seen as the next wider signed ones."""
    if arrow in _SIMPLE:
        return _SIMPLE[arrow]
    if pa.types.is_timestamp(arrow):
        return types.TIMESTAMP_NTZ if arrow.tz is None else types.TIMESTAMP
    if pa.types.is_fixed_size_binary(arrow):
        return types.BINARY
    if pa.types.is_decimal(arrow) and 0 <= arrow.scale and max(arrow.precision, arrow.scale) <= types.MAX_PRECISION:
        return types.decimal(max(arrow.precision, arrow.scale), arrow.scale)
    if pa.types.is_dictionary(arrow) and type_of(arrow.value_type) in (types.STRING, types.BINARY):
        return type_of(arrow.value_type)
    return Type(Kind.PAYLOAD, label=str(arrow))


def as_table(data: Any, stream: str) -> pa.Table:
    """An Arrow table from an Arrow, pandas or Polars one."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    module = type(data).__module__.split(".")[0]
    if module == "polars" and type(data).__name__ == "LazyFrame":
        data = data.collect()
    if module in _FRAMES and type(data).__name__ == "DataFrame":
        data = _FRAMES[module](data, stream)
    if not isinstance(data, pa.Table):
        raise SpecError(
            f"Stream {stream!r} is a {type(data).__module__}.{type(data).__name__}; "
            "handfast joins Spark DataFrames, or Arrow, pandas and Polars tables"
        )
    _check_names(data.column_names, stream)
    return plain(data, stream)


def _of_pandas(frame: Any, stream: str) -> pa.Table:
    _check_names([str(name) for name in frame.columns], stream)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except _NOT_ARROW:
        for name in frame.columns:
            _try_column(stream, name, partial(pa.Table.from_pandas, frame[[name]], preserve_index=False))
        raise


def _of_polars(frame: Any, stream: str) -> pa.Table:
    from polars import CompatLevel

    for name, kind in frame.schema.items():
        if _has_objects(kind):  # Arrow would get their addresses
            raise _not_arrow(stream, name, f"it has the type {kind}")
    oldest = CompatLevel.oldest()
    try:
        return frame.to_arrow(compat_level=oldest)
    except _NOT_ARROW:
        for name in frame.columns:
            _try_column(stream, name, partial(frame.select(name).to_arrow, compat_level=oldest))
        raise


_FRAMES: dict[str, Callable[[Any, str], pa.Table]] = {"pandas": _of_pandas, "polars": _of_polars}
_NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _try_column(stream: str, name: Any, convert: Callable[[], pa.Table]) -> None:
    """Refuse a column, by its name, that Arrow cannot take."""
    try:
        convert()
    except _NOT_ARROW as error:
        raise _not_arrow(stream, name, error.args[0] if error.args else type(error).__name__) from None


def _not_arrow(stream: str, name: Any, reason: object) -> SpecError:
    return SpecError(
        f"Column {name!r} of stream {stream!r} cannot become an Arrow column: {str(reason).rstrip('.')}; convert it to "
        "a type that Arrow has, or leave it out"
    )


def _has_objects(kind: Any) -> bool:
    """Whether a Polars type is that of Python objects, or has them inside."""
    inner = [field.dtype for field in kind.fields] if hasattr(kind, "fields") else [getattr(kind, "inner", None)]
    return str(kind) == "Object" or any(_has_objects(part) for part in inner if part is not None)


def _check_names(names: Sequence[str], stream: str) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise SpecError(f"Stream {stream!r} has the column {twice!r} twice; rename one of the two")


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows; Arrow's own has no unions."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """A table's rows in one batch, its text wide enough for any number of bytes."""
    schema = wide_schema(table.schema)
    columns = [
        _together(column.cast(to) if column.type != to else column)
        for column, to in zip(table.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _together(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
