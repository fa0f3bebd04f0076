"""A new index is one file and one line in `choice.py`: shown by toy ones, with the oracle as the judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import handfast as hf
from handfast.core.recipe import recipe
from handfast.kernels.columns import Columns
from handfast.kernels.course import Pairs, Ranges
from handfast.kernels.index.choice import INDEXES
from handfast.kernels.index.protocol import Index, PairConditions
from handfast.plan import LOCAL_JOINS, SCAN
from handfast.spec.expression import Expr
from handfast.spec.join import HOW
from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.judges.rows import multiset, result_of
from tests.strategies import MULTI, SHAPES, Case


@dataclass(frozen=True, slots=True)
class NoKeys:
    """All that is known of tuples is how many they are."""

    dead: NDArray[np.bool_]
    some_unplaced: bool = False


class EveryTuple:
    """Proposes every stored tuple in the range, whatever the predicate is."""

    proposed: ClassVar[int] = 0

    def __init__(self, conditions: PairConditions, side: int, capacity: int) -> None:
        pass

    @staticmethod
    def serves(conditions: PairConditions) -> bool:
        return True

    @staticmethod
    def left(conditions: PairConditions) -> tuple[Expr, ...]:
        return conditions.parts

    @staticmethod
    def words(conditions: PairConditions) -> tuple[str, str]:
        return "every tuple", "it is a toy"

    def keys(self, columns: Columns) -> NoKeys:
        return NoKeys(np.zeros(len(columns), np.bool_))

    def reserve(self, count: int) -> None:
        pass

    def insert(self, keys: NoKeys) -> None:
        pass

    def expire(self, oldest: int) -> None:
        pass

    def drop(self, count: int) -> None:
        pass

    def candidates(self, keys: NoKeys, ranges: Ranges) -> Iterator[Pairs]:
        for places, found in ranges.every_pair():
            EveryTuple.proposed += len(places)
            yield places, found

    def unplaced(self, keys: NoKeys, ranges: Ranges) -> Iterator[Pairs]:
        return iter(())


class EverySecondTuple(EveryTuple):
    """Too few: what no index may do."""

    def candidates(self, keys: NoKeys, ranges: Ranges) -> Iterator[Pairs]:
        for places, found in super().candidates(keys, ranges):
            yield places[::2].copy(), found[::2].copy()


def enter(index: type[Index[NoKeys]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setitem(INDEXES, "index", (index, *INDEXES["index"]))


@pytest.fixture(autouse=True)
def fresh_recipes() -> Iterator[None]:
    recipe.cache_clear()
    yield
    recipe.cache_clear()


def cases() -> Iterator[Case]:
    """Every shape of predicate, of two streams and of more."""
    return (Case.of(seed, shape=shape) for seed, shape in enumerate([*SHAPES, *MULTI]))


def test_a_new_index_gives_the_result_of_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(EveryTuple, monkeypatch)
    for case in cases():
        before = EveryTuple.proposed
        assert case.expected() == local_bounded(case)
        assert EveryTuple.proposed > before or not case.expected()


@pytest.mark.parametrize("how", HOW)
def test_a_new_index_serves_every_join_step_by_step(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(EveryTuple, monkeypatch)
    case = Case.of(HOW.index(how)).asked(how=how)
    assert (case.expected_of_steps(), case.expected_at_close()) == local_steps_and_close(case)


def test_a_new_index_is_in_the_words_of_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(EveryTuple, monkeypatch)
    case = Case.of(1, shape=SHAPES[0])
    assert "index      every tuple\n             because it is a toy" in hf.explain(case.tables, **case.kwargs)


def test_an_index_that_proposes_too_few_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(EverySecondTuple, monkeypatch)
    assert any(case.expected() != local_bounded(case) for case in cases())


def test_a_new_index_leaves_the_other_local_joins_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(EveryTuple, monkeypatch)
    before = EveryTuple.proposed
    case = Case.of(1, shape=SHAPES[0])
    for local_join in LOCAL_JOINS[1:]:
        found = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(local_join=local_join))
        assert case.expected() == multiset(result_of(found))
    assert before == EveryTuple.proposed


def test_every_local_join_but_the_scan_has_its_indexes() -> None:
    assert set(LOCAL_JOINS) - {SCAN} == set(INDEXES)
