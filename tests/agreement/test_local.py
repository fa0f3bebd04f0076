"""The local engine finds what both judges find."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from tests.agreement.runs import local_bounded, local_steps
from tests.sampling import sampled
from tests.strategies import SHAPES, Case, cases

CASES = 1_000
CHUNK = 50

_covered: dict[int, set[str]] = {}


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 2))
def test_bounded_and_step_by_step_equal_oracle_and_duckdb(
    start: int, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(start, start + CHUNK):
        case = Case.random(random.Random(seed))
        expected = case.expected()
        assert expected == case.judged(), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        assert case.expected_of_steps() == local_steps(case), f"step by step, seed {seed}: {case}"
        _covered[seed] = case.features()
    record_property("local cases", CHUNK)


def test_the_cases_cover_what_they_must(record_property: Callable[[str, object], None]) -> None:
    for seed in set(range(CASES)) - _covered.keys():
        _covered[seed] = Case.random(random.Random(seed)).features()
    counts = Counter(feature for features in _covered.values() for feature in features)
    both = sum({"matches", "non-matches"} <= features for features in _covered.values())
    shares = {name: count / CASES for name, count in counts.items()}
    figures = {**shares, "matches and non-matches": both / CASES, "cases": len(_covered), "shapes": len(SHAPES)}
    for name, figure in figures.items():
        record_property(name, figure)
    assert both >= 0.6 * CASES
    for feature in ("ties", "expiry", "disorder", "nulls"):
        assert shares[feature] >= 0.2, feature
    assert len(SHAPES) <= 90


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cases())
def test_any_case_agrees(case: Case) -> None:
    assert case.expected() == local_bounded(case)
    assert case.expected_of_steps() == local_steps(case)
