"""Pushed rows, brought to the columns and types of their stream's schema; a batch that does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from handfast.errors import SpecError
from handfast.flow.batch import as_batch, as_table, type_of
from handfast.flow.wide import wide_schema
from handfast.spec.types import Kind


class Fitting:
    """Brings the rows that are pushed to one stream to the columns and types of its schema."""

    def __init__(self, stream: str, wanted: pa.Schema) -> None:
        self._stream = stream
        self._wanted = wanted
        self._wide = wide_schema(wanted)
        self._same = self._wide == wanted
        self._primitive = all(map(pa.types.is_primitive, self._wide.types))
        # a dictionary may have NULL among its values: every one is looked at
        self._as_they_are = not any(map(pa.types.is_dictionary, wanted.types))

    def __call__(self, rows: Any) -> pa.RecordBatch:
        """A batch of rows that are given as Arrow, pandas or Polars; in memory of its own."""
        fits = self._fitting(rows) if self._as_they_are else None
        return copied(fits if fits is not None else self._cast(rows), whole=self._primitive)

    def _fitting(self, rows: Any) -> pa.RecordBatch | None:
        """The batch as it is given, with wide text, where nothing else has to change; else None."""
        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        if len(batches) != 1 or not isinstance(batches[0], pa.RecordBatch) or batches[0].schema != self._wanted:
            return None
        (batch,) = batches
        if self._same:
            return batch
        columns = [
            column.cast(to) if column.type != to else column
            for column, to in zip(batch.columns, self._wide.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._wide)

    def _cast(self, rows: Any) -> pa.RecordBatch:
        """The batch with the columns and types that are wanted."""
        stream, wanted = self._stream, self._wanted
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
            return as_batch(table.select(wanted.names).cast(wanted))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SpecError(f"A batch of stream {stream!r} does not fit its schema: {error}") from None


def copied(batch: pa.RecordBatch, *, whole: bool = False) -> pa.RecordBatch:
    """The same values in memory of their own: who pushed them may go on writing to theirs.

    It is done for the `whole` batch in one call where all of its types are primitive.
    """
    if whole:
        return pa.concat_batches([batch, batch.slice(0, 0)])  # of two batches Arrow makes a new one
    columns = [
        pa.concat_arrays([column, column.slice(0, 0)])
        if pa.types.is_primitive(column.type)
        else column.take(pa.array(np.arange(len(column))))
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


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
