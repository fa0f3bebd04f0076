"""Batches of tuples as Arrow: their types, their times, and what is refused at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from handfast.errors import SpecError
from handfast.flow.time import micros
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
    if module == "polars":
        data = data.to_arrow(compat_level=_polars_oldest())
    elif module == "pandas":
        data = pa.Table.from_pandas(data, preserve_index=False)
    if not isinstance(data, pa.Table):
        raise SpecError(
            f"Stream {stream!r} is a {type(data).__module__}.{type(data).__name__}; "
            "handfast joins Spark DataFrames, or Arrow, pandas and Polars tables"
        )
    return _plain(data)


def _plain(table: pa.Table) -> pa.Table:
    """The table with layouts that Arrow itself cannot gather from (views, runs) as ordinary columns.

    Dictionaries get wide indices: several of them together may have more values than narrow ones can count.
    """
    for k, field in enumerate(table.schema):
        column = table.column(k)
        if _without_views(field.type) != field.type:
            plain = column.cast(_without_views(field.type))
        elif pa.types.is_run_end_encoded(field.type):
            plain = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], field.type.value_type)
        elif pa.types.is_dictionary(field.type) and field.type.index_type.bit_width < 32:
            plain = column.cast(pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered))
        else:
            continue
        table = table.set_column(k, field.name, plain)
    return table


def _without_views(arrow: pa.DataType) -> pa.DataType:
    """The type with ordinary text and binary in the place of views, also inside of lists, structs and maps."""
    if pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow):
        return pa.large_string() if pa.types.is_string_view(arrow) else pa.large_binary()
    if pa.types.is_struct(arrow):
        return pa.struct([_plain_field(field) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(_plain_field(arrow.key_field), _plain_field(arrow.item_field), arrow.keys_sorted)
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_plain_field(arrow.value_field), arrow.list_size)
    for is_kind, make in _LISTS:
        if is_kind(arrow):
            return make(_plain_field(arrow.value_field))
    return arrow


_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_without_views(field.type))


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows; Arrow's own has no unions."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """A table's rows in one batch."""
    combined = table.combine_chunks()
    if combined.num_rows == 0:
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in table.schema], schema=table.schema)
    batches = combined.to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays([pa.concat_arrays(c.chunks) for c in combined.columns], schema=table.schema)


def admit_times(column: pa.Array, valid_from: int, valid_to: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The times of a batch in microseconds, and which are refused: NULL, or outside of what is valid."""
    times = micros(column)
    refused = (times < valid_from) | (times > valid_to)
    if column.null_count:
        refused |= column.is_null().to_numpy(zero_copy_only=False)
    return times, refused


def _polars_oldest() -> Any:
    from polars import CompatLevel

    return CompatLevel.oldest()
