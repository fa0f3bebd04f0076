"""The keys that equalities and bands make of tuples: what the indexes and the routing go by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.index.bands import BandKeys, BandScale
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.values import Array

Numbers = NDArray[np.uint64]

_MIX = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class ConditionKeys:
    """The keys of a run of tuples of one stream.

    `groups` has the same number for tuples whose equality keys are equal, `bands` where the tuples lie in each band.
    These find the partners of `present` tuples only; `wild` ones must meet everyone, and `dead` ones never match.
    """

    groups: Numbers
    bands: tuple[BandKeys, ...]
    present: NDArray[np.bool_]
    wild: NDArray[np.bool_]
    dead: NDArray[np.bool_]


class KeyMaker:
    """Makes the keys of one stream's tuples."""

    def __init__(self, conditions: PairConditions, side: int) -> None:
        self._side = side
        self._positions = [conditions.program.position(equality.sides[side]) for equality in conditions.equalities]
        self.scales = tuple(BandScale(band, conditions.program) for band in conditions.bands)

    def make(self, columns: Columns) -> ConditionKeys:
        """The keys of tuples of this stream."""
        groups, dead = equal_keys(columns, self._positions)
        wild = np.zeros(len(columns), np.bool_)
        bands = tuple([scale.keys(self._side, columns) for scale in self.scales])
        for band in bands:
            dead |= band.dead
            wild |= band.wild
        wild &= ~dead
        return ConditionKeys(groups, bands, ~(dead | wild), wild, dead)


def equal_keys(columns: Columns, positions: list[int]) -> tuple[Numbers, NDArray[np.bool_]]:
    """A number that is equal for equal keys, and which tuples have no key (NULL or an error) and so never match."""
    groups = np.zeros(len(columns), np.uint64)
    dead = np.zeros(len(columns), np.bool_)
    for position in positions:
        groups = mix(groups * _MIX + canonical(columns.values[position]))
        status = columns.statuses[position]
        if status is not None:
            dead |= status != 0
    return groups, dead


def canonical(values: Array) -> Numbers:
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


def mix(bits: Numbers) -> Numbers:
    """Spread every bit over the whole word."""
    bits = (bits ^ (bits >> np.uint64(31))) * _MIX
    return bits ^ (bits >> np.uint64(29))
