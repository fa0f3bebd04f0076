"""The cell of each tuple, and the cells its partners can lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.program import Program
from handfast.kernels.compute import Array
from handfast.kernels.index.bands import BandScale, Range
from handfast.kernels.index.strides import FIRST_STRIDE, SECOND_STRIDE
from handfast.spec.classify import Band, Equality

Cells = NDArray[np.uint64]

_STRIDES = (np.uint64(FIRST_STRIDE), np.uint64(SECOND_STRIDE))
_MIX = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class Line:
    """Where tuples stand by the key of a band, and between which keys their partners do."""

    keys: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a run of tuples of one stream.

    `present` tuples lie in `cells` and find partners from `base` and `ranges`; `wild` ones must meet everyone; the
    others can never match.
    """

    cells: Cells
    base: Cells
    ranges: list[Range]
    present: NDArray[np.bool_]
    wild: NDArray[np.bool_]
    line: Line | None = None


class KeyMaker:
    """Makes the keys of both streams from the equalities and one or two bands of a predicate."""

    def __init__(self, program: Program, equalities: tuple[Equality, ...], bands: tuple[Band, ...]) -> None:
        self._sides = [[program.position(equality.sides[side]) for equality in equalities] for side in (0, 1)]
        self.scales = [BandScale(band, program) for band in bands]

    def make(self, side: int, columns: Columns) -> Keys:
        """The keys of tuples of stream `side`."""
        base, dead = equal_keys(columns, self._sides[side])
        wild = np.zeros(len(columns), np.bool_)
        cells = base.copy()
        ranges = []
        line = None
        for scale, stride in zip(self.scales, _STRIDES, strict=False):
            keys = scale.keys(side, columns)
            dead |= keys.dead
            wild |= keys.wild
            cells += scale.buckets(keys).astype(np.uint64) * stride
            ranges.append(scale.partners(side, keys))
            line = line or Line(keys.keys, *scale.bounds(side, keys))
        wild &= ~dead
        return Keys(cells, base, ranges, ~dead & ~wild, wild, line)


def equal_keys(columns: Columns, positions: list[int]) -> tuple[Cells, NDArray[np.bool_]]:
    """A number that is equal for equal keys, and which tuples have no key (NULL or an error) and so never match."""
    base = np.zeros(len(columns), np.uint64)
    dead = np.zeros(len(columns), np.bool_)
    for position in positions:
        base = mix(base * _MIX + canonical(columns.values[position]))
        status = columns.statuses[position]
        if status is not None:
            dead |= status != 0
    return base, dead


def canonical(values: Array) -> Cells:
    """The same bits for values that compare equal: one NaN, one zero."""
    if values.dtype.kind == "V":  # a decimal of several words
        first, *others = np.ascontiguousarray(values).view(np.uint64).reshape(len(values), -1).T
        for word in others:
            first = mix(first * _MIX + word)
        return first
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return values.astype(np.int64).view(np.uint64)


def mix(bits: Cells) -> Cells:
    """Spread every bit over the whole word."""
    bits = (bits ^ (bits >> np.uint64(31))) * _MIX
    return bits ^ (bits >> np.uint64(29))
