"""Kernels for one predicate shape: scan two runs of tuples, check candidates, derive columns.

A kernel reads columns through an array of pointers, literals through a buffer (so a shape compiles once, whatever its
constants), and writes the positions of the pairs it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from llvmlite import ir

from handfast.kernels.compiler.codegen import (
    ERROR_STATUS,
    I1,
    I8,
    I32,
    I64,
    LITERAL_BYTES,
    NULL_STATUS,
    PTR,
    Emitter,
    Value,
    call_intrinsic,
    element,
    splat,
)
from handfast.kernels.compiler.native import Native, load
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.window import Stamps, holds
from handfast.spec.expression import Column, Expr, Literal, rewrite
from handfast.spec.types import Kind

WIDTH = 8  # lanes of a vector
GROUP = 4  # vectors tested together: one rare branch for 32 pairs

_ONE, _ZERO = ir.Constant(I64, 1), ir.Constant(I64, 0)

SCAN_WORDS = 19
CHECK_WORDS = 12
DERIVE_WORDS = 6


def blank(expr: Expr) -> Expr:
    """The shape of a tree: its literals' values left out, NULLs kept."""

    def without_value(node: Expr) -> Expr | None:
        return replace(node, value=0) if isinstance(node, Literal) and node.value is not None else None

    return rewrite(expr, without_value)


@lru_cache(maxsize=512)
def scan_kernel(
    shape: Expr,
    inputs: tuple[tuple[Slot, ...], ...],
    counted: tuple[bool, bool],
    outer: int,
    nullable: bool,
    windowed: bool,
) -> Native:
    """Find the pairs of an outer and an inner run of tuples for which condition and windows hold.

    Every outer tuple has a range of its own in which it meets inner ones. Where all in it are known to lie in its
    windows, the kernel is not `windowed`: it reads no stamps.

    Words: outer values, outer statuses, outer stamps, outer start, outer stop, then the same five of the inner stream,
    where the range of each outer tuple starts and where it stops, then the lengths of both windows, literals, outer
    positions out, inner positions out, their capacity, and where to write the outer position to go on from. Returns
    how many pairs were found.
    """
    function, builder = _function("scan", SCAN_WORDS)
    words = function.args
    o_values, o_statuses, o_stamps, o_start, o_stop = words[0:5]
    i_values, i_statuses, i_stamps, i_start, i_stop = words[5:10]
    starts, stops, first, second, literals, o_out, i_out, capacity, resume = words[10:19]
    inner = 1 - outer
    reader = _Reader(builder, shape, literals)
    outer_columns = _Columns(builder, inputs[outer], o_values, o_statuses, nullable)
    inner_columns = _Columns(builder, inputs[inner], i_values, i_statuses, nullable)
    outer_stamps, inner_stamps = _Stamps(builder, o_stamps, counted), _Stamps(builder, i_stamps, counted)
    found, left = builder.alloca(I64), builder.alloca(I64)
    builder.store(_ZERO, found)
    reach = builder.sub(i_stop, i_start)

    def room(position: ir.Value) -> ir.Value:
        return builder.icmp_signed("<=", builder.add(builder.load(found, typ=I64), reach), capacity)

    with _Loop(builder, o_start, o_stop, _ONE, also=room) as outer_loop:
        o = outer_loop.position
        o_stamp = outer_stamps.read(o, 1)
        held = outer_columns.read(o, 1)
        own_start = _pick(builder, ">", _read(builder, starts, I64, o), i_start)
        own_stop = _pick(builder, "<", _read(builder, stops, I64, o), i_stop)
        length = _pick(builder, ">", builder.sub(own_stop, own_start), _ZERO)
        grouped = builder.add(own_start, builder.and_(length, ir.Constant(I64, -WIDTH * GROUP)))

        def hits(width: int, i: ir.Value) -> ir.Value:
            columns = {column: _widen(builder, value, width) for column, value in held.items()}
            columns.update(inner_columns.read(i, width))
            emitter = Emitter(builder, width, columns, reader.literal)
            if not windowed:
                return emitter.truth(shape)
            stamps = [[_wide(builder, lanes, width) for lanes in o_stamp], inner_stamps.read(i, width)]
            r, s = stamps if outer == 0 else reversed(stamps)
            lengths = splat(builder, first, width), splat(builder, second, width)
            inside = holds(builder, counted, r, s, lengths)
            return builder.and_(inside, emitter.truth(shape))

        def write(i: ir.Value) -> None:
            n = builder.load(found, typ=I64)
            _write(builder, o_out, n, o)
            _write(builder, i_out, n, i)
            builder.store(builder.add(n, _ONE), found)

        with _Loop(builder, own_start, grouped, ir.Constant(I64, WIDTH * GROUP)) as inner_loop:
            mask: ir.Value = ir.Constant(I64, 0)
            for part in range(GROUP):
                base = builder.add(inner_loop.position, ir.Constant(I64, part * WIDTH))
                bits = builder.zext(builder.bitcast(hits(WIDTH, base), ir.IntType(WIDTH)), I64)
                mask = builder.or_(mask, builder.shl(bits, ir.Constant(I64, part * WIDTH)))
            with builder.if_then(builder.icmp_unsigned("!=", mask, _ZERO), likely=False):
                builder.store(mask, left)
                with _While(builder, lambda: builder.icmp_unsigned("!=", builder.load(left, typ=I64), _ZERO)):
                    now = builder.load(left, typ=I64)
                    bit = call_intrinsic(builder, "llvm.cttz.i64", [now, ir.Constant(I1, 1)], I64)
                    write(builder.add(inner_loop.position, bit))
                    builder.store(builder.and_(now, builder.sub(now, _ONE)), left)
        with (
            _Loop(builder, grouped, own_stop, _ONE) as tail,
            builder.if_then(builder.extract_element(hits(1, tail.position), ir.Constant(I32, 0)), likely=False),
        ):
            write(tail.position)
    builder.store(builder.load(outer_loop.counter, typ=I64), _pointer(builder, resume))
    builder.ret(builder.load(found, typ=I64))
    return load(function.module, {"scan": SCAN_WORDS})["scan"]


