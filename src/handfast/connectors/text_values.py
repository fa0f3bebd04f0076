"""Values written as text: what a cell of csv, or a value of json, says in a column of some type, as Spark reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from handfast.connectors.csv_line import BLANK
from handfast.connectors.json_line import Bare
from handfast.spec.meaning import to_float32

Reader = Callable[[str], Any]  # from a text to a value; a ValueError or ArithmeticError where there is none

_D = r"[^\D\U00010000-\U0010ffff]"  # digits of every script, as far as Java reads them
_WHOLE = re.compile(rf"[+-]?{_D}+")
_DECIMAL = re.compile(rf"[+-]?(?:{_D}+\.?{_D}*|\.{_D}+)(?:[eE]([+-]?{_D}+))?")
_FLOATING = re.compile(r"([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?", re.ASCII)
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?"
_MOMENT = re.compile(rf"([+-]?\d{{4,6}})(?:-(\d{{1,2}})(?:-(\d{{1,2}})(?:[ T]{_CLOCK})?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2}(?::\d{1,2}|:\d{2}:\d{2})?|\d{4}|\d{6})", re.ASCII)
_REGION = re.compile(r"[A-Z]\w*(?:/[\w+-]+)+", re.ASCII)

_PLAIN_WHOLE, _PLAIN_FLOATING = r"^-?[0-9]+$", r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_CSV_NUMBERS = {"Inf": float("inf"), "-Inf": float("-inf")}
_JSON_NUMBERS = {"NaN": float("nan")} | {
    f"{sign}{name}": float(f"{sign}inf") for sign in "+-" for name in ("INF", "Infinity")
}
_JSON_NUMBERS["Infinity"] = float("inf")

_ERA = 146_097  # days of 400 years
_SECOND = 1_000_000
_EPOCH = datetime(1970, 1, 1)


def csv_column(cells: Sequence[str | None], arrow: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Cells of csv as an array, and the places of those that do not fit, which are NULL in it."""
    plain = _at_once(cells, arrow)
    return (plain, []) if plain is not None else _one_by_one(cells, arrow, _csv_reader(arrow))


