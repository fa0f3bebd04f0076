"""Bands as buckets of numbers: in which bucket a tuple lies, and in which its partners can lie.

Buckets only propose candidates, so whatever is rounded here leaves room for the error. A tuple is *wild*, and meets
everyone, if its key is not a number, or is so large that its rounding error is not small against the band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.program import Program
from handfast.spec.classify import Band
from handfast.spec.expression import Expr
from handfast.spec.types import Kind, Type, as_decimal

_EXACT_LIMIT = 1 << 60  # sums of a few such integers stay inside int64
_DATE_LIMIT = 1 << 29  # sums of a few such days do not overflow
_NARROWEST = 2.0**-1000  # a number of cells divided by it is still finite
_FAR = _EXACT_LIMIT // 4  # a bound: what a key and a bound reach is still inside int64 in numbers of the finest cells
_FEW = 6  # digits after the point that leave room for twelve before it
FINE = 4  # cells in the width of a band where they lie side by side
BucketRange = tuple[NDArray[np.int64], NDArray[np.int64]]  # by tuple, the first bucket and the last


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class BandKeys:
    """The keys of a run of tuples for one band; `dead` ones (NULL or an error) can never match."""

    keys: NDArray[np.int64] | NDArray[np.float64]
    dead: NDArray[np.bool_]
    wild: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Term:
    """A summand of a key: where it stands among the inputs, and what its integers are worth."""

    sign: int
    position: int
    type: Type


class BandScale:
    """The buckets of one band: as wide as the band, so that a tuple's partners lie in at most three of them."""

    def __init__(self, band: Band, program: Program) -> None:
        self._terms = [[_Term(sign, program.position(expr), expr.type) for sign, expr in key] for key in band.keys]
        types = [expr.type for expr in band_terms(band)]
        self._scale = max(type_.scale for type_ in types)
        unit = 10**self._scale
        small = max(abs(band.low), abs(band.high), band.constants) * unit < _FAR
        self._exact = band.unit == 0.0 and small and _few_digits(types, self._scale)
        self._limit = _DATE_LIMIT if any(type_.kind is Kind.DATE for type_ in types) else _EXACT_LIMIT
        # whether no tuple is ever wild, whatever its values are
        self.tame = self._exact and all(
            _largest(term.type) <= self._term_limit(side, term) for side in (0, 1) for term in self._terms[side]
        )
        if self._exact:
            low, high = math.ceil(band.low * unit), math.floor(band.high * unit)
            self._low: float | int = low
            self._high: float | int = high
            self._width: float | int = max(1, high - low + 1)
        else:
            self._low, self._high = float(band.low), float(band.high)
            # two more roundings for a decimal: that of its integer, and the division by its scale
            steps = band.steps + max(map(len, band.keys)) + (2 if band.unit and not self._scale else 5)
            self._error = 2 * steps * max(band.unit, 2.0**-53)
            reach = max(abs(self._low), abs(self._high), float(band.constants))
            least = band.steps * (2.0**-149 if band.unit == 2.0**-24 else 2.0**-1074)  # what underflow can lose
            width = max(self._high - self._low, 8 * (self._error * reach + least))
            self._width = max(width, _NARROWEST) if width else 1.0

    def only_term(self, side: int) -> tuple[int, int, int] | None:
        """Where it stands among the inputs, what it is multiplied by, and its limit, if a key is but one integer."""
        (term, *others) = self._terms[side]
        if others or not self._exact:
            return None
        return term.position, term.sign * self._unit(term), self._term_limit(side, term)

    def keys(self, side: int, columns: Columns) -> BandKeys:
        """The keys of tuples on one side of the band."""
        count = len(columns)
        dead = np.zeros(count, np.bool_)
        for term in self._terms[side]:
            status = columns.statuses[term.position]
            if status is not None:
                dead |= status != 0
        if self._exact:
            return self._exact_keys(side, columns, dead)
        total, size = np.zeros(count), np.zeros(count)
        with np.errstate(all="ignore"):
            for term in self._terms[side]:
                number = _as_floats(columns.values[term.position]) / 10.0**term.type.scale
                total += term.sign * number
                size += np.abs(number)
            tame = np.isfinite(size) & (size * self._error <= self._width / 8)
        return BandKeys(np.where(tame, total, 0.0), dead, ~tame & ~dead)

    def _exact_keys(self, side: int, columns: Columns, dead: NDArray[np.bool_]) -> BandKeys:
        total = np.zeros(len(columns), np.int64)
        wild: NDArray[np.bool_] | None = None
        for term in self._terms[side]:
            unit, limit = self._unit(term), self._term_limit(side, term)
            values = columns.values[term.position]
            if values.dtype.kind != "V" and len(values) and -limit <= int(values.min()) <= int(values.max()) <= limit:
                total += term.sign * unit * values.astype(np.int64, copy=False)
                continue
            number, outside = _as_integers(values)
            outside |= (number > limit) | (number < -limit)
            wild = outside if wild is None else wild | outside
            total += term.sign * unit * np.where(wild, 0, number)
        if wild is None:
            return BandKeys(total, dead, np.zeros(len(columns), np.bool_))
        return BandKeys(np.where(wild, 0, total), dead, wild & ~dead)

    def _term_limit(self, side: int, term: _Term) -> int:
        """What a term may be so that the sum of all is small enough."""
        return self._limit // (len(self._terms[side]) * self._unit(term))

    def _unit(self, term: _Term) -> int:
        """How many units of the keys a term's integer counts for."""
        unit: int = 10 ** (self._scale - term.type.scale)
        return unit

    def buckets(self, keys: BandKeys) -> NDArray[np.int64]:
        """The bucket that each tuple lies in."""
        return self._floor(keys.keys)

    def partners(self, side: int, keys: BandKeys) -> BucketRange:
        """The first and last bucket that partners on the other side can lie in."""
        low, high = self.bounds(side, keys)
        return self._floor(low), self._floor(high)

    def bounds(self, side: int, keys: BandKeys) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the greatest key that partners on the other side can have."""
        low, high = self.away(side)
        return keys.keys + low, keys.keys + high

    def away(self, side: int) -> tuple[float, float]:
        """How far from a tuple's key those of partners on the other side can be: from the first to the second."""
        low, high = (-self._high, -self._low) if side == 0 else (self._low, self._high)
        return (low, high) if self._exact else (low - self._width / 2, high + self._width / 2)

    def cells(self, keys: NDArray[Any], per_width: int = 1) -> NDArray[np.int64]:
        """Keys as numbers of cells, of which so many are as wide as the band: a greater key has no lower number."""
        cells: NDArray[np.int64] = np.floor(keys * self.per_key(per_width)).astype(np.int64)
        return cells

    def per_key(self, per_width: int = 1) -> float:
        """By how much the number of a cell grows with a key that is greater by 1."""
        return per_width / self._width

    def _floor(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        buckets: NDArray[np.int64] = np.floor_divide(keys, self._width).astype(np.int64)
        return buckets


def _largest(type_: Type) -> int:
    """The largest size of a value, as the integer it is kept as."""
    if type_.kind is Kind.DECIMAL:
        digits: int = 10**type_.precision
        return digits
    bits = type_.bits if type_.is_integer else 32 if type_.kind is Kind.DATE else 64
    return 1 << (bits - 1)


def _few_digits(types: list[Type], scale: int) -> bool:
    """Whether most values fit in 64 bits with so many digits behind the point; where not, doubles find buckets."""
    return scale <= _FEW or all(type_.precision - type_.scale + scale <= 18 for type_ in map(as_decimal, types))


def _as_integers(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Integers in 64 bits, and which of them do not fit."""
    if values.dtype.kind != "V":
        return values.astype(np.int64), np.zeros(len(values), np.bool_)
    first, *others = np.ascontiguousarray(values).view(np.int64).reshape(len(values), -1).T
    outside = np.zeros(len(values), np.bool_)
    for word in others:
        outside |= word != first >> 63
    return first, outside


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as doubles; an integer of several words is rounded once for each."""
    if values.dtype.kind != "V":
        floats: NDArray[np.float64] = values.astype(np.float64)
        return floats
    words = np.ascontiguousarray(values).view(np.uint64).reshape(len(values), -1).T
    negative = words[-1] >> np.uint64(63) != 0
    total = np.zeros(len(values))
    for word in words[::-1]:
        total = total * 2.0**64 + np.where(negative, ~word, word)  # ~x is -x - 1: nothing cancels
    return np.where(negative, -total - 1.0, total)


def band_terms(band: Band) -> list[Expr]:
    """The expressions that a band's keys are made of."""
    return [expr for key in band.keys for _, expr in key]
