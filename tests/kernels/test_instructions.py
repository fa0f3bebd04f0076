"""The result is the same with every set of instructions that this machine has, for kernels of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest

import handfast as hf
from handfast.core import recipe
from handfast.kernels.compiler import compile, native, runs
from handfast.kernels.sizes import KernelSizes
from handfast.kernels.target import Target, reachable
from handfast.plan import SCAN
from tests.agreement.runs import local_bounded, local_steps
from tests.judges.rows import multiset, result_of
from tests.sampling import sampled
from tests.strategies import Case

CASES, CHUNK = 400, 4


@pytest.fixture(autouse=True)
def fresh_kernels() -> Iterator[None]:
    """No kernel or recipe made for lesser instructions outlives its test."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    for cached in (recipe.recipe, compile.derive_kernel, runs.run_kernel):
        cached.cache_clear()


def _same(target: Target) -> Target:
    return target


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 50))
def test_every_set_of_instructions_finds_what_the_oracle_finds(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for target in reachable():
        _forget()
        with monkeypatch.context() as patch:
            patch.setattr(native, "host", partial(_same, target))
            patch.setattr(recipe, "Recipe", partial(recipe.Recipe, sizes=KernelSizes.of(target)))
            for seed in range(start, start + CHUNK):
                case = Case.random(random.Random(seed))
                expected = case.expected()
                options = hf.LocalOptions(cores=case.cores, local_join=SCAN)
                assert expected == multiset(result_of(hf.join(case.tables, **case.kwargs, options=options))), seed
                assert expected == local_bounded(case), f"{target.width} bytes, seed {seed}: {case}"
                assert case.expected_of_steps() == local_steps(case), f"{target.width} bytes, seed {seed}: {case}"
