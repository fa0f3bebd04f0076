"""What is asked of a join, read from the plain values that a user writes: texts, numbers, moments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

FIRST_TIME, LAST_TIME = -62135596800000000, 253402300799999999
UNITS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 10**3,
    "ms": 10**3,
    "second": 10**6,
    "s": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
}


@dataclass(frozen=True)
class Stream:
    """One stream: its time column, its window in microseconds or in rows, what orders ties, which times are valid."""

    name: str
    time: str
    length: int | None
    rows: int | None
    sequence: str | None
    first: int
    last: int


@dataclass(frozen=True)
class Asked:
    """A join."""

    streams: tuple[Stream, ...]
    on: str
    how: str
    order: str
    in_order: bool


def asked(
    names: tuple[str, ...],
    *,
    on: str,
    window: Any,
    time: str | Mapping[str, str],
    how: str = "inner",
    sequence: str | Mapping[str, str] | None = None,
    order: str = "event",
    in_order: bool = False,
    valid_from: Any = None,
    valid_to: Any = None,
    **about_arrival: Any,
) -> Asked:
    """The join of these streams by what a user says; lateness and idle_timeout say nothing of admitted rows."""
    unknown = about_arrival.keys() - {"lateness", "idle_timeout"}
    if unknown:
        raise NotImplementedError(f"no words for {unknown}")
    streams = []
    for name in names:
        length, rows = _window(_own(window, name))
        first, last = _moment(_own(valid_from, name), FIRST_TIME), _moment(_own(valid_to, name), LAST_TIME)
        streams.append(Stream(name, _own(time, name), length, rows, _own(sequence, name), first, last))
    return Asked(tuple(streams), on, how, order, in_order)


def _own(value: Any, stream: str) -> Any:
    return value.get(stream) if isinstance(value, Mapping) else value


def _window(value: str | timedelta) -> tuple[int | None, int | None]:
    """Its length in microseconds, or its rows."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1), None
    read = re.fullmatch(r"(\d+) ([a-z]+)", value)
    if read is None:
        raise NotImplementedError(f"no words for the window {value!r}")
    count, unit = int(read[1]), read[2]
    if unit in ("row", "rows"):
        return None, count
    return count * (UNITS[unit] if unit in UNITS else UNITS[unit.removesuffix("s")]), None


def _moment(value: int | datetime | None, otherwise: int) -> int:
    if value is None:
        return otherwise
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return value
