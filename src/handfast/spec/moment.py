"""Moments: times that a user writes, as microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from handfast.errors import SpecError

EARLIEST = -62_135_596_800_000_000  # 0001-01-01, the first moment of Spark's calendar
LATEST = 253_402_300_799_999_999  # the last microsecond of 9999

Moment = datetime | int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(moment: Moment, *, what: str) -> int:
    """The microseconds of a datetime, in UTC unless it says otherwise, or of an int; `what` names it in errors."""
    if isinstance(moment, bool) or not isinstance(moment, datetime | int):
        raise SpecError(f"{what} must be a datetime or whole microseconds since 1970, not {moment!r}")
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        moment = (aware - _EPOCH) // timedelta(microseconds=1)
    if not EARLIEST <= moment <= LATEST:
        raise SpecError(f"{what} must lie in the years 1 to 9999, not at {moment} microseconds")
    return moment


def as_datetime(micros: int) -> datetime:
    """A time in UTC; what Python's calendar does not reach is one of its ends."""
    return _EPOCH + timedelta(microseconds=min(max(micros, EARLIEST), LATEST))


def format_moment(micros: int) -> str:
    """A time in UTC as people read it, to the microsecond."""
    try:
        text = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(sep=" ")
    except OverflowError:
        return f"{micros} us"
    return text.rstrip("0") if "." in text else text