@lru_cache(maxsize=512)
def check_kernel(
    shape: Expr, inputs: tuple[tuple[Slot, ...], ...], counted: tuple[bool, bool], nullable: bool
) -> Native:
    """Keep the candidates for which condition and windows hold, moved to the front.

    Words: values, statuses, stamps of stream 0, the same of stream 1, the lengths of both windows, literals, positions
    in stream 0, positions in stream 1, how many. Returns how many are kept.
    """
    function, builder = _function("check", CHECK_WORDS)
    r_values, r_statuses, r_stamps, s_values, s_statuses, s_stamps = function.args[:6]
    first, second, literals, r_at, s_at, count = function.args[6:]
    reader = _Reader(builder, shape, literals)
    columns_r = _Columns(builder, inputs[0], r_values, r_statuses, nullable)
    columns_s = _Columns(builder, inputs[1], s_values, s_statuses, nullable)
    stamps_r, stamps_s = _Stamps(builder, r_stamps, counted), _Stamps(builder, s_stamps, counted)
    kept = builder.alloca(I64)
    builder.store(_ZERO, kept)
    with _Loop(builder, _ZERO, count, _ONE) as loop:
        r = _read(builder, r_at, I64, loop.position)
        s = _read(builder, s_at, I64, loop.position)
        lengths = splat(builder, first, 1), splat(builder, second, 1)
        inside = holds(builder, counted, stamps_r.read(r, 1), stamps_s.read(s, 1), lengths)
        with builder.if_then(builder.extract_element(inside, ir.Constant(I32, 0))):
            emitter = Emitter(builder, 1, {**columns_r.read(r, 1), **columns_s.read(s, 1)}, reader.literal)
            with builder.if_then(builder.extract_element(emitter.truth(shape), ir.Constant(I32, 0))):
                n = builder.load(kept, typ=I64)
                _write(builder, r_at, n, r)
                _write(builder, s_at, n, s)
                builder.store(builder.add(n, _ONE), kept)
    builder.ret(builder.load(kept, typ=I64))
    return load(function.module, {"check": CHECK_WORDS})["check"]


