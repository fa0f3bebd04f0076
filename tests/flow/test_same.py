"""Columns of one value are like any other to whoever reads them, and take no memory, also when put together."""

from __future__ import annotations

import numpy as np

from handfast.flow.same import joined, same, taken

ONES = same(np.uint8(1), 5)


def test_what_is_made_of_columns_of_one_value_takes_no_memory() -> None:
    for made, count in (
        (ONES, 5),
        (joined([ONES, ONES[2:]]), 8),
        (taken(ONES, np.array([4, 0])), 2),
        (joined([ONES]), 5),
    ):
        assert [1] * count == made.tolist()
        assert made.strides == (0,)
        assert made.dtype == np.uint8


def test_other_columns_are_put_together_as_they_are() -> None:
    mixed = np.array([1, 2, 1], np.uint8)
    assert [1, 1, 1, 1, 1, 1, 2, 1] == joined([ONES, mixed]).tolist()
    assert [1, 1, 1, 1, 1, 2, 2] == joined([ONES, same(np.uint8(2), 2)]).tolist()
    assert [1, 1, 1, 1, 1] == joined([ONES, same(np.uint8(2), 0)]).tolist()
    assert [2, 1] == taken(mixed, np.array([1, 0])).tolist()
    assert [] == joined([ONES[:0], ONES[:0]]).tolist()
