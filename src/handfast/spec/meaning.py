"""What functions mean: of plain values that are not NULL, as Spark's ANSI mode has them.

Values are plain: int, float, str, bytes, bool; dates as days, times and intervals as microseconds, decimals as their
unscaled integer. The oracle applies these rules row by row; the kernels once for every distinct value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from handfast.errors import InternalError
from handfast.spec.expression import Call, Literal, Op
from handfast.spec.types import Kind, Type

if TYPE_CHECKING:
    from handfast.spec.python_predicate import PythonPredicate

Rule = Callable[..., Any]


class AnsiError(ArithmeticError):
    """What Spark's ANSI mode refuses: overflow, division by zero, a pattern that is none."""


# what these do with values cannot fail
SAFE = frozenset(
    {
        *(Op.UPPER, Op.LOWER, Op.LENGTH, Op.TRIM, Op.LTRIM, Op.RTRIM, Op.SUBSTRING, Op.LEFT, Op.RIGHT, Op.CONCAT),
        *(Op.REPLACE, Op.REVERSE, Op.INSTR, Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS, Op.SIGN, Op.SQRT, Op.IN),
        *(Op.YEAR, Op.QUARTER, Op.MONTH, Op.DAY, Op.DAY_OF_WEEK, Op.DAY_OF_YEAR, Op.HOUR, Op.MINUTE, Op.SECOND),
        Op.DATE_DIFF,
    }
)


def rule(call: Call) -> Rule:
    """The function's rule: from its arguments' values to its own; it raises `AnsiError` where Spark would fail."""
    types = [arg.type for arg in call.args]
    if call.op is Op.CAST:
        return _cast(types[0], call.type)
    if call.op is Op.IN:
        # one NaN, one zero: what compares equal is found
        members = frozenset(_member(arg.value) for arg in call.args[1:] if isinstance(arg, Literal))
        return lambda x, *_: _member(x) in members
    if call.type.kind is Kind.DECIMAL and call.op in _DECIMAL:
        left, right = types
        return _DECIMAL[call.op](left, right, call.type)
    if call.op in (Op.FLOOR, Op.CEIL):
        return _whole(math.floor if call.op is Op.FLOOR else math.ceil, types[0])
    if call.op is Op.ROUND:
        return _round(types[0], call.type)
    if call.op is Op.INT_DIV:
        return _int_div(types[0], types[1])
    if call.op is Op.SIGN:
        return lambda x: x if x != x or (x == 0 and isinstance(x, float)) else float((x > 0) - (x < 0))
    if call.op in _CALENDAR:
        return _of_day(_CALENDAR[call.op], types[0])
    if call.function is not None:
        return _python(call.function)
    if call.op not in _SIMPLE:
        raise InternalError(f"There is no rule for {call.op}")
    return _SIMPLE[call.op]


def _python(predicate: PythonPredicate) -> Rule:
    def holds(*values: Any) -> bool:
        try:
            return bool(predicate.function(*values))
        except Exception as error:
            raise AnsiError(f"The predicate {predicate.name!r} raised {error!r}") from error

    return holds


def _member(x: Any) -> Any:
    return "NaN" if x != x else x


# --- strings --------------------------------------------------------------------------------------------------------


