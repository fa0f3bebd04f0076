"""What the loops of all indexes share: memory fetched ahead of its use, pairs turned round."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def _prefetch(typing, array, index):  # type: ignore[no-untyped-def]
    """Have the cache line of an array's element fetched; it does no harm if there is no such element."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(function, [address, word(0), word(3), word(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


prefetch: Any = _prefetch


@njit(cache=True, nogil=True)
def turn_round(places, found, n):  # type: ignore[no-untyped-def]
    """Put what was found last first: people read matches from the oldest to the newest."""
    for k in range(n // 2):
        last = n - 1 - k
        places[k], places[last] = places[last], places[k]
        found[k], found[last] = found[last], found[k]


@intrinsic
def _words_at(typing, address):  # type: ignore[no-untyped-def]
    """An address as a pointer to words of 32 bits."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], ir.IntType(32).as_pointer())

    return types.CPointer(types.uint32)(types.int64), emit  # type: ignore[no-untyped-call]


words_at: Any = _words_at
