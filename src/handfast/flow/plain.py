"""Layouts of columns: what Arrow cannot gather, or not put together with more of its kind, becomes ordinary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from handfast.errors import SpecError

_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def plain(table: pa.Table, stream: str) -> pa.Table:
    """The table with the same values in ordinary columns.

    There are no views and no runs. A dictionary has wide indices, as several together may have more values than narrow
    ones can count, and no NULL among its values; inside of anything else values stand for themselves.
    """
    for k, field in enumerate(table.schema):
        to = _plain_type(field.type)
        if to == field.type and not pa.types.is_dictionary(to):
            continue
        try:
            column = pa.chunked_array([_plain(chunk, to) for chunk in table.column(k).chunks], to)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SpecError(
                f"Column {field.name!r} of stream {stream!r} has the type {field.type}, which cannot be joined "
                f"({error}); convert it, or leave it out"
            ) from None
        table = table.set_column(k, field.with_type(to), column)
    return table


def _plain_type(arrow: pa.DataType, *, inside: bool = False) -> pa.DataType:
    if pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow):
        return pa.large_string() if pa.types.is_string_view(arrow) else pa.large_binary()
    if pa.types.is_run_end_encoded(arrow):
        return _plain_type(arrow.value_type, inside=inside)
    if pa.types.is_dictionary(arrow):
        values = _plain_type(arrow.value_type, inside=True)
        if inside or pa.types.is_nested(values):
            return values
        return pa.dictionary(pa.int32() if arrow.index_type.bit_width < 32 else arrow.index_type, values, arrow.ordered)
    return with_inner(arrow, lambda inner: _plain_type(inner, inside=True))


def with_inner(arrow: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type of lists, structs or maps with a change to the types inside; any other type as it is."""

    def changed(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if pa.types.is_struct(arrow):
        return pa.struct([changed(field) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(changed(arrow.key_field), changed(arrow.item_field), arrow.keys_sorted)
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(changed(arrow.value_field), arrow.list_size)
    for is_kind, make in _LISTS:
        if is_kind(arrow):
            return make(changed(arrow.value_field))
    return arrow


def _plain(array: pa.Array, to: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(array.type):
        return _plain(pc.run_end_decode(array), to)
    if not pa.types.is_dictionary(array.type):
        return array.cast(to)
    values = _plain(array.dictionary, _plain_type(array.type.value_type, inside=True))
    if not pa.types.is_dictionary(to):
        return values.take(array.indices)
    indices = array.indices
    if values.null_count:  # NULL is no value but a row's lack of one
        kept = values.is_valid().to_numpy(zero_copy_only=False)
        indices = pa.array(np.cumsum(kept) - 1, mask=~kept).take(indices)
        values = values.drop_null()
    return pa.DictionaryArray.from_arrays(indices.cast(to.index_type), values, ordered=to.ordered)
