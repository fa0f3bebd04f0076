"""The door: what is late or rejected on every engine is what the oracle says, and it never joins."""

from __future__ import annotations

import random

import pytest

from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.judges import duckdb_judge
from tests.judges.rows import multiset
from tests.strategies import Case

CASES = 200
CHUNK = 50


def bounded_in_time(seed: int, *, for_spark: bool = False) -> Case:
    """A case with bounds on its times; every second one counts."""
    chance = random.Random(seed)
    case = Case.of(seed, for_spark=for_spark)
    return (case.counted(chance) if seed % 2 else case).valid(chance)


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_rows_outside_of_the_valid_times_join_nowhere(start: int) -> None:
    rejected = 0
    for seed in range(start, start + CHUNK):
        case = bounded_in_time(seed)
        expected = case.expected()
        rejected += any(case.admission.rejected.values())
        assert expected == multiset(duckdb_judge.result(case.spec, case.tables)), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
    assert rejected >= 0.8 * CHUNK
