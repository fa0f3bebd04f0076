"""A run of tuples as the kernels read it: arrays of values, of statuses (NULL, error) and of times."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from handfast.flow.block import Block, Seen
from handfast.flow.time import micros
from handfast.kernels.codegen import LITERAL_BYTES
from handfast.kernels.compile import blank, derive_kernel
from handfast.kernels.program import Input, Program, Slot
from handfast.kernels.strings import StringTable
from handfast.spec.expression import Call, Column, Expr, Literal, Op, number_literals, walk
from handfast.spec.types import Kind, Type

Array = NDArray[np.generic]

_DTYPES: dict[Kind, type[np.generic]] = {
    Kind.BOOLEAN: np.uint8,
    Kind.INT8: np.int8,
    Kind.INT16: np.int16,
    Kind.INT32: np.int32,
    Kind.INT64: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
    Kind.STRING: np.int64,
    Kind.DATE: np.int32,
    Kind.TIMESTAMP: np.int64,
    Kind.TIMESTAMP_NTZ: np.int64,
    Kind.INTERVAL: np.int64,
}


@dataclass(slots=True)
class Columns:
    """Values and statuses by input, and stamps, of `len(times)` tuples of one stream."""

    values: list[Array]
    statuses: list[NDArray[np.uint8] | None]
    times: NDArray[np.int64]
    seen: Seen = ()

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: NDArray[np.int64]) -> Columns:
        """The tuples at these places."""
        statuses = [status[rows] if status is not None else None for status in self.statuses]
        seen = tuple(own[rows] for own in self.seen)
        return Columns([value[rows] for value in self.values], statuses, self.times[rows], seen)

    @property
    def nullable(self) -> bool:
        return any(status is not None for status in self.statuses)


def dtype(type_: Type) -> type[np.generic]:
    """How a column of this type lies in memory."""
    return _DTYPES[type_.kind]


def compares_order_of_strings(predicate: Expr) -> bool:
    """Whether codes will not do and ranks are needed."""
    return any(
        isinstance(node, Call) and node.op in (Op.LT, Op.LE) and node.args[0].type.kind is Kind.STRING
        for node in walk(predicate)
    )


class ColumnReader:
    """Reads the inputs of each stream's tuples from Arrow: decodes columns, computes the derived ones."""

    def __init__(self, program: Program, strings: StringTable, *, ordered_strings: bool) -> None:
        self._program = program
        self._strings = strings
        self._ordered = ordered_strings
        self._derivations = [_Derivation(inputs) for inputs in program.inputs]
        # now, so that no literal that comes in later moves the ranks of strings already read
        for node in (node for tree in program.trees for node in walk(tree)):
            if isinstance(node, Literal) and isinstance(node.value, str):
                strings.code(node.value)

    def read(self, stream: int, block: Block) -> Columns:
        """The columns of a block. Strings are codes: `ranked` turns them into ranks where order matters."""
        derivation, batch = self._derivations[stream], block.batch
        names = [column.name for column in derivation.sources]
        decoded = [
            self._decode(batch.column(name), col.type) for name, col in zip(names, derivation.sources, strict=True)
        ]
        derived = derivation.run(
            self.ranked(derivation.sources, decoded), self.literals(derivation.literals), len(batch)
        )
        values: list[Array] = []
        statuses: list[NDArray[np.uint8] | None] = []
        for known in self._program.inputs[stream]:
            value, status = derived[known.column] if known.is_derived else decoded[names.index(known.column.name)]
            values.append(value)
            statuses.append(status)
        return Columns(values, statuses, block.times, block.seen)

    def ranked(
        self, columns: Sequence[Column], decoded: list[tuple[Array, NDArray[np.uint8] | None]]
    ) -> list[tuple[Array, NDArray[np.uint8] | None]]:
        """The columns with strings as ranks, if the predicate compares their order."""
        if not self._ordered:
            return decoded
        ranks = self._strings.ranks()
        return [
            (ranks[value], status) if column.type.kind is Kind.STRING and len(value) else (value, status)
            for column, (value, status) in zip(columns, decoded, strict=True)
        ]

    def for_pairs(self, stream: int, columns: Columns) -> Columns:
        """The columns as the pair kernels need them now."""
        if not self._ordered:
            return columns
        inputs = [known.column for known in self._program.inputs[stream]]
        ranked = self.ranked(inputs, list(zip(columns.values, columns.statuses, strict=True)))
        return Columns([value for value, _ in ranked], columns.statuses, columns.times, columns.seen)

    def literals(self, literals: tuple[Literal, ...]) -> NDArray[np.uint8]:
        """The buffer that a kernel reads its literals from."""
        buffer = bytearray()
        for literal in literals:
            buffer += self._literal_bytes(literal).ljust(LITERAL_BYTES, b"\0")
        return np.frombuffer(bytes(buffer) or b"\0", np.uint8)

    def _literal_bytes(self, literal: Literal) -> bytes:
        value, kind = literal.value, literal.type.kind
        if isinstance(value, str):
            code = self._strings.code(value)
            return struct.pack("<q", int(self._strings.ranks()[code]) if self._ordered else code)
        if kind is Kind.FLOAT:
            return struct.pack("<f", value)
        if kind is Kind.DOUBLE:
            return struct.pack("<d", value)
        assert value is not None
        return int(value).to_bytes(LITERAL_BYTES, "little", signed=True)

    def _decode(self, column: pa.Array, type_: Type) -> tuple[Array, NDArray[np.uint8] | None]:
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()  # a NULL among the dictionary's own values
        status = None
        if column.null_count:
            status = column.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
        return np.ascontiguousarray(self._values(column, type_)), status

    def _values(self, column: pa.Array, type_: Type) -> Array:
        if type_.kind is Kind.STRING:
            return self._strings.encode(column)
        if type_.is_timestamp:
            return micros(column)
        if type_.kind is Kind.DATE:
            column = column.cast(pa.date32()).cast(pa.int32())
        fill: bool | int = False if type_.kind is Kind.BOOLEAN else 0
        values: Array = pc.fill_null(column, fill).to_numpy(zero_copy_only=False)
        return values.astype(dtype(type_), copy=False)