def _substring(text: Any, position: int, length: int) -> Any:
    """Positions count from 1, or from the end where they are negative; 0 is as 1."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


@lru_cache(maxsize=4096)
def _pieces(pattern: str, escape: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """A LIKE pattern in pieces between its %, each with its length: _ is any character, an escaped one itself."""
    pieces: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in ("%", "_", escape):
                raise AnsiError(f"{pattern!r} is no pattern: {escape!r} stands before no %, _ or {escape!r}")
            pieces[-1].append(re.escape(pattern[position]))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if character == "_" else re.escape(character))
        position += 1
    return tuple((re.compile("".join(piece), re.DOTALL), len(piece)) for piece in pieces)


def _like(text: str, pattern: str, escape: str) -> bool:
    """Piece by piece, each as far left as it goes: no way of dividing the text is tried twice."""
    (first, start), *others = _pieces(pattern, escape)
    if not others:
        return first.fullmatch(text) is not None
    *middle, (last, length) = others
    end = len(text) - length
    if start > end or first.match(text) is None or last.match(text, end) is None:
        return False
    for piece, _ in middle:
        found = piece.search(text, start, end)
        if found is None:
            return False
        start = found.end()
    return True


_SIMPLE: dict[Op, Rule] = {
    Op.LIKE: _like,
    Op.ILIKE: lambda text, pattern, escape: _like(text.lower(), pattern.lower(), escape),
    Op.UPPER: str.upper,
    Op.LOWER: str.lower,
    Op.LENGTH: len,
    Op.TRIM: str.strip,
    Op.LTRIM: str.lstrip,
    Op.RTRIM: str.rstrip,
    Op.SUBSTRING: _substring,
    Op.LEFT: lambda text, length: text[: max(length, 0)],
    Op.RIGHT: lambda text, length: text[max(len(text) - max(length, 0), 0) :],
    Op.CONCAT: lambda first, *rest: first[:0].join((first, *rest)),
    Op.REPLACE: _replace,
    Op.REVERSE: lambda text: text[::-1],
    Op.INSTR: lambda text, part: text.find(part) + 1,
    Op.STARTS_WITH: lambda text, part: text.startswith(part),
    Op.ENDS_WITH: lambda text, part: text.endswith(part),
    Op.CONTAINS: lambda text, part: part in text,
    Op.SQRT: lambda x: math.nan if x < 0 else math.sqrt(x),
    Op.HOUR: lambda time: time // 3_600_000_000 % 24,
    Op.MINUTE: lambda time: time // 60_000_000 % 60,
    Op.SECOND: lambda time: time // 1_000_000 % 60,
    Op.DATE_DIFF: lambda a, b: wrapped(a - b, 32),
    Op.DATE_TRUNC: lambda unit, time: _truncated(unit, time),
}


# --- numbers --------------------------------------------------------------------------------------------------------


def half_up(numerator: int, denominator: int) -> int:
    """The nearest integer to a quotient, halves away from zero."""
    quotient, rest = divmod(abs(numerator), abs(denominator))
    quotient += 2 * rest >= abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def fitting(x: int, type_: Type) -> int:
    """`x` as the unscaled value of a decimal type; refused if it has more digits."""
    if abs(x) >= 10**type_.precision:
        raise AnsiError(f"{x} has more digits than {type_}")
    return x


def rescaled(x: int, scale: int, type_: Type) -> int:
    """A decimal of another scale as one of `type_`, halves away from zero."""
    shift = type_.scale - scale
    return fitting(x * 10**shift if shift >= 0 else half_up(x, 10**-shift), type_)


def wrapped(x: int, bits: int) -> int:
    """`x` as two's complement of so many bits: what Java does where Spark does not look."""
    half = 1 << (bits - 1)
    return (x + half) % (2 * half) - half


_DIGITS = 39  # that Spark's decimals keep on the way to a result


def _multiply(a: Type, b: Type, to: Type) -> Rule:
    def multiply(x: int, y: int) -> int:
        product, scale = x * y, a.scale + b.scale
        surplus = len(str(abs(product))) - _DIGITS
        if surplus > 0:
            product, scale = half_up(product, 10**surplus), scale - surplus
        return rescaled(product, scale, to)

    return multiply


def _divide(a: Type, b: Type, to: Type) -> Rule:
    def divide(x: int, y: int) -> int:
        if y == 0:
            raise AnsiError("division by zero")
        shift = _DIGITS + b.scale - a.scale
        return rescaled(half_up(x * 10 ** max(shift, 0), y * 10 ** max(-shift, 0)), _DIGITS, to)

    return divide


def _remainder(a: Type, b: Type, to: Type) -> Rule:
    scale = max(a.scale, b.scale)

    def remainder(x: int, y: int) -> int:
        if y == 0:
            raise AnsiError("remainder by zero")
        x, y = x * 10 ** (scale - a.scale), y * 10 ** (scale - b.scale)
        quotient, rest = divmod(abs(x), abs(y))
        if len(str(quotient).rstrip("0")) > _DIGITS:
            raise AnsiError(f"{x} is too large for a remainder by {y}")
        return rescaled(rest if x >= 0 else -rest, scale, to)

    return remainder


_DECIMAL: dict[Op, Callable[[Type, Type, Type], Rule]] = {Op.MUL: _multiply, Op.DIV: _divide, Op.MOD: _remainder}


def _whole(to_integer: Callable[[Any], int], source: Type) -> Rule:
    if source.kind is Kind.DECIMAL:
        unit = 10**source.scale
        return lambda x: to_integer(Fraction(x, unit))

    def whole(x: float) -> int:
        if x != x:
            return 0
        if not -(2.0**63) <= x < 2.0**63:
            raise AnsiError(f"{x} is beyond bigint")
        return to_integer(x)

    return whole


