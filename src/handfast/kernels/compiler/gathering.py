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

_GATHER_WORDS, _OWNER_WORDS, _PLACE_WORDS = 5, 6, 7


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
    """Where bounds belong in a column that never goes down: before its equals, or behind them if `right`.

    Words: the column, its length, the numbers that are bounds once a shift was added to each, how many, the shift,
    below which place none is said to belong, where to write.
    """
    function, b = _function("places", _PLACE_WORDS)
    column, length, numbers, count, shift, oldest, out = function.args
    before, low, high, step = (b.alloca(I64) for _ in range(4))
    for place in (before, low):
        b.store(_ZERO, place)

    def now(place: ir.Value) -> ir.Value:
        return b.load(place, typ=I64)

    with Loop(b, _ZERO, count, _ONE) as loop:
        bound = b.add(read(b, numbers, I64, loop.position), shift)

        def is_before(at: ir.Value) -> ir.Value:
            return b.icmp_signed("<=" if right else "<", read(b, column, I64, at), bound)

        # where the last one belongs is near, most often; it is sought from there on in steps that double
        b.store(b.select(b.icmp_signed("<", bound, now(before)), _ZERO, now(low)), low)
        b.store(bound, before)
        b.store(now(low), high)
        b.store(_ONE, step)
        with While(b, lambda: b.icmp_signed("<", now(high), length), lambda: is_before(now(high))):
            b.store(b.add(now(high), _ONE), low)
            b.store(b.add(now(high), now(step)), high)
            b.store(b.shl(now(step), _ONE), step)
        b.store(b.select(b.icmp_signed("<", now(high), length), now(high), length), high)
        with While(b, lambda: b.icmp_signed("<", now(low), now(high))):
            middle = b.lshr(b.add(now(low), now(high)), _ONE)
            passed = is_before(middle)
            b.store(b.select(passed, b.add(middle, _ONE), now(low)), low)
            b.store(b.select(passed, now(high), middle), high)
        least = b.icmp_signed("<", now(low), oldest)
        write(b, out, loop.position, b.select(least, oldest, now(low)))
    b.ret(_ZERO)
    return load(function.module, {"places": _PLACE_WORDS})["places"]


def _function(name: str, words: int) -> tuple[ir.Function, ir.IRBuilder]:
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * words), name)
    return function, ir.IRBuilder(function.append_basic_block("entry"))