@lru_cache(maxsize=512)
def derive_kernel(shapes: tuple[Expr, ...], inputs: tuple[Slot, ...]) -> Native:
    """Compute derived columns of one stream.

    Words: values and statuses of the inputs, literals, values and statuses to write (one of each), how many tuples.
    """
    function, builder = _function("derive", DERIVE_WORDS)
    values, statuses, literals, out_values, out_statuses, count = function.args
    reader = _Reader(builder, shapes, literals)
    columns = _Columns(builder, inputs, values, statuses, True)
    outs = [(_entry(builder, out_values, k), _entry(builder, out_statuses, k)) for k in range(len(shapes))]
    with _Loop(builder, _ZERO, count, _ONE) as loop:
        emitter = Emitter(builder, 1, columns.read(loop.position, 1), reader.literal)
        for shape, (out, status_out) in zip(shapes, outs, strict=True):
            value = emitter.emit(shape)
            lane = builder.extract_element(value.lanes, ir.Constant(I32, 0))
            lane = builder.zext(lane, I8) if shape.type.kind is Kind.BOOLEAN else lane
            _write(builder, out, loop.position, lane)
            status: ir.Value = ir.Constant(I8, 0)
            for flags, code in ((value.null, NULL_STATUS), (value.error, ERROR_STATUS)):
                if flags is not None:
                    flag = builder.extract_element(flags, ir.Constant(I32, 0))
                    status = builder.select(flag, ir.Constant(I8, code), status)
            _write(builder, status_out, loop.position, status)
    builder.ret(_ZERO)
    return load(function.module, {"derive": DERIVE_WORDS})["derive"]


# -- pieces ------------------------------------------------------------------------------------------


def _function(name: str, words: int) -> tuple[ir.Function, ir.IRBuilder]:
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * words), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _pointer(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    return builder.inttoptr(word, PTR)


def _entry(builder: ir.IRBuilder, table: ir.Value, index: int) -> ir.Value:
    """Address number `index` of an array of addresses."""
    return _read(builder, table, I64, ir.Constant(I64, index))


def _read(builder: ir.IRBuilder, array: ir.Value, type_: ir.Type, position: ir.Value) -> ir.Value:
    # Arrow's buffers may lie anywhere: nothing is known of their alignment
    return builder.load(builder.gep(_pointer(builder, array), [position], source_etype=type_), typ=type_, align=1)


def _write(builder: ir.IRBuilder, array: ir.Value, position: ir.Value, value: ir.Value) -> None:
    builder.store(value, builder.gep(_pointer(builder, array), [position], source_etype=value.type), align=1)


def _pick(builder: ir.IRBuilder, order: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater of two integers with ">", the lesser with "<"."""
    return builder.select(builder.icmp_signed(order, a, b), a, b)


def _read_lanes(builder: ir.IRBuilder, array: ir.Value, type_: ir.Type, position: ir.Value, width: int) -> ir.Value:
    address = builder.gep(_pointer(builder, array), [position], source_etype=type_)
    return builder.load(address, typ=ir.VectorType(type_, width), align=1)


def _widen(builder: ir.IRBuilder, value: Value, width: int) -> Value:
    """A value of one lane in `width` lanes."""
    if width == 1:
        return value

    null = _wide(builder, value.null, width) if value.null is not None else None
    error = _wide(builder, value.error, width) if value.error is not None else None
    return Value(_wide(builder, value.lanes, width), null, error)


def _wide(builder: ir.IRBuilder, lanes: ir.Value, width: int) -> ir.Value:
    return lanes if width == 1 else splat(builder, builder.extract_element(lanes, ir.Constant(I32, 0)), width)


class _Stamps:
    """The stamps of one stream's tuples, read where the kernel stands: times, and counts where windows count."""

    def __init__(self, builder: ir.IRBuilder, table: ir.Value, counted: tuple[bool, bool]) -> None:
        self._b = builder
        self._arrays = [_entry(builder, table, k) for k in range(3 if any(counted) else 1)]

    def read(self, position: ir.Value, width: int) -> Stamps:
        """The lanes from `position` on."""
        return [_read_lanes(self._b, array, I64, position, width) for array in self._arrays]


class _Columns:
    """The columns of one stream, read where the kernel stands."""

    def __init__(
        self, builder: ir.IRBuilder, inputs: tuple[Slot, ...], values: ir.Value, statuses: ir.Value, nullable: bool
    ) -> None:
        self._b = builder
        self._inputs = inputs
        self._values = [_entry(builder, values, k) for k in range(len(inputs))]
        self._statuses = [_entry(builder, statuses, k) if nullable else None for k in range(len(inputs))]

    def read(self, position: ir.Value, width: int) -> dict[Column, Value]:
        """Every column's lanes from `position` on."""
        columns: dict[Column, Value] = {}
        for known, values, statuses in zip(self._inputs, self._values, self._statuses, strict=True):
            lanes = _read_lanes(self._b, values, element(known.column.type), position, width)
            if known.column.type.kind is Kind.BOOLEAN:
                lanes = self._b.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, [0] * width))
            null = error = None
            if statuses is not None:
                status = _read_lanes(self._b, statuses, I8, position, width)
                null = self._b.icmp_unsigned("==", status, ir.Constant(status.type, [NULL_STATUS] * width))
                if known.may_fail:
                    error = self._b.icmp_unsigned("==", status, ir.Constant(status.type, [ERROR_STATUS] * width))
            columns[known.column] = Value(lanes, null, error)
        return columns