def json_column(values: Sequence[str | None], arrow: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Values of json, texts or `Bare`, as an array, and the places of those that do not fit, which are NULL in it."""
    return _one_by_one(values, arrow, _json_reader(arrow))


def _at_once(cells: Sequence[str | None], arrow: pa.DataType) -> pa.Array | None:
    """All cells by Arrow itself, if it reads each of them as the reader would."""
    texts = pa.array(cells, pa.string())
    if pa.types.is_string(arrow):
        return texts
    if not (pa.types.is_integer(arrow) or pa.types.is_floating(arrow)):
        return None
    pattern = _PLAIN_WHOLE if pa.types.is_integer(arrow) else _PLAIN_FLOATING
    if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        return None
    try:
        return pc.cast(texts, arrow)
    except pa.ArrowInvalid:
        return None  # one is too large


def _one_by_one(values: Sequence[str | None], arrow: pa.DataType, read: Reader) -> tuple[pa.Array, list[int]]:
    converted: list[Any] = []
    bad = []
    for place, value in enumerate(values):
        try:
            converted.append(None if value is None else read(value))
        except (ValueError, ArithmeticError, KeyError):
            converted.append(None)
            bad.append(place)
    if pa.types.is_timestamp(arrow):
        return pa.array(converted, pa.int64()).view(arrow), bad
    if pa.types.is_date(arrow):
        return pa.array(converted, pa.int32()).view(arrow), bad
    return pa.array(converted, arrow), bad


def _csv_reader(arrow: pa.DataType) -> Reader:
    if pa.types.is_boolean(arrow):
        return _boolean
    if pa.types.is_integer(arrow):
        return lambda text: _within(int(text) if _WHOLE.fullmatch(text) else _refuse(text), arrow.bit_width)
    if pa.types.is_floating(arrow):
        return lambda text: _CSV_NUMBERS[text] if text in _CSV_NUMBERS else _floating(text.strip(BLANK), arrow)
    if pa.types.is_decimal(arrow):
        return _decimals(arrow)
    if pa.types.is_date(arrow):
        return _date
    if pa.types.is_timestamp(arrow):
        return lambda text: _moment(text, zoned=arrow.tz is not None)
    return str


def _json_reader(arrow: pa.DataType) -> Reader:
    quoted = _csv_reader(arrow)
    bare: Reader = _refuse
    if pa.types.is_string(arrow) or pa.types.is_decimal(arrow):
        return quoted
    if pa.types.is_boolean(arrow):
        bare, quoted = {"true": True, "false": False}.__getitem__, _refuse
    elif pa.types.is_integer(arrow):
        bare, quoted = quoted, _refuse
    elif pa.types.is_floating(arrow):
        bare, quoted = lambda text: _json_floating(text, arrow), _JSON_NUMBERS.__getitem__
    elif arrow.equals(pa.timestamp("us", "UTC")):
        bare = _seconds
    return lambda text: bare(text) if isinstance(text, Bare) else quoted(text)


def _boolean(text: str) -> bool:
    return {"TRUE": True, "FALSE": False}[text.upper()]


def _within(number: int, bits: int) -> int:
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else _refuse(number)


def _floating(text: str, arrow: pa.DataType) -> float:
    written = _FLOATING.fullmatch(text)
    if not written:
        _refuse(text)
    number = float(written[1])
    if pa.types.is_float32(arrow) and number - number == 0 != number:
        return to_float32(Fraction(Decimal(written[1])))  # rounded once, from what is written
    return number


def _json_floating(text: str, arrow: pa.DataType) -> float:
    if text in _JSON_NUMBERS:
        return _JSON_NUMBERS[text]
    return _floating(text, arrow) if text != "-0" else 0.0  # an integer, and those have one zero


def _decimals(arrow: pa.DataType) -> Reader:
    unit = Decimal((0, (1,), -arrow.scale))
    digits = Context(arrow.precision, ROUND_HALF_UP, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation])

    def read(text: str) -> Decimal:
        number = text.replace(",", "")  # between thousands, or wherever
        written = _DECIMAL.fullmatch(number)
        if not written:
            _refuse(text)
        _within(int(written[1] or 0), 32)
        return Decimal(number).quantize(unit, context=digits)

    return read


def _date(text: str) -> int:
    """Days since 1970."""
    written = _DATE.fullmatch(text.strip(BLANK + "\x7f"))
    if not written:
        _refuse(text)
    return _within(_days(*written.groups(default="1")), 32)


def _days(year: str, month: str, day: str) -> int:
    eras, of_era = divmod(int(year), 400)
    same = date(2000 + of_era, int(month), int(day))  # the calendar repeats itself every 400 years
    return (same - _EPOCH.date()).days + (eras - 5) * _ERA


def _moment(text: str, *, zoned: bool) -> int:
    """Microseconds since 1970, in UTC unless the text says otherwise."""
    written = _MOMENT.fullmatch(text.strip(BLANK + "\x7f"))
    if not written:
        _refuse(text)
    *day, hour, minute, second, fraction, zone = written.groups()
    clock = [int(part or 0) for part in (hour, minute, second)]
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59 or (zone and not zoned):
        _refuse(text)
    seconds = _days(day[0], day[1] or "1", day[2] or "1") * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2]
    if zone:
        seconds -= _offset(zone.strip(BLANK), seconds)
    return _within(seconds * _SECOND + int((fraction or "")[:6].ljust(6, "0")), 64)


def _offset(zone: str, local: int) -> int:
    """How many seconds a zone is ahead of UTC when its clocks show this many seconds since 1970."""
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    offset = _OFFSET.fullmatch(zone)
    if offset:
        parts = offset[2].split(":") if ":" in offset[2] or len(offset[2]) < 4 else re.findall("..", offset[2])
        hours, minutes, seconds = [*map(int, parts), 0, 0][:3]
        ahead = hours * 3_600 + minutes * 60 + seconds
        return int(f"{offset[1]}{ahead}") if minutes < 60 and seconds < 60 and ahead <= 64_800 else _refuse(zone)
    if not _REGION.fullmatch(zone):
        _refuse(zone)
    try:
        ahead_of = ZoneInfo(zone).utcoffset(_EPOCH + timedelta(seconds=local))
    except (ZoneInfoNotFoundError, OSError):
        _refuse(zone)
    return int(ahead_of.total_seconds()) if ahead_of is not None else _refuse(zone)


def _seconds(text: str) -> int:
    return _within(int(text) * _SECOND, 64)


def _refuse(value: object) -> NoReturn:
    raise ValueError(value)
