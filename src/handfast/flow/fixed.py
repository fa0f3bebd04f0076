"""Columns whose values all take as much, and none of which is NULL: where in memory each of them is, is known."""

from __future__ import annotations

import pyarrow as pa

BITS = 0  # the width of values that are bits
WIDTHS = (1, 2, 4, 8, 16)  # the bytes of other values


def fixed_width(type_: pa.DataType) -> int | None:
    """The bytes of every value of a type, or `BITS`; None if values differ in length or are nested."""
    if pa.types.is_boolean(type_):
        return BITS
    if pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_):
        octets: int = type_.bit_width // 8
        return octets if octets in WIDTHS else None
    return None


def base(column: pa.Array) -> int | None:
    """The address of a column's first value, of bits counted in bits; None if its values differ or some are NULL."""
    width = fixed_width(column.type)
    if width is None or column.null_count:
        return None
    buffer = column.buffers()[1]
    if buffer is None:
        return None
    address = int(buffer.address)
    return 8 * address + int(column.offset) if width == BITS else address + int(column.offset) * width
