"""Equalities and bands are seen in every form that people write them, and nothing else is taken for one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from handfast.judge import evaluation, oracle
from handfast.spec import types
from handfast.spec.classify import Band, Conditions, classify
from handfast.spec.expression import Column, Expr
from handfast.spec.predicate import bind
from handfast.spec.schema import Schema
from tests.judges.rows import rows_of
from tests.strategies import BANDS, EQUALITIES, RESIDUALS, Case, Shape

TYPES = (types.INT32, types.INT64, types.FLOAT, types.STRING, types.TIMESTAMP)
SCHEMAS = {
    "r": Schema(tuple(zip(("x", "y", "f", "k", "t"), TYPES, strict=True))),
    "s": Schema(tuple(zip(("a", "b", "g", "m", "u"), TYPES, strict=True))),
}


def conditions(on: str) -> Conditions:
    return classify(bind(on, SCHEMAS))


def shown(band: Band) -> tuple[str, str]:
    """Both keys of a band as text."""

    def term(sign: int, expr: Expr) -> str:
        return f"{'+' if sign > 0 else '-'}{expr.name if isinstance(expr, Column) else expr}"

    first, second = (" ".join(term(sign, expr) for sign, expr in key) for key in band.keys)
    return first, second


@pytest.mark.parametrize(
    ("on", "low", "high"),
    [
        ("r.x BETWEEN s.a - 10 AND s.a + 10", -10, 10),
        ("s.a BETWEEN r.x - 3 AND r.x + 4", -4, 3),
        ("ABS(r.x - s.a) <= 10", -10, 10),
        ("ABS(s.a - r.x) <= 10", -10, 10),
        ("10 >= ABS(r.x - s.a)", -10, 10),
        ("ABS(r.x - s.a) < 10", -10, 10),
        ("ABS(r.x - s.a) <= 2.5", Fraction(-5, 2), Fraction(5, 2)),
        ("r.x >= s.a - 3 AND r.x <= s.a + 4", -3, 4),
        ("r.x > s.a - 3 AND s.a + 4 > r.x", -3, 4),
        ("s.a - 3 < r.x AND r.x - 4 < s.a", -3, 4),
        ("r.x - s.a < 4 AND s.a - r.x < 3", -3, 4),
        ("r.x - s.a > -3 AND r.x - s.a < 4", -3, 4),
        ("r.x - s.a BETWEEN -3 AND 4", -3, 4),
        ("-3 <= r.x - s.a AND 4 >= r.x - s.a", -3, 4),
        ("r.x + 1 BETWEEN s.a - 2 AND s.a + 5", -3, 4),
        ("-r.x BETWEEN -s.a - 4 AND 3 - s.a", -3, 4),
        ("r.x BETWEEN s.a + 2 AND s.a + 5", 2, 5),
        ("r.x < s.a + 4 AND r.x > s.a - 3 AND r.x < s.a + 9", -3, 4),
        ("r.x BETWEEN s.a - 0.5 AND s.a + 0.25", Fraction(-1, 2), Fraction(1, 4)),
        ("ABS(r.x - s.a) = 0", 0, 0),
        ("ABS(r.x - s.a) = 3", -3, 3),
        ("r.x - s.a = 2", 2, 2),
    ],
)
def test_a_band_is_seen_however_it_is_written(on: str, low: Fraction | int, high: Fraction | int) -> None:
    found = conditions(on)
    [band] = found.bands
    assert (low, high) == (band.low, band.high)
    assert shown(band) == ("+x", "+a")
    assert band.streams == (0, 1)
    assert band.steps == 0
    assert found.residual == ()


def test_a_band_can_be_over_several_columns_of_a_stream() -> None:
    [band] = conditions("r.x + r.y BETWEEN s.a - s.b - 1 AND s.a - s.b + 1").bands
    assert shown(band) == ("+x +y", "+a -b")
    [band] = conditions("ABS((r.x - s.a) - (s.b - r.y)) <= 5").bands
    assert shown(band) == ("+x +y", "+a +b")


def test_times_and_intervals_make_bands_in_microseconds() -> None:
    for on in (
        "r.t BETWEEN s.u - INTERVAL 5 SECONDS AND s.u + INTERVAL 5 SECONDS",
        "r.t - s.u <= INTERVAL 5 SECONDS AND s.u - r.t <= INTERVAL 5 SECONDS",
        "ABS(r.t - s.u) < INTERVAL 5 SECONDS",
    ):
        [band] = conditions(on).bands
        assert (band.low, band.high) == (-5_000_000, 5_000_000)


def test_a_band_of_floats_knows_its_roundings() -> None:
    [band] = conditions("ABS(r.f - s.g) <= CAST(0.5 AS FLOAT)").bands
    assert band.unit == 2.0**-24
    assert band.steps > 0
    [exact] = conditions("ABS(r.x - s.a) <= 3").bands
    assert (exact.unit, exact.steps) == (0.0, 0)


def test_two_bands_are_two_dimensions() -> None:
    found = conditions("r.x BETWEEN s.a - 10 AND s.a + 10 AND ABS(r.f - s.g) <= 10")
    assert [shown(band) for band in found.bands] == [("+x", "+a"), ("+f", "+g")]
    assert found.residual == ()


@pytest.mark.parametrize(
    ("on", "count"),
    [
        ("r.x = s.a", 1),
        ("s.a = r.x", 1),
        ("r.x = s.a AND r.k = s.m", 2),
        ("r.x + r.y = s.b", 1),
        ("r.x = s.b", 1),
        ("r.f = s.a", 1),
        ("r.x % 3 = s.a % 3", 1),
        ("r.k = s.m AND r.x < s.a", 1),
    ],
)
def test_an_equality_is_seen_with_the_first_stream_first(on: str, count: int) -> None:
    found = conditions(on)
    assert count == len(found.equalities)
    assert found.bands == ()


@pytest.mark.parametrize(
    "on",
    [
        "r.x < s.a",
        "r.x <> s.a",
        "r.x = 3",
        "r.x = s.a OR r.k = s.m",
        "NOT (r.x = s.a)",
        "r.x <=> s.a",
        "r.x * s.a BETWEEN 1 AND 3",
        "r.x + s.a = 3 OR TRUE",
        "ABS(r.x - s.a) > 3",
        "r.x BETWEEN s.a + 5 AND s.a - 5",
        "r.k < s.m",
        "ABS(r.x) <= 3",
        "r.x BETWEEN 1 AND 5",
        "TRUE",
    ],
)
def test_what_offers_no_index_is_residual(on: str) -> None:
    found = conditions(on)
    assert (found.equalities, found.bands) == ((), ())
    assert found.residual != ()


def test_a_sum_over_both_streams_is_a_band_against_the_negative_key() -> None:
    [band] = conditions("r.x + s.a BETWEEN 2 AND 5").bands
    assert shown(band) == ("+x", "-a")
    assert (band.low, band.high) == (2, 5)


@pytest.mark.parametrize("shape", [*EQUALITIES, *BANDS, *RESIDUALS], ids=lambda shape: shape.name)
def test_the_shapes_of_the_pool_are_classified_as_they_are_called(shape: Shape) -> None:
    for seed in range(5):
        found = Case.of(seed, shape=shape).join.conditions
        if shape in EQUALITIES:
            assert found.equalities
        elif shape in RESIDUALS:
            assert not found.equalities or shape.name == "is not true"
            assert not found.bands
        elif shape.name != "band off centre" and " differ" not in shape.name:  # these two can be empty
            assert found.bands


@pytest.mark.parametrize("shape", BANDS, ids=lambda shape: shape.name)
def test_a_band_excludes_no_pair_that_the_predicate_holds_for(shape: Shape) -> None:
    """Among finite numbers, and up to the roundings that the band admits to: the rest is the index's care."""
    checked = 0
    for seed in range(10):
        case = Case.of(seed, shape=shape)
        r_rows, s_rows = (rows_of(case.tables[name])[:20] for name in case.streams)
        for pair in product(r_rows, s_rows):
            if evaluation.evaluate(case.join.predicate, pair) is not True:
                continue
            for band in case.join.conditions.bands:
                terms = [[(sign, _number(expr, pair)) for sign, expr in key] for key in band.keys]
                if all(math.isfinite(value) for key in terms for _, value in key):
                    first, second = (sum(sign * Fraction(value) for sign, value in key) for key in terms)
                    size = sum(abs(Fraction(value)) for key in terms for _, value in key)
                    slack = Fraction(band.unit) * (band.steps + 1) * (size + abs(band.low) + abs(band.high))
                    assert band.low - slack <= first - second <= band.high + slack
                    checked += 1
    assert checked


def _number(expr: Expr, pair: tuple[oracle.Row, ...]) -> float | Fraction:
    value = evaluation.evaluate(expr, pair)
    return value if isinstance(value, float) else Fraction(value, 10**expr.type.scale)
