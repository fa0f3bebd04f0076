"""How a kernel gets at memory: its arrays, and through them the columns, stamps and literals that it is called with."""

from __future__ import annotations

from llvmlite import ir

from handfast.kernels.compiler.codegen import ERROR_STATUS, I8, I64, LITERAL_BYTES, NULL_STATUS, PTR, Value, element
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.window import Stamps
from handfast.spec.expression import Column, Expr, Literal, rewrite
from handfast.spec.types import Kind


def pointer(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """A word as the address that it is."""
    return builder.inttoptr(word, PTR)


def entry(builder: ir.IRBuilder, table: ir.Value, index: int) -> ir.Value:
    """Address number `index` of an array of addresses."""
    return read(builder, table, I64, ir.Constant(I64, index))


def read(builder: ir.IRBuilder, array: ir.Value, type_: ir.Type, position: ir.Value) -> ir.Value:
    """The value at a position of an array."""
    # Arrow's buffers may lie anywhere: nothing is known of their alignment
    return builder.load(builder.gep(pointer(builder, array), [position], source_etype=type_), typ=type_, align=1)


def write(builder: ir.IRBuilder, array: ir.Value, position: ir.Value, value: ir.Value) -> None:
    """Write a value at a position of an array."""
    builder.store(value, builder.gep(pointer(builder, array), [position], source_etype=value.type), align=1)


def read_lanes(builder: ir.IRBuilder, array: ir.Value, type_: ir.Type, position: ir.Value, width: int) -> ir.Value:
    """The values of an array from a position on, as a vector of `width` lanes."""
    address = builder.gep(pointer(builder, array), [position], source_etype=type_)
    return builder.load(address, typ=ir.VectorType(type_, width), align=1)


class StampLanes:
    """The stamps of one stream's tuples, read where the kernel stands: times, and counts where windows count."""

    def __init__(self, builder: ir.IRBuilder, table: ir.Value, counted: tuple[bool, bool]) -> None:
        self._b = builder
        self._arrays = [entry(builder, table, k) for k in range(3 if any(counted) else 1)]

    def read(self, position: ir.Value, width: int) -> Stamps:
        """The lanes from `position` on."""
        return [read_lanes(self._b, array, I64, position, width) for array in self._arrays]


class ColumnLanes:
    """The columns of one stream, read where the kernel stands."""

    def __init__(
        self, builder: ir.IRBuilder, inputs: tuple[Slot, ...], values: ir.Value, statuses: ir.Value, nullable: bool
    ) -> None:
        self._b = builder
        self._inputs = inputs
        self._values = [entry(builder, values, k) for k in range(len(inputs))]
        self._statuses = [entry(builder, statuses, k) if nullable else None for k in range(len(inputs))]

    def read(self, position: ir.Value, width: int) -> dict[Column, Value]:
        """Every column's lanes from `position` on."""
        columns: dict[Column, Value] = {}
        for known, values, statuses in zip(self._inputs, self._values, self._statuses, strict=True):
            lanes = read_lanes(self._b, values, element(known.column.type), position, width)
            if known.column.type.kind is Kind.BOOLEAN:
                lanes = self._b.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, [0] * width))
            null = error = None
            if statuses is not None:
                status = read_lanes(self._b, statuses, I8, position, width)
                null = self._b.icmp_unsigned("==", status, ir.Constant(status.type, [NULL_STATUS] * width))
                if known.may_fail:
                    error = self._b.icmp_unsigned("==", status, ir.Constant(status.type, [ERROR_STATUS] * width))
            columns[known.column] = Value(lanes, null, error)
        return columns


class Literals:
    """The literals, read once at the kernel's entry."""

    def __init__(self, builder: ir.IRBuilder, shapes: Expr | tuple[Expr, ...], buffer: ir.Value) -> None:
        self._values: dict[int, ir.Value] = {}
        for shape in shapes if isinstance(shapes, tuple) else (shapes,):
            rewrite(shape, lambda node: self._load(builder, buffer, node))

    def _load(self, builder: ir.IRBuilder, buffer: ir.Value, node: Expr) -> None:
        if isinstance(node, Literal) and node.value is not None:
            offset = ir.Constant(I64, node.slot * LITERAL_BYTES)
            address = builder.gep(pointer(builder, buffer), [offset], source_etype=I8)
            self._values[node.slot] = builder.load(address, typ=element(node.type), align=1)

    def literal(self, literal: Literal) -> ir.Value:
        return self._values[literal.slot]
