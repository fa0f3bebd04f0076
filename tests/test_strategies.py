"""The random cases cover what they are for; the shares are measured on the data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from handfast.judge import oracle
from tests.judges.rows import rows_of, tables_of
from tests.strategies import SHAPES, Case, cases, shrinking_cases, smallest

SHARES = {
    "matches and non-matches": 0.7,
    "ties": 0.3,
    "expiry": 0.3,
    "disorder": 0.3,
    "nulls": 0.3,
    "several steps": 0.3,
    "a step of one stream": 0.3,
    "late": 0.05,
    "rejected": 0.05,
    "refused arithmetic": 0.05,
    "special floats": 0.03,
    "an empty step": 0.05,
}


@pytest.mark.parametrize("for_spark", [False, True])
def test_the_cases_cover_what_they_are_for(for_spark: bool, record_property: Any) -> None:
    count = 10 * len(SHAPES)
    seen: Counter[str] = Counter()
    for seed in range(count):
        features = Case.of(seed, for_spark=for_spark).features()
        seen.update(features)
        seen["matches and non-matches"] += {"matches", "non-matches"} <= features
    for feature in SHARES:
        record_property(feature, round(seen[feature] / count, 2))
    assert {f: seen[f] / count for f, share in SHARES.items() if seen[f] < share * count} == {}


def test_there_are_at_most_ninety_shapes_each_with_a_name_of_its_own() -> None:
    assert len(SHAPES) <= 90
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_can_match(shape: Any) -> None:
    assert any(Case.of(seed, shape=shape).expected() for seed in range(20))


def test_a_seed_is_a_case() -> None:
    assert repr(Case.of(7)) == repr(Case.of(7))


def test_the_smallest_failing_case_is_one_pair() -> None:
    case = next(case for case in map(Case.of, range(100)) if len(case.expected()) > 50)
    small = smallest(case, lambda case: bool(case.expected()))
    assert [len(table) for table in small.tables.values()] == [1, 1]
    assert sum(small.expected().values()) == 1


@given(cases())
@settings(max_examples=60, deadline=None)
def test_a_step_holds_the_next_rows_of_its_streams(case: Case) -> None:
    for name in case.streams:
        arrived = [row for step in case.steps if name in step for row in rows_of(step[name])]
        assert repr(rows_of(case.tables[name])) == repr(arrived)


@given(shrinking_cases())
@settings(max_examples=60, deadline=None)
def test_nobody_is_late_whose_disorder_is_within_the_lateness(case: Case) -> None:
    within = all(
        max((row[time] for row in earlier), default=row[time]) - row[time] <= (stream.lateness or 0)
        for stream, time in zip(case.spec.streams, case.join.times, strict=True)
        for row, earlier in _with_earlier(case, stream.name, time)
    )
    late = any(case.admission.late.values())
    assert not (within and late)
    if not late:
        assert case.expected() == case.expected_of_steps()


def _with_earlier(case: Case, name: str, time: str) -> list[tuple[oracle.Row, list[oracle.Row]]]:
    rows = [row for row in tables_of(case.tables)[name] if row[time] is not None]
    return [(row, list(rows[:i])) for i, row in enumerate(rows)]
