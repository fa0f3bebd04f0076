"""Windows: how long a tuple of a stream can still meet another stream's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from handfast.errors import SpecError

_UNITS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_ROWS = re.compile(r"\s*([+-]?\d+)\s*rows?\s*", re.IGNORECASE)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")
MAX_LENGTH = 10_000 * 366 * _UNITS["day"]  # longer than all of Spark's calendar, far from int64's end

Duration = str | timedelta


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The tuples younger than `length` microseconds when a new one arrives."""

    length: int

    def __post_init__(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 0 < self.length <= MAX_LENGTH:
            raise SpecError(f"A window must be longer than nothing and under 10,000 years, not {self.length} us")

    def __str__(self) -> str:
        return format_duration(self.length)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The last `rows` tuples of a stream when a new tuple of another one arrives."""

    rows: int

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 0 < self.rows < 2**62:
            raise SpecError(f"A count window must hold a positive number of rows, not {self.rows!r}")

    def __str__(self) -> str:
        return f"{self.rows} row{'' if self.rows == 1 else 's'}"


Window = TimeWindow | CountWindow


def parse_duration(text: Duration, *, what: str) -> int:
    """The microseconds of "10 minutes", "1 hour 30 minutes", "500 ms" or a timedelta; `what` names it in errors."""
    if isinstance(text, timedelta):
        return text // timedelta(microseconds=1)
    if not isinstance(text, str):
        raise SpecError(f"{what} must be a duration like '10 minutes' or a timedelta, not {text!r}")
    position, total = 0, Fraction(0)
    while position < len(text):
        part = _PART.match(text, position)
        unit = part and (_UNITS.get(part[2].lower()) or _UNITS.get(part[2].lower().removesuffix("s")))
        if not part or not unit:
            break
        total += Fraction(part[1]) * unit
        position = part.end()
    if position == 0 or position < len(text):
        raise SpecError(f"{what} must be a duration like '10 minutes', '500 ms' or '1 hour 30 minutes', not {text!r}")
    if total.denominator != 1:
        raise SpecError(f"{what} must be whole microseconds, the unit of all times, not {text!r}")
    return int(total)


def parse_window(window: Duration | Window, *, stream: str) -> Window:
    """The window that a user wrote for `stream`: a duration, or a number of rows."""
    if isinstance(window, TimeWindow | CountWindow):
        return window
    counted = _ROWS.fullmatch(window) if isinstance(window, str) else None
    if counted:
        return CountWindow(int(counted[1]))
    what = f"The window of stream {stream!r}"
    if str(window).strip().isdigit():
        raise SpecError(f"{what} needs a unit: '{window} seconds' or '{window} rows', not {window!r}")
    length = parse_duration(window, what=what)
    if length <= 0:
        raise SpecError(f"{what} must be longer than nothing, not {window!r}")
    return TimeWindow(length)


def exact_duration(micros: int) -> str:
    """A duration as people write it, and never rounded: where it would be, in microseconds."""
    text = format_duration(micros)
    return text if parse_duration(text, what="A duration") == micros else f"{micros} us"


def format_duration(micros: int) -> str:
    """A duration as people write it: `90 s`, `1.5 h`."""
    for name in ("day", "h", "min", "s", "ms"):
        unit = _UNITS[name]
        if abs(micros) >= unit:
            return f"{micros / unit:g} {name}"
    return f"{micros} us"
