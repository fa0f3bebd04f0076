"""Kernels for one predicate shape: scan two runs of tuples, check candidates, derive columns.

A kernel reads columns through an array of pointers, literals through a buffer (so a shape compiles once, whatever its
constants), and writes the positions of the pairs it finds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from llvmlite import ir

from handfast.kernels.compiler.access import ColumnLanes, Literals, StampLanes, entry, pointer, read, write
from handfast.kernels.compiler.codegen import (
    ERROR_STATUS,
    I1,
    I8,
    I32,
    I64,
    NULL_STATUS,
    Emitter,
    Value,
    call_intrinsic,
    splat,
)
from handfast.kernels.compiler.loops import Loop, While
from handfast.kernels.compiler.native import Native, load
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.window import holds
from handfast.kernels.sizes import Vectors
from handfast.spec.expression import Expr, Literal, rewrite
from handfast.spec.types import Kind

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
    vectors: Vectors,
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
    inner, lanes = 1 - outer, vectors.lanes
    constants = Literals(builder, shape, literals)
    outer_columns = ColumnLanes(builder, inputs[outer], o_values, o_statuses, nullable)
    inner_columns = ColumnLanes(builder, inputs[inner], i_values, i_statuses, nullable)
    outer_stamps, inner_stamps = StampLanes(builder, o_stamps, counted), StampLanes(builder, i_stamps, counted)
    found, left = builder.alloca(I64), builder.alloca(I64)
    builder.store(_ZERO, found)
    reach = builder.sub(i_stop, i_start)

    def room(position: ir.Value) -> ir.Value:
        return builder.icmp_signed("<=", builder.add(builder.load(found, typ=I64), reach), capacity)

    with Loop(builder, o_start, o_stop, _ONE, also=room) as outer_loop:
        o = outer_loop.position
        o_stamp = outer_stamps.read(o, 1)
        held = outer_columns.read(o, 1)
        own_start = _pick(builder, ">", read(builder, starts, I64, o), i_start)
        own_stop = _pick(builder, "<", read(builder, stops, I64, o), i_stop)
        length = _pick(builder, ">", builder.sub(own_stop, own_start), _ZERO)
        grouped = builder.add(own_start, builder.and_(length, ir.Constant(I64, -vectors.pairs)))

        def hits(width: int, i: ir.Value) -> ir.Value:
            columns = {column: _widen(builder, value, width) for column, value in held.items()}
            columns.update(inner_columns.read(i, width))
            emitter = Emitter(builder, width, columns, constants.literal)
            if not windowed:
                return emitter.truth(shape)
            stamps = [[_wide(builder, stamp, width) for stamp in o_stamp], inner_stamps.read(i, width)]
            r, s = stamps if outer == 0 else reversed(stamps)
            lengths = splat(builder, first, width), splat(builder, second, width)
            inside = holds(builder, counted, r, s, lengths)
            return builder.and_(inside, emitter.truth(shape))

        def add_pair(i: ir.Value) -> None:
            n = builder.load(found, typ=I64)
            write(builder, o_out, n, o)
            write(builder, i_out, n, i)
            builder.store(builder.add(n, _ONE), found)

        with Loop(builder, own_start, grouped, ir.Constant(I64, vectors.pairs)) as inner_loop:
            mask: ir.Value = ir.Constant(I64, 0)
            for part in range(vectors.group):
                base = builder.add(inner_loop.position, ir.Constant(I64, part * lanes))
                bits = builder.zext(builder.bitcast(hits(lanes, base), ir.IntType(lanes)), I64)
                mask = builder.or_(mask, builder.shl(bits, ir.Constant(I64, part * lanes)))
            with builder.if_then(builder.icmp_unsigned("!=", mask, _ZERO), likely=False):
                builder.store(mask, left)
                with While(builder, lambda: builder.icmp_unsigned("!=", builder.load(left, typ=I64), _ZERO)):
                    now = builder.load(left, typ=I64)
                    bit = call_intrinsic(builder, "llvm.cttz.i64", [now, ir.Constant(I1, 1)], I64)
                    add_pair(builder.add(inner_loop.position, bit))
                    builder.store(builder.and_(now, builder.sub(now, _ONE)), left)
        with (
            Loop(builder, grouped, own_stop, _ONE) as tail,
            builder.if_then(builder.extract_element(hits(1, tail.position), ir.Constant(I32, 0)), likely=False),
        ):
            add_pair(tail.position)
    builder.store(builder.load(outer_loop.counter, typ=I64), pointer(builder, resume))
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
    constants = Literals(builder, shape, literals)
    columns_r = ColumnLanes(builder, inputs[0], r_values, r_statuses, nullable)
    columns_s = ColumnLanes(builder, inputs[1], s_values, s_statuses, nullable)
    stamps_r, stamps_s = StampLanes(builder, r_stamps, counted), StampLanes(builder, s_stamps, counted)
    kept = builder.alloca(I64)
    builder.store(_ZERO, kept)
    with Loop(builder, _ZERO, count, _ONE) as loop:
        r = read(builder, r_at, I64, loop.position)
        s = read(builder, s_at, I64, loop.position)
        lengths = splat(builder, first, 1), splat(builder, second, 1)
        inside = holds(builder, counted, stamps_r.read(r, 1), stamps_s.read(s, 1), lengths)
        with builder.if_then(builder.extract_element(inside, ir.Constant(I32, 0))):
            emitter = Emitter(builder, 1, {**columns_r.read(r, 1), **columns_s.read(s, 1)}, constants.literal)
            with builder.if_then(builder.extract_element(emitter.truth(shape), ir.Constant(I32, 0))):
                n = builder.load(kept, typ=I64)
                write(builder, r_at, n, r)
                write(builder, s_at, n, s)
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
    constants = Literals(builder, shapes, literals)
    columns = ColumnLanes(builder, inputs, values, statuses, True)
    outs = [(entry(builder, out_values, k), entry(builder, out_statuses, k)) for k in range(len(shapes))]
    with Loop(builder, _ZERO, count, _ONE) as loop:
        emitter = Emitter(builder, 1, columns.read(loop.position, 1), constants.literal)
        for shape, (out, status_out) in zip(shapes, outs, strict=True):
            value = emitter.emit(shape)
            lane = builder.extract_element(value.lanes, ir.Constant(I32, 0))
            lane = builder.zext(lane, I8) if shape.type.kind is Kind.BOOLEAN else lane
            write(builder, out, loop.position, lane)
            status: ir.Value = ir.Constant(I8, 0)
            for flags, code in ((value.null, NULL_STATUS), (value.error, ERROR_STATUS)):
                if flags is not None:
                    flag = builder.extract_element(flags, ir.Constant(I32, 0))
                    status = builder.select(flag, ir.Constant(I8, code), status)
            write(builder, status_out, loop.position, status)
    builder.ret(_ZERO)
    return load(function.module, {"derive": DERIVE_WORDS})["derive"]


def _function(name: str, words: int) -> tuple[ir.Function, ir.IRBuilder]:
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * words), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _pick(builder: ir.IRBuilder, order: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater of two integers with ">", the lesser with "<"."""
    return builder.select(builder.icmp_signed(order, a, b), a, b)


def _widen(builder: ir.IRBuilder, value: Value, width: int) -> Value:
    """A value of one lane in `width` lanes."""
    if width == 1:
        return value

    null = _wide(builder, value.null, width) if value.null is not None else None
    error = _wide(builder, value.error, width) if value.error is not None else None
    return Value(_wide(builder, value.lanes, width), null, error)


def _wide(builder: ir.IRBuilder, lanes: ir.Value, width: int) -> ir.Value:
    return lanes if width == 1 else splat(builder, builder.extract_element(lanes, ir.Constant(I32, 0)), width)
