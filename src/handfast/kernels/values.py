"""Values as arrays: how each type lies in memory, to and from plain Python values, and as kernels take them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.kernels.compiler.codegen import ERROR_STATUS, LITERAL_BYTES, NULL_STATUS
from handfast.kernels.strings import StringTable, as_text
from handfast.spec.expression import Literal
from handfast.spec.meaning import AnsiError
from handfast.spec.types import Kind, Type

Array = NDArray[np.generic]
Status = NDArray[np.uint8]
Data = tuple[Array, Status | None]  # values, and of each whether it is NULL or an error

_DTYPES: dict[Kind, type[np.generic]] = {
    Kind.BOOLEAN: np.uint8,
    Kind.INT8: np.int8,
    Kind.INT16: np.int16,
    Kind.INT32: np.int32,
    Kind.INT64: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
    Kind.STRING: np.int64,
    Kind.BINARY: np.int64,
    Kind.DATE: np.int32,
    Kind.TIMESTAMP: np.int64,
    Kind.TIMESTAMP_NTZ: np.int64,
    Kind.INTERVAL: np.int64,
}


def dtype(type_: Type) -> np.dtype[np.generic]:
    """How a column of this type lies in memory."""
    if type_.kind is Kind.DECIMAL:
        digits = type_.precision
        return np.dtype(np.int64) if digits <= 18 else np.dtype((np.void, 16 if digits <= 38 else 32))
    return np.dtype(_DTYPES[type_.kind])


def decoded(values: Array, type_: Type, strings: StringTable) -> list[Any]:
    """Values as plain Python ones, which the rules of functions take."""
    if type_.kind is Kind.STRING:
        return [strings.text(code) for code in values.tolist()]
    if type_.kind is Kind.BINARY:
        return [strings.text(code).encode("latin-1") for code in values.tolist()]
    if values.dtype.kind == "V":
        return [int.from_bytes(value, "little", signed=True) for value in values.tolist()]
    return [bool(value) for value in values.tolist()] if type_.kind is Kind.BOOLEAN else values.tolist()


def encoded(results: Iterable[Any], type_: Type, strings: StringTable) -> tuple[Array, Status]:
    """Plain results as values and statuses."""
    results = list(results)
    marks = [NULL_STATUS if result is None else ERROR_STATUS if result is AnsiError else 0 for result in results]
    status = np.array(marks, np.uint8)
    plain = [None if state else result for result, state in zip(results, status, strict=True)]
    if type_.is_text:
        codes = [strings.code("" if result is None else as_text(result)) for result in plain]
        return np.array(codes, np.int64), status
    form = dtype(type_)
    if form.kind == "V":
        packed = b"".join(int(result or 0).to_bytes(form.itemsize, "little", signed=True) for result in plain)
        return np.frombuffer(packed, form).copy(), status
    return np.array([0 if result is None else result for result in plain], form), status


def literal_buffer(literals: tuple[Literal, ...], strings: StringTable, *, ordered: bool) -> NDArray[np.uint8]:
    """The buffer that a kernel reads its literals from; text as codes, or as ordinals where its order matters."""
    codes = {
        literal.value: strings.code(as_text(literal.value))
        for literal in literals
        if isinstance(literal.value, str | bytes)
    }
    if ordered and codes:
        ordinals = strings.ordinals()  # after all have a code: a new string can change the ordinals of others
        codes = {text: int(ordinals[code]) for text, code in codes.items()}
    buffer = bytearray()
    for literal in literals:
        value, kind = literal.value, literal.type.kind
        if isinstance(value, str | bytes):
            word = struct.pack("<q", codes[value])
        elif kind in (Kind.FLOAT, Kind.DOUBLE):
            word = struct.pack("<f" if kind is Kind.FLOAT else "<d", value)
        else:
            assert value is not None
            word = int(value).to_bytes(LITERAL_BYTES, "little", signed=True)
        buffer += word.ljust(LITERAL_BYTES, b"\0")
    return np.frombuffer(bytes(buffer) or b"\0", np.uint8)


def address(array: NDArray[Any]) -> int:
    """Where an array's data lie, side by side: a kernel takes it so."""
    place: int = pa.py_buffer(array).address  # in a fraction of the time that `ctypes.data` takes
    return place


def addresses(arrays: Sequence[Array]) -> NDArray[np.int64]:
    """The addresses of the arrays' data, as a kernel takes them."""
    return np.array([address(array) for array in arrays] or [0], np.int64)
