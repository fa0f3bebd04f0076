"""Durations and windows as people write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from handfast.errors import SpecError
from handfast.spec.window import MAX_LENGTH, TimeWindow, format_duration, parse_duration, parse_window

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("10 minutes", 600 * SECOND),
        ("1 minute", 60 * SECOND),
        ("1 hour 30 minutes", 5400 * SECOND),
        ("500 ms", 500_000),
        ("500ms", 500_000),
        ("1.5 seconds", 1_500_000),
        ("0.1 s", 100_000),
        ("3 us", 3),
        ("7 microseconds", 7),
        ("2 Weeks", 14 * 86_400 * SECOND),
        ("  1   day ", 86_400 * SECOND),
        ("0 seconds", 0),
        ("-5 seconds", -5 * SECOND),
        (timedelta(days=1, microseconds=1), 86_400 * SECOND + 1),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: Any, micros: int) -> None:
    assert micros == parse_duration(text, what="it")


BAD = ["", "10", "ten minutes", "10 fortnights", "1500 nanoseconds", "1 month", "10 minutes and", "5 s 3", None, 10]


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_what_is_no_duration_is_refused_with_an_example(text: Any) -> None:
    with pytest.raises(SpecError, match=r"the window must be a duration like '10 minutes'.*not "):
        parse_duration(text, what="the window")


@pytest.mark.parametrize("text", ["0.4 us", "1.5 microseconds", "0.0000015 seconds", "0.0001 ms"])
def test_a_duration_has_no_part_finer_than_a_microsecond(text: str) -> None:
    with pytest.raises(SpecError, match=f"the window must be whole microseconds, the unit of all times, not '{text}'"):
        parse_duration(text, what="the window")


@pytest.mark.parametrize("text", ["0 seconds", "-1 minute", timedelta(0)])
def test_a_window_is_longer_than_nothing(text: Any) -> None:
    with pytest.raises(SpecError, match="window of stream 'r' must be longer than nothing"):
        parse_window(text, stream="r")


def test_a_window_is_shorter_than_the_calendar() -> None:
    assert parse_window(TimeWindow(MAX_LENGTH), stream="r") == TimeWindow(MAX_LENGTH)
    for length in (0, -1, MAX_LENGTH + 1):
        with pytest.raises(SpecError, match="under 10,000 years"):
            TimeWindow(length)


@pytest.mark.parametrize(
    ("micros", "text"),
    [(90 * SECOND, "1.5 min"), (SECOND, "1 s"), (1_500, "1.5 ms"), (999, "999 us"), (172_800 * SECOND, "2 day")],
)
def test_a_duration_is_shown_in_its_largest_unit(micros: int, text: str) -> None:
    assert text == format_duration(micros)


@pytest.mark.parametrize("window", ["500", 60, " 7 "])
def test_a_number_without_a_unit_is_asked_for_one(window: object) -> None:
    with pytest.raises(SpecError, match=f"needs a unit: '{window} seconds' or '{window} rows'"):
        parse_window(window, stream="r")  # type: ignore[arg-type]
