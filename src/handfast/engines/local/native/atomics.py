"""Words that threads share: acquire and release, an exchange, a fence, calls of machine code. Imported with Numba.

Each is also a Python function, which does the same for one thread: so what is made of them runs as Python, too.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

_BYTES = 8  # of a word
_PAUSES = platform.machine() in ("x86_64", "AMD64")


def load(words: Any, at: int) -> int:
    """The word at a place, and with it all that was written before whoever stored it did so."""
    return int(words[at])


def store(words: Any, at: int, value: int) -> None:
    """Store a word after all that was written before."""
    words[at] = value


def exchange(words: Any, at: int, value: int) -> int:
    """Store a word, and give back the one that was there: no other thread comes between."""
    before = int(words[at])
    words[at] = value
    return before


def fence() -> None:
    """Let all that was stored before be seen before anything is loaded behind."""


def pause() -> None:
    """Let the other threads of this CPU have a moment."""


def call(address: int, words: Any) -> int:
    """Call machine code that takes words and returns one."""
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(int(address))
    return int(function(*map(int, words)))


_intrinsic: Any = intrinsic  # calls of what it makes have no argument for the types

# -- the same as machine code ----------------------------------------------------------------------------------------


def _at(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


@_intrinsic
def _load(typing, words, at):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_at(context, builder, words, args[0], args[1]), "acquire", _BYTES)

    return types.int64(words, types.intp), emit


@_intrinsic
def _store(typing, words, at, value):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.store_atomic(args[2], _at(context, builder, words, args[0], args[1]), "release", _BYTES)
        return context.get_dummy_value()

    return types.void(words, types.intp, types.int64), emit


@_intrinsic
def _exchange(typing, words, at, value):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("xchg", _at(context, builder, words, args[0], args[1]), args[2], "seq_cst")

    return types.int64(words, types.intp, types.int64), emit


@_intrinsic
def _fence(typing):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), emit


@_intrinsic
def _pause(typing):  # type: ignore[no-untyped-def]
    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        if _PAUSES:
            name = "llvm.x86.sse2.pause"
            known = builder.module.globals.get(name)
            builder.call(known or ir.Function(builder.module, ir.FunctionType(ir.VoidType(), []), name), [])
        return context.get_dummy_value()

    return types.void(), emit


@_intrinsic
def _call(typing, address, words):  # type: ignore[no-untyped-def]
    word = ir.IntType(64)

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        shape = ir.FunctionType(word, [word] * words.count)
        function = builder.inttoptr(args[0], shape.as_pointer())
        return builder.call(function, [builder.extract_value(args[1], k) for k in range(words.count)])

    return types.int64(types.int64, words), emit


@overload(load)
def _load_of(words, at):  # type: ignore[no-untyped-def]
    return lambda words, at: _load(words, at)


@overload(store)
def _store_of(words, at, value):  # type: ignore[no-untyped-def]
    return lambda words, at, value: _store(words, at, value)


@overload(exchange)
def _exchange_of(words, at, value):  # type: ignore[no-untyped-def]
    return lambda words, at, value: _exchange(words, at, value)


@overload(fence)
def _fence_of():  # type: ignore[no-untyped-def]
    return lambda: _fence()


@overload(pause)
def _pause_of():  # type: ignore[no-untyped-def]
    return lambda: _pause()


@overload(call)
def _call_of(address, words):  # type: ignore[no-untyped-def]
    return lambda address, words: _call(address, words)
