"""Which of many cases `make test` runs: a sample. The others are `more`, for `make show` and `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(values: Iterable[Any], every: int) -> list[Any]:
    """The values as parameters of a test: the first, and each `every`-th behind it, always; the others on request.

    A tuple is the values of several parameters.
    """
    parameters = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*own, marks=[] if number % every == 0 else pytest.mark.more)
        for number, own in enumerate(parameters)
    ]
