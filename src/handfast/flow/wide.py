"""Text and binary with 64-bit offsets inside, however much of it there is; at the exit as narrow as it came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from handfast.flow.plain import with_inner

MOST = 2**31 - 1  # bytes that 32-bit offsets can count


def wide_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with large text and binary in the place of ordinary ones, at any depth."""
    return pa.schema([field.with_type(_wide(field.type)) for field in schema], schema.metadata)


def _wide(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_string(arrow):
        return pa.large_string()
    if pa.types.is_binary(arrow):
        return pa.large_binary()
    if pa.types.is_list_view(arrow) or pa.types.is_large_list_view(arrow):
        return arrow  # Arrow cannot cast what is inside
    return with_inner(arrow, _wide)


def narrowed(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int = MOST) -> Iterator[pa.RecordBatch]:
    """The batches with the types of a schema; those with more bytes in a column than its offsets can count are cut."""
    for batch in batches:
        columns = zip(batch.columns, schema.types, strict=True)
        largest = max((column.nbytes for column, to in columns if column.type != to), default=0)
        if largest > most and len(batch) > 1:
            half = len(batch) // 2
            yield from narrowed((batch.slice(0, half), batch.slice(half)), schema, most)
            continue
        yield _narrow(batch, schema)


def _narrow(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [_cast(column, to) for column, to in zip(batch.columns, schema.types, strict=True)], schema=schema
    )


def _cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    if column.type == to:
        return column
    try:
        return column.cast(to)
    except pa.ArrowInvalid:  # it is a part of a longer column, and its offsets begin far behind the start
        return column.take(pa.array(np.arange(len(column)))).cast(to)
