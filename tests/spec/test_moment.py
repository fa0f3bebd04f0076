"""Moments as people read them."""

from __future__ import annotations

import pytest

from handfast.spec.moment import EARLIEST, LATEST, format_moment


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01 00:00:00"),
        (-1, "1969-12-31 23:59:59.999999"),
        (10_500_000, "1970-01-01 00:00:10.5"),
        (EARLIEST, "0001-01-01 00:00:00"),
        (LATEST, "9999-12-31 23:59:59.999999"),
        (EARLIEST - 1, "-62135596800000001 us"),  # a watermark may lie there
    ],
)
def test_a_moment_is_said_to_the_microsecond(micros: int, text: str) -> None:
    assert text == format_moment(micros)
