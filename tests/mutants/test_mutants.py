"""Deliberate bugs: the agreement suite must catch every one of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import handfast as hf
from handfast.core import recipe
from handfast.kernels.compiler import compile, scan
from handfast.spec.join import HOW
from tests.agreement.order import given_by_steps, groups, stands_in_order
from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.judges.rows import result_of, tables_of
from tests.mutants import bugs_of_rows, bugs_of_values, bugs_of_windows
from tests.mutants.registry import MUTANTS, Mutant
from tests.strategies import MULTI, SHAPES, Case

CASES = 600  # so many that every shape has its turn

# where to begin the search for a case that tells, if it is far from the first
EARLIEST = {
    "an_error_counts_though_its_value_is_not_chosen": 417,
    "a_pair_of_tuples_that_went_everywhere_emitted_on_every_core": 295,
    "an_idle_stream_waited_for": 137,
    "wild_tuples_of_an_outer_join_left_where_they_fall": 88,
    "expiry_a_microsecond_early": 106,
}

FILES = (bugs_of_windows, bugs_of_values, bugs_of_rows)  # in which the bugs are


@pytest.fixture(autouse=True)
def fresh_kernels() -> Iterator[None]:
    """No kernel or recipe made with a bug outlives its test."""
    caches = (recipe.recipe, scan.scan_kernel, compile.check_kernel, compile.derive_kernel)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def _case(seed: int) -> Case:
    """Cases of time and of count windows, of every join, of two streams and more, of admission and orders, by turns."""
    kind, number = seed % 6, seed // 6
    if kind == 5:
        chance = random.Random(seed)
        case = Case.of(seed)
        return (
            case.valid(chance) if number % 3 == 0 else case.idle(chance) if number % 3 == 1 else case.arriving(chance)
        )
    if kind == 0:
        return Case.of(seed, shape=SHAPES[number % len(SHAPES)])
    if kind == 1:
        return Case.of(seed).counted(random.Random(seed))
    if kind == 2:
        case = Case.of(seed, shape=MULTI[number % len(MULTI)])
        return case if seed % 2 else case.counted(random.Random(seed))
    if kind == 3:
        case = Case.of(seed).asked(how=HOW[number % len(HOW)], in_order=True)
        return case.counted(random.Random(seed)) if number % 4 == 3 else case
    case = Case.of(seed).asked(how=("left", "right", "full", "semi", "anti")[number % 5])
    return case.counted(random.Random(seed)) if number % 2 else case


def _is_caught(case: Case) -> bool:
    """Whether the case tells by a wrong result."""
    if case.expected() != local_bounded(case):
        return True
    if case.spec.in_order:
        table = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores))
        if not stands_in_order(result_of(table), groups(case, tables_of(case.tables))):
            return True
        if not stands_in_order(given_by_steps(case), groups(case, tables_of(case.admitted))):
            return True
    return (case.expected_of_steps(), case.expected_at_close()) != local_steps_and_close(case)


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_the_suite_catches(bug: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    first = EARLIEST.get(bug.__name__, 0)
    caught = next((seed for seed in [*range(first, CASES), *range(first)] if _is_caught(_case(seed))), None)
    assert caught is not None, f"{CASES} cases did not tell that {bug.__name__.replace('_', ' ')}"


def test_without_a_bug_nothing_is_caught() -> None:
    assert [] == [seed for seed in range(60) if _is_caught(_case(seed))]
