"""The fast model of rings and lines finds what the oracle finds, through `hf.join`."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from handfast.engines.hardware.options import CIRCULAR, MODEL, STASHED
from tests.engines.hardware.circular.test_ring_agreement import CHUNK, STASHES, check_seeds

CASES = 200  # of each algorithm


@pytest.mark.parametrize("start", range(2_000, 2_000 + CASES, CHUNK))
def test_the_model_of_a_ring_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    check_seeds(range(start, start + CHUNK), algorithm=CIRCULAR, simulator=MODEL)
    record_property("joins of a ring on the model", CHUNK)


@pytest.mark.parametrize("start", range(3_000, 3_000 + CASES, CHUNK))
def test_the_model_of_a_line_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        size = random.Random(seed).choice(STASHES)
        check_seeds([seed], algorithm=STASHED, stash_size=size, simulator=MODEL)
    record_property("joins of a line on the model", CHUNK)
