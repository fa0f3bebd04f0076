"""How tuples, steps and results lie in bits, and how values of Arrow columns become such bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from amaranth.hdl import Cat, signed, unsigned
from amaranth.lib import data

from handfast.engines.hardware.fits import column_widths, width_of
from handfast.flow.time import days, micros
from handfast.flow.topology import R, S
from handfast.spec.expression import Column, Expr
from handfast.spec.types import Kind, Type

Numbers = list[int | None]  # a column's values as integers; None for NULL


@dataclass(frozen=True, slots=True)
class TupleLayout:
    """A slot of one stream's window: the valid flag [OGE §4.1], what the predicate reads, and the stamps that travel.

    Attributes:
        columns: The columns that the predicate reads. Each has its value and one bit that says it is NULL.
        seq: How many bits the tuple's place in its own stream takes. In the result it stands for the tuple.
        low: How many bits `low` takes, the first place in the other stream that the tuple's window holds; 0 where the
            chain is as long as the window and nothing has to be compared.
        flag: 1 where a slot says whether it is valid; 0 where it is only looked at if it is, and has no such bit.
    """

    columns: tuple[Column, ...]
    seq: int
    low: int = 0
    flag: int = 1

    @property
    def shape(self) -> Any:
        """The slot as Amaranth sees it."""
        # no field without bits: Verilog has no such wires
        fields: dict[str, Any] = {"valid": 1} if self.flag else {}
        fields["seq"] = unsigned(self.seq)
        if self.low:
            fields["low"] = unsigned(self.low)
        if self.columns:
            each = {field_of(c): data.StructLayout({"value": shape_of(c.type), "null": 1}) for c in self.columns}
            fields["columns"] = data.StructLayout(each)
        return data.StructLayout(fields)

    def values(self, slot: Any) -> dict[Column, tuple[Any, Any]]:
        """The values of a slot's columns, each with whether it is NULL, for the predicate."""
        own = {column: slot["columns"][field_of(column)] for column in self.columns}
        return {column: (field["value"], field["null"]) for column, field in own.items()}

    def pack(self, seq: int, low: int, values: Sequence[int | None]) -> int:
        """A tuple as one number."""
        shape = self.shape
        word: int = seq << shape["seq"].offset
        if self.flag:
            word |= 1 << shape["valid"].offset
        if self.low:
            word |= low << shape["low"].offset
        for column, value in zip(self.columns, values, strict=True):
            inner = shape["columns"]
            own = inner.shape[field_of(column)]
            place, field = inner.offset + own.offset, own.shape
            width = field["value"].width
            bits = value & (1 << width) - 1 if value is not None else 1 << field["null"].offset
            word |= bits << place
        return word


@dataclass(frozen=True, slots=True)
class JoinLayout:
    """The bits of a whole circuit: those of both streams, of a step and of a result."""

    r: TupleLayout
    s: TupleLayout

    @property
    def step(self) -> Any:
        """What enters at once: for each stream whether it shifts, and the slot that it shifts in [000 A.3]."""
        return data.StructLayout({"r_shift": 1, "r": self.r.shape, "s_shift": 1, "s": self.s.shape})

    def of(self, stream: int) -> TupleLayout:
        """The layout of one stream's tuples."""
        return (self.r, self.s)[stream]

    @property
    def compares_stamps(self) -> bool:
        """Whether the cores compare stamps."""
        return self.r.low > 0 or self.s.low > 0

    @property
    def result_width(self) -> int:
        """How many bits a result takes."""
        return self.r.seq + self.s.seq

    def result(self, r: Any, s: Any) -> Any:
        """The result of two slots that match: their places."""
        return Cat(r["seq"], s["seq"])

    def pair(self, result: int) -> tuple[int, int]:
        """The places of the R and the S tuple that a result is made of."""
        return result & (1 << self.r.seq) - 1, result >> self.r.seq

    def number(self, r: int, s: int) -> int:
        """The result of the R and the S tuple of these places."""
        return r | s << self.r.seq

    def pack_step(self, r: int | None, s: int | None) -> int:
        """A step as one number; 0 shifts in an empty slot, and None does not shift that stream."""
        shape = self.step
        word = 0
        for name, slot in (("r", r), ("s", s)):
            if slot is not None:
                word |= 1 << shape[f"{name}_shift"].offset | slot << shape[name].offset
        return word


def lay_out(predicate: Expr, rows: tuple[int, int], *, compares_stamps: bool) -> JoinLayout:
    """The layout for a predicate over streams of so many rows."""
    places = [max(1, (count - 1).bit_length()) for count in rows]
    bounds = [max(1, count.bit_length()) if compares_stamps else 0 for count in rows]  # `low` may be behind the last
    columns = [tuple(column for column in column_widths(predicate) if column.stream == stream) for stream in (R, S)]
    return JoinLayout(
        TupleLayout(columns[R], places[R], bounds[S]),
        TupleLayout(columns[S], places[S], bounds[R]),
    )


def field_of(column: Column) -> str:
    """The name of a column's field: no two columns have the same, and the tools of Verilog can read it."""
    return re.sub(r"[^A-Za-z0-9_]", lambda sign: f"${ord(sign[0]):x}$", column.name) or "$"


def shape_of(type_: Type) -> Any:
    """The shape of a column's value."""
    return unsigned(1) if type_.kind is Kind.BOOLEAN else signed(width_of(type_))


def numbers(column: pa.Array, type_: Type) -> Numbers:
    """A column's values as integers: decimals unscaled, dates as days, timestamps as microseconds."""
    valid = column.is_valid().to_pylist()
    read: Callable[[pa.Array], Sequence[Any]] = _READ.get(type_.kind, lambda own: own.to_pylist())
    values = read(column)
    return [int(value) if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


def _unscaled(column: pa.Array) -> list[int]:
    return [int((value or Decimal()).scaleb(column.type.scale, _EXACT)) for value in column.to_pylist()]


_EXACT = Context(prec=100)  # digits: more than any decimal has
_READ: Mapping[Kind, Callable[[pa.Array], Sequence[Any]]] = {
    Kind.DECIMAL: _unscaled,
    Kind.DATE: lambda column: days(column).tolist(),
    Kind.TIMESTAMP: lambda column: micros(column).tolist(),
    Kind.TIMESTAMP_NTZ: lambda column: micros(column).tolist(),
}
