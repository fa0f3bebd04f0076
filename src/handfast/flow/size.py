"""How large tuples are: by their values alone, so that it is the same for the same tuples wherever they lie."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_ROOM = 16  # how far a nested value may be above the average and still be counted in full


def content_bytes(batch: pa.RecordBatch) -> int:
    """What the values of a batch take, without what says which of them are NULL."""
    return sum(map(_bytes, batch.columns))


def widest_row(batch: pa.RecordBatch) -> int:
    """What a row takes at the most; of nested values, by their average with room to spare."""
    return sum(map(_widest, batch.columns)) if batch.num_rows else 0


def _bytes(column: pa.Array) -> int:
    type_ = column.type
    if pa.types.is_dictionary(type_):  # a part of a column has the whole dictionary: counted is what its rows refer to
        known = column.dictionary
        return _bytes(column.indices) + len(column) * (_bytes(known) // max(1, len(known)))
    if _is_text(type_):
        return int(pc.sum(pc.binary_length(column)).as_py() or 0)
    if pa.types.is_struct(type_):
        return sum(map(_bytes, column.flatten()))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return 4 * len(column) + _bytes(column.flatten())
    if pa.types.is_map(type_):
        return 4 * len(column) + sum(_bytes(child.slice(*_span(column))) for child in (column.keys, column.items))
    return _width(type_) * len(column)


def _span(column: pa.MapArray) -> tuple[int, int]:
    """Where the entries of a map column begin, and how many there are."""
    offsets = column.offsets
    first = int(offsets[0].as_py() or 0)
    return first, int(offsets[-1].as_py() or 0) - first


def _widest(column: pa.Array) -> int:
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _width(type_.index_type)
    if _is_text(type_):
        return int(pc.max(pc.binary_length(column)).as_py() or 0)
    if pa.types.is_nested(type_):
        return _ROOM * _bytes(column) // len(column) + 1
    return _width(type_)


def _is_text(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(is_kind(type_) for is_kind in kinds)


def _width(type_: pa.DataType) -> int:
    """The bytes of a value that is as wide as all of its type."""
    try:
        return max(1, int(type_.bit_width) // 8)
    except ValueError:  # NULL, and what Arrow gives no width: counted as a word
        return 8
