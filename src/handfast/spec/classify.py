"""What a predicate offers an index: equalities, bands, and the rest.

An index only proposes candidates; every conjunct is checked again, as written, on each of them. So a band may be read
loosely (its bounds inclusive, its arithmetic as on paper), as long as it excludes no pair that the predicate holds for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from handfast.spec.expression import Call, Expr, Literal, Op, conjuncts, streams_of
from handfast.spec.types import Kind

_MOST_DAYS = 1 << 29  # that can be added to a date: with more, days go round

Term = tuple[int, Expr]  # +1 or -1, and an expression over one stream


@dataclass(frozen=True, slots=True)
class Equality:
    """`sides[0] = sides[1]`, each side over one stream, the lower stream first."""

    sides: tuple[Expr, Expr]

    @property
    def streams(self) -> tuple[int, int]:
        first, second = (next(iter(streams_of(side))) for side in self.sides)
        return first, second


@dataclass(frozen=True, slots=True)
class Band:
    """`low <= sum(keys[0]) - sum(keys[1]) <= high`, each key a sum of terms over one stream, the lower stream first.

    `unit` is the rounding unit of the arithmetic the user wrote (0 where it is exact), `steps` how many it rounds,
    `constants` the sum of its constants without their signs: they may cancel, the roundings they cause do not.
    """

    keys: tuple[tuple[Term, ...], tuple[Term, ...]]
    low: Fraction
    high: Fraction
    unit: float
    steps: int
    constants: Fraction

    @property
    def streams(self) -> tuple[int, int]:
        first, second = (next(iter(streams_of(key[0][1]))) for key in self.keys)
        return first, second


@dataclass(frozen=True, slots=True)
class Conditions:
    """A predicate's conjuncts by what they offer. `residual` holds those that neither equality nor band covers."""

    equalities: tuple[Equality, ...]
    bands: tuple[Band, ...]
    residual: tuple[Expr, ...]


def classify(predicate: Expr) -> Conditions:
    """Sort the conjuncts of a typed predicate into equalities, bands and the rest."""
    equalities: list[Equality] = []
    limits: dict[tuple[tuple[Term, ...], tuple[Term, ...]], list[tuple[_Limit, Expr]]] = {}
    residual: list[Expr] = []
    for conjunct in conjuncts(predicate):
        equality = _equality(conjunct)
        if equality is not None:
            equalities.append(equality)
            continue
        found = list(_limits(conjunct))
        for limit in found:
            limits.setdefault(limit.keys, []).append((limit, conjunct))
        if not found:
            residual.append(conjunct)
    bands: list[Band] = []
    for keys, group in limits.items():
        band = _band(keys, [limit for limit, _ in group])
        if band is not None:
            bands.append(band)
        else:
            residual.extend(dict.fromkeys(conjunct for _, conjunct in group))
    return Conditions(tuple(equalities), tuple(bands), tuple(residual))


def _equality(conjunct: Expr) -> Equality | None:
    if not isinstance(conjunct, Call) or conjunct.op is not Op.EQ:
        return None
    a, b = conjunct.args
    over_a, over_b = streams_of(a), streams_of(b)
    if len(over_a) != 1 or len(over_b) != 1 or over_a == over_b:
        return None
    return Equality((a, b) if min(over_a) < min(over_b) else (b, a))


@dataclass(frozen=True, slots=True)
class _Limit:
    """`sum(keys[0]) - sum(keys[1]) <= bound`, or `>=` when it is a lower one."""

    keys: tuple[tuple[Term, ...], tuple[Term, ...]]
    bound: Fraction
    is_upper: bool
    unit: float
    steps: int
    constants: Fraction


def _band(keys: tuple[tuple[Term, ...], tuple[Term, ...]], limits: list[_Limit]) -> Band | None:
    lows = [limit.bound for limit in limits if not limit.is_upper]
    highs = [limit.bound for limit in limits if limit.is_upper]
    if not lows or not highs or max(lows) > min(highs):
        return None
    unit, steps = max(limit.unit for limit in limits), max(limit.steps for limit in limits)
    return Band(keys, max(lows), min(highs), unit, steps, max(limit.constants for limit in limits))


def _limits(conjunct: Expr) -> Iterator[_Limit]:
    """The one or two limits that a comparison sets on a difference between two streams."""
    if not isinstance(conjunct, Call) or conjunct.op not in (Op.LT, Op.LE, Op.EQ):
        return
    a, b = conjunct.args
    pairs = _unfold_abs(a, b)
    for smaller, larger in pairs:
        yield from _limit(smaller, larger)
        if conjunct.op is Op.EQ and len(pairs) == 1:  # of ABS(u) = c, only ABS(u) <= c is a limit on u
            yield from _limit(larger, smaller)


