"""Columns of one value, which take no memory: most tuples are at home, and nobody marks tuples of most joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def same(value: T, count: int) -> NDArray[T]:
    """So many of one value; nobody may write to them."""
    return np.broadcast_to(value, count)


def joined(columns: Sequence[NDArray[T]]) -> NDArray[T]:
    """Columns one behind the other."""
    if all(map(_is_same, columns)) and len({own[0] for own in columns}) == 1:
        return same(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns)


def taken(column: NDArray[T], rows: NDArray[Any]) -> NDArray[T]:
    """The values at these places."""
    return same(column[0], len(rows)) if _is_same(column) else column[rows]


def _is_same(column: NDArray[T]) -> bool:
    return column.strides == (0,) and len(column) > 0