class _Reader:
    """The literals, read once at the kernel's entry."""

    def __init__(self, builder: ir.IRBuilder, shapes: Expr | tuple[Expr, ...], buffer: ir.Value) -> None:
        self._values: dict[int, ir.Value] = {}
        for shape in shapes if isinstance(shapes, tuple) else (shapes,):
            rewrite(shape, lambda node: self._load(builder, buffer, node))

    def _load(self, builder: ir.IRBuilder, buffer: ir.Value, node: Expr) -> None:
        if isinstance(node, Literal) and node.value is not None:
            offset = ir.Constant(I64, node.slot * LITERAL_BYTES)
            address = builder.gep(_pointer(builder, buffer), [offset], source_etype=I8)
            self._values[node.slot] = builder.load(address, typ=element(node.type), align=1)

    def literal(self, literal: Literal) -> ir.Value:
        return self._values[literal.slot]


@dataclass
class _Loop:
    """`for position in range(start, stop, step)`, as long as `also` holds."""

    builder: ir.IRBuilder
    start: ir.Value
    stop: ir.Value
    step: ir.Value
    also: Callable[[ir.Value], ir.Value] | None = None

    def __enter__(self) -> _Loop:
        b = self.builder
        with b.goto_entry_block():
            self.counter = b.alloca(I64)
        b.store(self.start, self.counter)
        self._head, self._body, self._end = (b.append_basic_block() for _ in range(3))
        b.branch(self._head)
        b.position_at_end(self._head)
        self.position = b.load(self.counter, typ=I64)
        going = b.icmp_signed("<", self.position, self.stop)
        if self.also is not None:
            going = b.and_(going, self.also(self.position))
        b.cbranch(going, self._body, self._end)
        b.position_at_end(self._body)
        return self

    def __exit__(self, *_: object) -> None:
        b = self.builder
        if _ and _[0] is not None:
            return
        b.store(b.add(self.position, self.step), self.counter)
        b.branch(self._head)
        b.position_at_end(self._end)


@dataclass
class _While:
    """`while going()`."""

    builder: ir.IRBuilder
    going: Callable[[], ir.Value]

    def __enter__(self) -> None:
        b = self.builder
        self._head, self._body, self._end = (b.append_basic_block() for _ in range(3))
        b.branch(self._head)
        b.position_at_end(self._head)
        b.cbranch(self.going(), self._body, self._end)
        b.position_at_end(self._body)

    def __exit__(self, *_: object) -> None:
        b = self.builder
        if _ and _[0] is not None:
            return
        b.branch(self._head)
        b.position_at_end(self._end)
