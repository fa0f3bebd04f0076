"""Kernels that gather values from many blocks, and one that finds the places of bounds in a sorted column."""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from handfast.flow.fixed import BITS
from handfast.kernels.compiler.access import pointer, read, write
from handfast.kernels.compiler.codegen import I8, I64
from handfast.kernels.compiler.loops import Loop, While
from handfast.kernels.compiler.native import Native, load

I32 = ir.IntType(32)
_ONE, _ZERO = ir.Constant(I64, 1), ir.Constant(I64, 0)

_GATHER_WORDS, _OWNER_WORDS, _PLACE_WORDS = 5, 6, 6


@cache
def gather_kernel(width: int, owned: bool) -> Native:
    """Values of so many bytes each, or bits as bytes, from the blocks that own them.

    Words: by block the address that its values would begin at if it began at position 0 (of bits, counted in bits), by
    place the number of the block (if `owned`; otherwise there is one block), by place the position, where to write,
    how many places.
    """
    function, b = _function("gather", _GATHER_WORDS)
    bases, owners, positions, out, count = function.args
    only = None if owned else read(b, bases, I64, _ZERO)
    with Loop(b, _ZERO, count, _ONE) as loop:
        base = read(b, bases, I64, b.zext(read(b, owners, I32, loop.position), I64)) if only is None else only
        position = read(b, positions, I64, loop.position)
        if width == BITS:
            bit = b.add(base, position)
            octet = b.load(pointer(b, b.lshr(bit, ir.Constant(I64, 3))), typ=I8, align=1)
            shift = b.trunc(b.and_(bit, ir.Constant(I64, 7)), I8)
            write(b, out, loop.position, b.and_(b.lshr(octet, shift), ir.Constant(I8, 1)))
        else:
            write(b, out, loop.position, read(b, base, ir.IntType(8 * width), position))
    b.ret(_ZERO)
    return load(function.module, {"gather": _GATHER_WORDS})["gather"]


@cache
def owner_kernel() -> Native:
    """The number of the block that owns each position.

    Words: for every page of positions the first block with any of it, how many bits of a position tell where it is in
    its page, where each block starts and, behind them, a number above all positions, the positions, where to write,
    how many.
    """
    function, b = _function("owners", _OWNER_WORDS)
    pages, bits, starts, positions, out, count = function.args
    owner = b.alloca(I64)
    with Loop(b, _ZERO, count, _ONE) as loop:
        position = read(b, positions, I64, loop.position)
        b.store(b.zext(read(b, pages, I32, b.lshr(position, bits)), I64), owner)

        def ends_before() -> ir.Value:
            behind = read(b, starts, I64, b.add(b.load(owner, typ=I64), _ONE))
            return b.icmp_signed("<=", behind, position)

        with While(b, ends_before):
            b.store(b.add(b.load(owner, typ=I64), _ONE), owner)
        write(b, out, loop.position, b.trunc(b.load(owner, typ=I64), I32))
    b.ret(_ZERO)
    return load(function.module, {"owners": _OWNER_WORDS})["owners"]


@cache
def place_kernel(right: bool) -> Native:
    """Where bounds that never go down belong in a column that never goes down: before its equals, or behind them.

    Words: the column, where the first belongs at the earliest and the last at the latest, bounds, where to write, how
    many.
    """
    function, b = _function("places", _PLACE_WORDS)
    column, first, last, bounds, out, count = function.args
    place = b.alloca(I64)
    b.store(first, place)
    with Loop(b, _ZERO, count, _ONE) as loop:
        bound = read(b, bounds, I64, loop.position)

        def goes_on() -> ir.Value:
            at = b.load(place, typ=I64)
            inside = b.icmp_signed("<", at, last)
            safe = b.select(inside, at, first)
            below = b.icmp_signed("<=" if right else "<", read(b, column, I64, safe), bound)
            return b.and_(inside, below)

        with While(b, goes_on):
            b.store(b.add(b.load(place, typ=I64), _ONE), place)
        write(b, out, loop.position, b.load(place, typ=I64))
    b.ret(_ZERO)
    return load(function.module, {"places": _PLACE_WORDS})["places"]


def _function(name: str, words: int) -> tuple[ir.Function, ir.IRBuilder]:
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * words), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))
