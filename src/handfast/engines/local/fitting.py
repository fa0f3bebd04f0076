"""Pushed rows, brought to the columns and types of their stream's schema; a batch that does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from handfast.errors import SpecError
from handfast.flow.batch import as_batch, as_table, type_of
from handfast.spec.types import Kind


def fitting(stream: str, rows: Any, wanted: pa.Schema) -> pa.RecordBatch:
    """A batch of a stream, given as Arrow, pandas or Polars, with the columns and types of the wanted schema."""
    table = as_table(rows, stream)
    missing = [name for name in wanted.names if name not in table.schema.names]
    extra = [name for name in table.schema.names if name not in wanted.names]
    if missing or extra:
        what = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which the session does not know"
        raise SpecError(f"A batch of stream {stream!r} {what}; it must have {', '.join(wanted.names)}")
    if len(set(table.schema.names)) < len(table.schema.names):
        raise SpecError(f"A batch of stream {stream!r} has a column twice; it must have {', '.join(wanted.names)}")
    for name in wanted.names:
        _check_kind(stream, name, table.schema.field(name).type, wanted.field(name).type)
    try:
        fits = table.select(wanted.names).cast(pa.schema([field.with_nullable(True) for field in wanted]))
        return copied(as_batch(fits))  # the caller may go on writing to its own
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpecError(f"A batch of stream {stream!r} does not fit its schema: {error}") from None


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values in memory of their own."""
    return pa.RecordBatch.from_arrays([_copied(column) for column in batch.columns], schema=batch.schema)


def _copied(column: pa.Array) -> pa.Array:
    plain = pa.types.is_primitive(column.type) and not pa.types.is_boolean(column.type) and not column.null_count
    if not plain:
        return column.take(pa.array(np.arange(len(column))))
    width = column.type.bit_width // 8
    values = np.frombuffer(column.buffers()[1] or b"", np.uint8)[column.offset * width :][: len(column) * width]
    return pa.Array.from_buffers(column.type, len(column), [None, pa.py_buffer(values.copy())])


def _check_kind(stream: str, column: str, given: pa.DataType, wanted: pa.DataType) -> None:
    """Refuse values of another kind: numbers become other numbers where nothing is lost, and nothing else changes."""
    if given == wanted or pa.types.is_null(given):
        return
    a, b = type_of(given), type_of(wanted)
    if a.is_numeric and b.is_numeric:
        return
    if a.kind is not b.kind or a.kind is Kind.PAYLOAD:
        raise SpecError(
            f"Column {column!r} of a batch of stream {stream!r} is of type {given}, and the session knows it as "
            f"{wanted}; convert it before it is pushed"
        )
