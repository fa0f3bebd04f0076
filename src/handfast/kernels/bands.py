"""Bands as buckets of numbers: where a tuple lies, and where its partners can lie.

Buckets only propose candidates, so every rounding here is taken with room to spare: a tuple whose key is too large for
its rounding errors to be small against the band, or is no number at all, is *wild* and meets everyone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.program import Program
from handfast.spec.classify import Band
from handfast.spec.expression import Expr
from handfast.spec.types import Kind

_EXACT_LIMIT = 1 << 60  # sums of a few such integers stay inside int64
_SMALL = frozenset({Kind.INT8, Kind.INT16, Kind.INT32, Kind.DATE})  # whatever their values, they are never wild
Range = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class BandKeys:
    """The keys of a run of tuples for one band; `dead` ones (NULL or an error) can never match."""

    keys: NDArray[np.int64] | NDArray[np.float64]
    dead: NDArray[np.bool_]
    wild: NDArray[np.bool_]


class BandScale:
    """One band's buckets: as wide as the band, so that a tuple's partners lie in at most three."""

    def __init__(self, band: Band, program: Program) -> None:
        self._terms = [[(sign, program.position(expr)) for sign, expr in key] for key in band.keys]
        self._exact = band.unit == 0.0
        self.tame = self._exact and all(expr.type.kind in _SMALL for key in band.keys for _, expr in key)
        if self._exact:
            low, high = math.ceil(band.low), math.floor(band.high)
            self._low: float | int = low
            self._high: float | int = high
            self._width: float | int = max(1, high - low + 1)
        else:
            self._low, self._high = float(band.low), float(band.high)
            self._error = 2 * (band.steps + max(map(len, band.keys)) + 2) * max(band.unit, 2.0**-53)
            reach = max(abs(self._low), abs(self._high), float(band.constants))
            least = band.steps * (2.0**-149 if band.unit == 2.0**-24 else 2.0**-1074)  # what underflow can lose
            self._width = max(self._high - self._low, 8 * (self._error * reach + least)) or 1.0

    def keys(self, side: int, columns: Columns) -> BandKeys:
        """The keys of tuples on one side of the band."""
        count = len(columns)
        dead = np.zeros(count, np.bool_)
        for _, position in self._terms[side]:
            status = columns.statuses[position]
            if status is not None:
                dead |= status != 0
        if self._exact:
            return self._exact_keys(side, columns, dead)
        total, size = np.zeros(count), np.zeros(count)
        with np.errstate(all="ignore"):
            for sign, position in self._terms[side]:
                term = columns.values[position].astype(np.float64)
                total += sign * term
                size += np.abs(term)
            tame = np.isfinite(size) & (size * self._error <= self._width / 8)
        return BandKeys(np.where(tame, total, 0.0), dead, ~tame & ~dead)

    def _exact_keys(self, side: int, columns: Columns, dead: NDArray[np.bool_]) -> BandKeys:
        total = np.zeros(len(columns), np.int64)
        limit = _EXACT_LIMIT // len(self._terms[side])
        wild = np.zeros(len(columns), np.bool_)
        for sign, position in self._terms[side]:
            term = columns.values[position].astype(np.int64)
            wild |= (term > limit) | (term < -limit)
            total += sign * np.where(wild, 0, term)
        return BandKeys(np.where(wild, 0, total), dead, wild & ~dead)

    def buckets(self, keys: BandKeys) -> NDArray[np.int64]:
        """The bucket that each tuple lies in."""
        return self._floor(keys.keys)

    def partners(self, side: int, keys: BandKeys) -> Range:
        """The first and last bucket that partners on the other side can lie in."""
        low, high = (-self._high, -self._low) if side == 0 else (self._low, self._high)
        slack = 0 if self._exact else self._width / 2
        return self._floor(keys.keys + low - slack), self._floor(keys.keys + high + slack)

    def _floor(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        buckets: NDArray[np.int64] = np.floor_divide(keys, self._width).astype(np.int64)
        return buckets


def band_terms(band: Band) -> list[Expr]:
    """The expressions that a band's keys are made of."""
    return [expr for key in band.keys for _, expr in key]
