"""Kernels for one predicate shape: check candidates, derive columns. `scan.py` has the one that tries all pairs.

A kernel reads columns through an array of pointers, literals through a buffer (so a shape compiles once, whatever its
constants), and writes the positions of the pairs it finds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from llvmlite import ir

from handfast.kernels.compiler.access import ColumnLanes, Literals, StampLanes, entry, read, write
from handfast.kernels.compiler.codegen import (
    ERROR_STATUS,
    I8,
    I32,
    I64,
    NULL_STATUS,
    Emitter,
    splat,
)
from handfast.kernels.compiler.loops import Loop
from handfast.kernels.compiler.native import Native, load
from handfast.kernels.compiler.program import Slot
from handfast.kernels.compiler.window import holds
from handfast.kernels.target import Target
from handfast.spec.expression import Expr, Literal, rewrite
from handfast.spec.types import Kind

_ONE, _ZERO = ir.Constant(I64, 1), ir.Constant(I64, 0)

CHECK_WORDS = 12
DERIVE_WORDS = 6


def blank(expr: Expr) -> Expr:
    """The shape of a tree: its literals' values left out, NULLs kept."""

    def without_value(node: Expr) -> Expr | None:
        return replace(node, value=0) if isinstance(node, Literal) and node.value is not None else None

    return rewrite(expr, without_value)


@lru_cache(maxsize=512)
def check_kernel(
    shape: Expr, inputs: tuple[tuple[Slot, ...], ...], counted: tuple[bool, bool], nullable: bool, target: Target
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
    return load(function.module, {"check": CHECK_WORDS}, target)["check"]


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
