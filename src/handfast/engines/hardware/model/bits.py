"""Sets of small numbers as bits of 64-bit words: what a model has to look at in a cycle, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

Ints = npt.NDArray[np.int64]

Function = TypeVar("Function", bound=Callable[..., Any])

# Without counting references the loop is several times as fast; it may not make arrays then.
UNCOUNTED: dict[str, Any] = {"nogil": True, "_nrt": False}


def kernel(function: Function) -> Function:
    """Make a function a part of the loop, which Python never calls.

    It is inlined: handing on a state of many arrays costs more than most kernels do.
    """
    options = UNCOUNTED | {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)
    return compiled


def empty_set(size: int) -> Ints:
    """An empty set of numbers below `size`."""
    return np.zeros(max(1, -(-size // 64)), np.int64)


def set_of(members: Iterable[int], size: int) -> Ints:
    """The set of these numbers below `size`."""
    words = empty_set(size).view(np.uint64)
    for number in members:
        words[number >> 6] |= np.uint64(1 << (number & 63))
    return words.view(np.int64)


def empty_sets(count: int, size: int) -> Ints:
    """So many of them, one in each row."""
    return np.zeros((count, len(empty_set(size))), np.int64)


@intrinsic
def _lowest(context: Any, word: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return word(word), generate


lowest: Callable[[int], int] = cast(Any, _lowest)
"""The place of the lowest bit that is 1; there must be one."""


@kernel
def put(members: Ints, number: int) -> None:
    """Put a number into a set."""
    members[number >> 6] |= np.int64(1) << (number & 63)


@kernel
def remove(members: Ints, number: int) -> None:
    """Take a number out of a set."""
    members[number >> 6] &= ~(np.int64(1) << (number & 63))


@kernel
def put_in(sets: Ints, row: int, number: int) -> None:
    """Put a number into one of several sets; a view of the row would cost more than the rest."""
    sets[row, number >> 6] |= np.int64(1) << (number & 63)


@kernel
def remove_from(sets: Ints, row: int, number: int) -> None:
    """Take a number out of one of several sets."""
    sets[row, number >> 6] &= ~(np.int64(1) << (number & 63))


@kernel
def first_from(word: int, place: int) -> int:
    """The place of the first bit that is 1 from `place` on, round and round; there must be one."""
    ahead = word >> place
    return place + lowest(ahead) if ahead else lowest(word)