def _unfold_abs(a: Expr, b: Expr) -> list[tuple[Sum, Sum]]:
    """`ABS(u) <= c` as `u <= c` and `-c <= u`; anything else as it stands."""
    inner = a
    while isinstance(inner, Call) and inner.op is Op.CAST and _keeps_the_number(inner) and not _rounds(inner):
        inner = inner.args[0]
    if isinstance(inner, Call) and inner.op is Op.ABS and not streams_of(b):
        within, bound = inner.args[0], b
        return [([(1, within)], [(1, bound)]), ([(-1, bound)], [(1, within)])]
    return [([(1, a)], [(1, b)])]


Sum = list[Term]


def _limit(smaller: Sum, larger: Sum) -> Iterator[_Limit]:
    """The limit that `smaller <= larger` sets."""
    flat = _Flat()
    for sign, expr in smaller:
        flat.add(sign, expr)
    for sign, expr in larger:
        flat.add(-sign, expr)
    if not flat.linear or len(flat.terms) != 2 or (flat.dates and flat.constants > _MOST_DAYS):
        return
    first, second = sorted(flat.terms)
    # flat: sum(first) + sum(second) + constant <= 0
    first_terms, second_terms = _sorted(flat.terms[first]), _sorted(flat.terms[second])
    if first_terms[0][0] > 0:
        keys = (first_terms, _negated(second_terms))
        yield _Limit(keys, flat.slack - flat.constant, True, flat.unit, flat.steps, flat.constants)
    else:
        keys = (_negated(first_terms), second_terms)
        yield _Limit(keys, flat.constant - flat.slack, False, flat.unit, flat.steps, flat.constants)


def _sorted(terms: list[Term]) -> tuple[Term, ...]:
    return tuple(sorted(terms, key=lambda term: repr(term[1])))


def _negated(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return tuple((-sign, expr) for sign, expr in terms)


class _Flat:
    """A sum taken apart into constants and terms over one stream each."""

    def __init__(self) -> None:
        self.terms: dict[int, list[Term]] = {}
        self.constant = Fraction(0)
        self.constants = Fraction(0)
        self.slack = Fraction(0)  # what the roundings of decimals can take away or add
        self.linear = True
        self.dates = False
        self.unit = 0.0
        self.steps = 0

    def add(self, sign: int, expr: Expr) -> None:
        """Take one more summand apart."""
        if expr.type.is_floating:
            self.unit = max(self.unit, 2.0**-24 if expr.type.kind is Kind.FLOAT else 2.0**-53)
            self.steps += 1
        if isinstance(expr, Literal):
            self._constant(sign, expr)
        elif isinstance(expr, Call) and expr.op in (Op.ADD, Op.SUB, Op.DATE_DIFF):
            self.add(sign, expr.args[0])
            self.add(sign if expr.op is Op.ADD else -sign, expr.args[1])
        elif isinstance(expr, Call) and expr.op is Op.NEG:
            self.add(-sign, expr.args[0])
        elif isinstance(expr, Call) and expr.op is Op.CAST and _keeps_the_number(expr):
            if _rounds(expr):
                self.slack += Fraction(1, 2 * 10**expr.type.scale)
            self.add(sign, expr.args[0])
        else:
            self._term(sign, expr)

    def _constant(self, sign: int, literal: Literal) -> None:
        value = literal.value
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            self.linear = False
        else:
            magnitude = Fraction(value) / 10**literal.type.scale
            self.constant += sign * magnitude
            self.constants += abs(magnitude)

    def _term(self, sign: int, expr: Expr) -> None:
        streams = streams_of(expr)
        type_ = expr.type
        counts = type_.is_numeric or type_.is_timestamp or type_.kind in (Kind.INTERVAL, Kind.DATE)
        if len(streams) != 1 or not counts:
            self.linear = False
            return
        self.dates |= type_.kind is Kind.DATE
        self.terms.setdefault(next(iter(streams)), []).append((sign, expr))


def _keeps_the_number(cast: Call) -> bool:
    """Whether a cast gives the same number, up to the roundings of floating numbers and of decimals."""
    source, to = cast.args[0].type, cast.type
    whole = source.is_integer and to.is_integer
    return source.is_numeric and (to.is_floating or to.kind is Kind.DECIMAL or whole)


def _rounds(cast: Call) -> bool:
    """Whether a cast of decimals takes away digits behind the point."""
    return cast.type.scale < cast.args[0].type.scale and not cast.type.is_floating
