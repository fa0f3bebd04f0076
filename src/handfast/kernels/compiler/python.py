"""Predicates written in Python, as loops by Numba. Imported when the first one is met: Numba takes a while to load."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import jit, njit, types
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from handfast.errors import SpecError
from handfast.spec.frozen_function import thaw
from handfast.spec.python_predicate import PythonPredicate
from handfast.spec.types import Kind, Type

_LOOP = """
def loop(truth, refused, {names}):
    for i in range(truth.shape[0]):
        try:
            truth[i] = bool(function({items}))
        except Exception:
            refused[i] = True
"""


@lru_cache(maxsize=64)
def compiled(predicate: PythonPredicate, kinds: tuple[Type, ...]) -> Any:
    """The loop over columns of these types, or an error that says what Numba cannot compile."""
    names = [f"column{k}" for k in range(len(kinds))]
    source = _LOOP.format(names=", ".join(names), items=", ".join(f"{name}[i]" for name in names))
    scope: dict[str, Any] = {"function": thaw(predicate.frozen, _jitted)}
    exec(source, scope)  # noqa: S102 — Numba cannot spread a tuple of arrays over the arguments of a call
    flags = types.boolean[::1]
    signature = types.void(flags, flags, *(_number(kind)[::1] for kind in kinds))
    try:
        return njit(signature, nogil=True, boundscheck=True)(scope["loop"])
    except NumbaError as error:
        raise SpecError(
            f"Numba cannot compile the predicate {predicate.name!r}; it takes loops, arithmetic and math, no objects:\n"
            f"{str(error).strip()}"
        ) from error


def _jitted(function: Any, options: dict[str, Any] | None) -> Any:
    """A function of the predicate's, with the options that the user has compiled it with."""
    return jit(**{**(options or {}), "nopython": True, "nogil": True, "boundscheck": True})(function)


def run(
    predicate: PythonPredicate, kinds: tuple[Type, ...], columns: list[NDArray[Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For which rows the predicate holds, and for which it raises an error."""
    wide = [np.ascontiguousarray(column, _dtype(kind)) for column, kind in zip(columns, kinds, strict=True)]
    truth, refused = np.zeros(len(columns[0]), np.bool_), np.zeros(len(columns[0]), np.bool_)
    compiled(predicate, kinds)(truth, refused, *wide)
    return truth, refused


def _dtype(kind: Type) -> type[np.generic]:
    if kind.kind is Kind.BOOLEAN:
        return np.bool_
    return np.float64 if kind.is_floating else np.int64


def _number(kind: Type) -> Any:
    """The type that a value has in the function: 64 bits, the nearest to a number in Python."""
    if kind.kind is Kind.BOOLEAN:
        return types.boolean
    return types.float64 if kind.is_floating else types.int64
