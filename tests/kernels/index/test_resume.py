"""Kernels that run out of room hand over what they have and go on where they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

import handfast as hf
from handfast.core import recipe
from handfast.kernels.columns import Columns
from handfast.kernels.compiler.program import Input, Program
from handfast.kernels.course import Ranges
from handfast.kernels.index.hashed import HashIndex, HashKeys
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.sizes import USUAL, KernelSizes, Vectors
from handfast.plan import LOCAL_JOINS
from handfast.spec.classify import Equality
from handfast.spec.expression import Column, Literal
from handfast.spec.types import BOOLEAN, INT64
from tests.agreement.runs import local_bounded
from tests.judges.rows import multiset, result_of
from tests.strategies import Case

SMALL = (
    KernelSizes(tile=64, pairs=8, sample=1, candidates=8),
    KernelSizes(Vectors(lanes=2, group=2, block=4), tile=1, pairs=3, sample=3, rare=1, candidates=3),
)


@pytest.fixture(autouse=True)
def fresh_recipes() -> Iterator[None]:
    recipe.recipe.cache_clear()
    yield
    recipe.recipe.cache_clear()


@pytest.mark.parametrize("seed", range(36))
def test_the_result_does_not_depend_on_the_sizes_of_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.random(random.Random(seed))
    monkeypatch.setattr(recipe, "Recipe", partial(recipe.Recipe, sizes=SMALL[seed % 2]))
    assert case.expected() == local_bounded(case)
    for local_join in LOCAL_JOINS:
        found = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores, local_join=local_join))
        assert case.expected() == multiset(result_of(found)), f"{local_join}, seed {seed}"


def one_equality() -> PairConditions:
    """r.k = s.k, of integers."""
    r, s = Column(0, "k", INT64), Column(1, "k", INT64)
    return PairConditions(Program(((Input(r, r),), (Input(s, s),)), Literal(True, BOOLEAN)), (Equality((r, s)),), ())


def keys(index: HashIndex, values: NDArray[np.int64]) -> HashKeys:
    return index.keys(Columns([values], [None], np.zeros(len(values), np.int64)))


@pytest.mark.parametrize("in_order", [True, False])
def test_an_index_finds_each_tuple_of_a_cell_once_and_none_outside_its_range(in_order: bool) -> None:
    probing, index = (HashIndex(one_equality(), side, USUAL.pairs) for side in (0, 1))
    rng = np.random.default_rng(5)
    values = rng.integers(0, 20, 5_000)
    for start in range(0, 5_000, 700):
        index.insert(keys(index, values[start : start + 700]))
    wanted = rng.integers(0, 20, 200)
    starts = rng.integers(0, 5_000, 200)
    stops = np.minimum(starts + rng.integers(0, 300, 200), 5_000)
    if in_order:
        starts, stops = np.sort(starts), np.sort(stops)
    for _ in range(2):  # what one probe remembers of the chains, the next one forgets
        found = list(index.candidates(keys(probing, wanted), Ranges(starts, stops, True)))
        for k in range(200):
            own = np.concatenate([at[probes == k] for probes, at in found])
            assert [at for at in range(starts[k], stops[k]) if values[at] == wanted[k]] == own.tolist()
