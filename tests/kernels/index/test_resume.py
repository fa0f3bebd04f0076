"""Kernels that run out of room hand over what they have and go on where they were."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

import handfast as hf
from handfast.kernels import pairs
from handfast.kernels.course import Ranges
from handfast.kernels.index import cells, sorted_blocks
from handfast.kernels.index.cells import CellIndex
from handfast.kernels.index.keys import Keys
from handfast.kernels.index.strides import FIRST_STRIDE, SECOND_STRIDE
from handfast.plan import LOCAL_JOINS
from tests.agreement.runs import local_bounded
from tests.judges.rows import multiset, result_of
from tests.strategies import Case


@pytest.mark.parametrize("seed", range(30))
def test_the_result_does_not_depend_on_the_room(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.random(random.Random(seed))
    monkeypatch.setattr(pairs, "_RUN", 7)
    monkeypatch.setattr(pairs, "_CAPACITY", 8)
    monkeypatch.setattr(cells, "_CAPACITY", 3)
    monkeypatch.setattr(sorted_blocks, "_CAPACITY", 3)
    assert case.expected() == local_bounded(case)
    for local_join in LOCAL_JOINS:
        found = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores, local_join=local_join))
        assert case.expected() == multiset(result_of(found)), f"{local_join}, seed {seed}"


def test_cells_of_neighbouring_buckets_never_coincide() -> None:
    # a probe visits up to three buckets in each of two dimensions: no two of these cells may be one
    offsets = {(b * FIRST_STRIDE + c * SECOND_STRIDE) % 2**64 for b in range(-3, 4) for c in range(-3, 4)}
    assert 49 == len(offsets)


def keys(cells: NDArray[np.uint64]) -> Keys:
    return Keys(cells, cells, [], np.ones(len(cells), np.bool_), np.zeros(len(cells), np.bool_))


@pytest.mark.parametrize("in_order", [True, False])
def test_an_index_finds_each_tuple_of_a_cell_once_and_none_outside_its_range(in_order: bool) -> None:
    index = CellIndex(capacity=2)
    rng = np.random.default_rng(5)
    values = rng.integers(0, 20, 5_000).astype(np.uint64)
    for start in range(0, 5_000, 700):
        part = values[start : start + 700]
        index.insert(keys(part))
    wanted = rng.integers(0, 20, 200).astype(np.uint64)
    starts = rng.integers(0, 5_000, 200)
    stops = np.minimum(starts + rng.integers(0, 300, 200), 5_000)
    if in_order:
        starts, stops = np.sort(starts), np.sort(stops)
    for _ in range(2):  # what one probe remembers of the chains, the next one forgets
        found = list(index.probe(keys(wanted), Ranges(starts, stops, True)))
        for k in range(200):
            own = np.concatenate([at[probes == k] for probes, at in found])
            assert [at for at in range(starts[k], stops[k]) if values[at] == wanted[k]] == own.tolist()