def _round(source: Type, to: Type) -> Rule:
    if source.kind is Kind.DECIMAL:

        def round_decimal(x: int, digits: int) -> int:
            if digits >= source.scale:
                return rescaled(x, source.scale, to)
            unit = 10 ** (source.scale - digits)
            return rescaled(half_up(x, unit) * unit, source.scale, to)

        return round_decimal

    def round_integer(x: int, digits: int) -> int:
        rounded = x if digits >= 0 else half_up(x, 10**-digits) * 10**-digits
        if wrapped(rounded, to.bits) != rounded:
            raise AnsiError(f"{x} rounded is beyond {to}")
        return rounded

    return round_integer


def _int_div(a: Type, b: Type) -> Rule:
    def int_div(x: int, y: int) -> int:
        if y == 0:
            raise AnsiError("division by zero")
        x, y = x * 10 ** max(b.scale - a.scale, 0), y * 10 ** max(a.scale - b.scale, 0)
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        if wrapped(quotient, 64) != quotient:
            raise AnsiError(f"{x} DIV {y} is beyond bigint")
        return quotient

    return int_div


def _cast(source: Type, to: Type) -> Rule:
    """The casts that no kernel makes."""
    unit = 10**source.scale
    if to.kind is Kind.DOUBLE:
        return lambda x: x / unit  # Python divides integers with one correct rounding
    if to.kind is Kind.FLOAT:
        return lambda x: to_float32(Fraction(x, unit))
    raise InternalError(f"There is no rule for a cast from {source} to {to}")


_FLOAT = Struct("@f")  # native: what is too large becomes infinite, where "<f" would raise


def to_float32(x: float | Fraction) -> float:
    """The nearest 32-bit float, ties to even, infinity beyond the largest."""
    return float(_FLOAT.unpack(_FLOAT.pack(_odd(x) if isinstance(x, Fraction) else x))[0])


def _odd(x: Fraction) -> float:
    """A double that rounds to the same 32-bit float as `x` does: two roundings in a row could differ from one."""
    near = float(x)
    if Fraction(near) == x or math.frexp(near)[0] * 2**53 % 2:
        return near
    return math.nextafter(near, math.inf if Fraction(near) < x else -math.inf)


# --- dates and times ------------------------------------------------------------------------------------------------

Civil = tuple[int, int, int]  # year, month, day

_DAY = 86_400_000_000
_ERA = 146_097  # days of 400 years
FIXED_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": _DAY,
    "DD": _DAY,
}
_STARTS: dict[str, Callable[[Civil], Civil]] = {
    **dict.fromkeys(("MONTH", "MON", "MM"), lambda day: (day[0], day[1], 1)),
    **dict.fromkeys(("YEAR", "YYYY", "YY"), lambda day: (day[0], 1, 1)),
    "QUARTER": lambda day: (day[0], (day[1] - 1) // 3 * 3 + 1, 1),
}
TRUNC_UNITS = (*FIXED_UNITS, "WEEK", *_STARTS)


def _civil(days: int) -> Civil:
    """The date so many days after 1970-01-01, by the Gregorian calendar of any year; years begin in March here."""
    era, of_era = divmod(days + 719_468, _ERA)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day


def _days(civil: Civil) -> int:
    year, month, day = civil
    era, of_era = divmod(year - (month <= 2), 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


_CALENDAR: dict[Op, Callable[[int], int]] = {
    Op.YEAR: lambda days: _civil(days)[0],
    Op.QUARTER: lambda days: (_civil(days)[1] + 2) // 3,
    Op.MONTH: lambda days: _civil(days)[1],
    Op.DAY: lambda days: _civil(days)[2],
    Op.DAY_OF_WEEK: lambda days: (days + 4) % 7 + 1,  # 1970-01-01 was a Thursday; Sunday is 1
    Op.DAY_OF_YEAR: lambda days: days - _days((_civil(days)[0], 1, 1)) + 1,
}


def _of_day(part: Callable[[int], int], source: Type) -> Rule:
    if source.kind is Kind.DATE:
        return part
    return lambda time: part(time // _DAY)


def _truncated(unit: int | str, time: int) -> int:
    """The begin of the unit: so many microseconds, or one of the calendar's."""
    if isinstance(unit, int):
        start = time // unit * unit
    elif unit == "WEEK":  # Monday
        start = ((time // _DAY + 3) // 7 * 7 - 3) * _DAY
    else:
        start = _days(_STARTS[unit](_civil(time // _DAY))) * _DAY
    if wrapped(start, 64) != start:
        raise AnsiError(f"the {unit} of {time} begins before all timestamps")
    return start