class _Derivation:
    """How a stream's derived columns are computed."""

    def __init__(self, inputs: tuple[Input, ...]) -> None:
        derived = [known for known in inputs if known.is_derived]
        raw = [known.source for known in inputs if isinstance(known.source, Column)]
        nested = [node for known in derived for node in walk(known.source) if isinstance(node, Column)]
        self.sources: tuple[Column, ...] = tuple(dict.fromkeys([*raw, *nested]))
        self._columns = tuple(known.column for known in derived)
        numbered, offset = [], 0
        literals: list[Literal] = []
        for known in derived:
            tree, found = number_literals(known.source, first=offset)
            offset += len(found)
            literals.extend(found)
            numbered.append(blank(tree))
        self._shapes = tuple(numbered)
        self.literals = tuple(literals)

    def run(
        self, sources: list[tuple[Array, NDArray[np.uint8] | None]], literals: NDArray[np.uint8], count: int
    ) -> dict[Column, tuple[Array, NDArray[np.uint8] | None]]:
        """Values and statuses of every derived column."""
        if not self._columns:
            return {}
        kernel = derive_kernel(self._shapes, tuple(Slot(column, False) for column in self.sources))
        zeros = np.zeros(count, np.uint8)
        values = [value for value, _ in sources]
        statuses = [status if status is not None else zeros for _, status in sources]
        out = [np.empty(count, dtype(column.type)) for column in self._columns]
        out_status = [np.empty(count, np.uint8) for _ in self._columns]
        tables = [addresses(arrays) for arrays in (values, statuses, out, out_status)]
        kernel(
            tables[0].ctypes.data,
            tables[1].ctypes.data,
            literals.ctypes.data,
            tables[2].ctypes.data,
            tables[3].ctypes.data,
            count,
        )
        return {
            column: (value, status if status.any() else None)
            for column, value, status in zip(self._columns, out, out_status, strict=True)
        }


def addresses(arrays: Sequence[Array]) -> NDArray[np.int64]:
    """The addresses of the arrays' data, as a kernel takes them."""
    return np.array([array.ctypes.data for array in arrays] or [0], np.int64)
