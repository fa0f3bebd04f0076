"""Columns of stored rows side by side, where they lie in blocks otherwise: so that many rows are read in one go."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from handfast.kernels.course import Positions
from handfast.kernels.growing import Growing


class FlatColumns:
    """Copies of columns whose values all have one width and none of which is NULL; a position is a place in them."""

    def __init__(self) -> None:
        self._columns: dict[int, tuple[pa.DataType, Growing] | None] = {}  # None: it cannot be had

    def append(self, batch: pa.RecordBatch) -> None:
        """Add rows to all columns that are here."""
        for place, known in self._columns.items():
            if known is not None and not _add(known, batch.column(place)):
                self._columns[place] = None

    def has(self, places: list[int]) -> bool:
        """Whether all of these columns are here."""
        return all(self._columns.get(place) is not None for place in places)

    def make(self, place: int, batches: list[pa.RecordBatch], starts: list[int], stop: int) -> bool:
        """Copy one column of batches that begin at these positions, if it is not here; tell whether it is, now."""
        if place not in self._columns and batches:
            self._columns[place] = _made([batch.column(place) for batch in batches], starts, stop)
        return self._columns.get(place) is not None

    def take(self, place: int, positions: Positions) -> pa.Array:
        """The values of a column that is here, at these positions."""
        known = self._columns[place]
        assert known is not None, "only what has been made can be read"
        type_, values = known
        return _array(type_, np.take(values.values, positions))


def _made(columns: list[pa.Array], starts: list[int], stop: int) -> tuple[pa.DataType, Growing] | None:
    type_ = columns[0].type
    if not (pa.types.is_primitive(type_) and type_.bit_width in (8, 16, 32, 64)):
        return None
    known = type_, Growing(np.dtype(f"i{type_.bit_width // 8}"))
    values = known[1]
    for column, start in zip(columns, starts, strict=True):
        values.append(np.zeros(start - len(values), values.values.dtype))  # of what is not stored any more
        if not _add(known, column):
            return None
    values.append(np.zeros(stop - len(values), values.values.dtype))
    return known


def _add(known: tuple[pa.DataType, Growing], column: pa.Array) -> bool:
    type_, values = known
    if column.null_count or column.type != type_:
        return False
    bits = values.values.dtype
    values.append(np.frombuffer(column.buffers()[1], bits)[column.offset : column.offset + len(column)])
    return True


def _array(type_: pa.DataType, values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)])
