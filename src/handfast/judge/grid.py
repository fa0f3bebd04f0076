"""Tables as text: a grid that a person can read and write, one line per row, and times as people say them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa

from handfast.connectors.ddl import arrow_type, type_name
from handfast.errors import SpecError
from handfast.judge.rows import plain_values
from handfast.spec.window import parse_duration

BASE = datetime(2026, 1, 1, tzinfo=UTC)  # where times without a day belong

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RULE = re.compile(r"[-+|: ]*---[-+|: ]*")
_CELL = re.compile(r"\s*(?:'((?:[^']|'')*)'|((?:[^|'][^|]*?)?))\s*(\||$)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")
_RELATIVE = re.compile(r"([+-])\s*(\d.*[a-zA-Z].*)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY_AND_TIME = re.compile(rf"{_DAY.pattern}[ T]\d{{1,2}}:\d{{2}}.*")


class _Text(str):
    """What stood in quotes: text, whatever it looks like."""

    __slots__ = ()


def table(text: str, *, types: Mapping[str, str] | None = None, base: str | datetime = BASE) -> pa.Table:
    """Read a table written as text.

    The first line names the columns, every other line is a row; `|` stands between cells, and may stand around them.
    A column is `name` or `name: type` with Spark's name of the type; without one it is what its cells look like: a
    timestamp, date, bigint, double or boolean, else a string. `NULL` is NULL; 'quotes' make any text a string, ''
    doubles one inside. A line that begins with `#` is a comment.

    A time is `12:00:05` on the day of `base`, `+5s` or `-1 min` from `base` on, `2026-01-31 12:00:05`, or, in a column
    that says `timestamp`, a number of seconds from `base` on. Times are UTC.

    Args:
        text: The grid.
        types: Types of columns by name, for those whose header says none.
        base: The moment that times without a day refer to.
    """
    lines = [line.strip() for line in text.splitlines()]
    grid = [_cells(line) for line in lines if line and not line.startswith("#") and not _RULE.fullmatch(line)]
    if not grid:
        raise SpecError("A table needs at least a line with the names of its columns: 'ts | symbol | price: double'")
    columns = [_column(cell, types or {}) for cell in grid[0]]
    names = [name for name, _ in columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SpecError(f"The table has the column {twice[0]!r} twice; rename one of the two")
    for number, row in enumerate(grid[1:], 1):
        if len(row) != len(columns):
            raise SpecError(
                f"Row {number} of the table has {len(row)} cells, its header has {len(columns)}: {_shown(row)}"
            )
    origin = _moment_of(base)
    cells = list(zip(*grid[1:], strict=True)) or [()] * len(columns)
    arrays = [_array(name, type_, column, origin) for (name, type_), column in zip(columns, cells, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def text(table: pa.Table) -> str:
    """Write a table as `table` reads it, its columns aligned."""
    heads = [f"{field.name}: {type_name(field.type)}" for field in table.schema]
    return "\n".join(aligned([heads, *zip(*cells_of(table), strict=True)], right=rights(table.schema)))


def cells_of(table: pa.Table) -> list[list[str]]:
    """Every column's values as they stand in a grid."""
    return [[_written(value, column.type) for value in _values(column)] for column in table.columns]


def rights(schema: pa.Schema) -> list[bool]:
    """Which columns stand on the right of their place: numbers."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [any(kind(field.type) for kind in kinds) for field in schema]


def aligned(lines: Sequence[Sequence[str]], *, right: Sequence[bool]) -> list[str]:
    """Cells as lines of one grid."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        " | ".join(
            cell.rjust(width) if on_the_right else cell.ljust(width)
            for cell, width, on_the_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


# --- reading --------------------------------------------------------------------------------------------------------


def _cells(line: str) -> list[str]:
    if line.startswith("|"):
        line = line[1:].removesuffix("|")
    cells: list[str] = []
    at = 0
    while True:
        cell = _CELL.match(line, at)
        if cell is None:
            raise SpecError(f"A quote is not closed, or text stands behind it, in the line {line!r} of the table")
        cells.append(cell[2] if cell[1] is None else _Text(cell[1].replace("''", "'")))
        at = cell.end()
        if cell[3] == "":
            return cells


def _column(cell: str, types: Mapping[str, str]) -> tuple[str, pa.DataType | None]:
    if isinstance(cell, _Text):
        return str(cell), arrow_type(types[cell]) if cell in types else None
    name, _, said = (part.strip() for part in cell.partition(":"))
    if not name:
        raise SpecError("A column of the table has no name; write it like 'price' or 'price: double'")
    said = said or types.get(name, "")
    return name, arrow_type(said) if said else None


def _array(name: str, type_: pa.DataType | None, cells: Sequence[str], base: datetime) -> pa.Array:
    type_ = type_ if type_ is not None else _looks_like([cell for cell in cells if cell != "NULL" or _quoted(cell)])
    values: list[Any] = []
    for number, cell in enumerate(cells, 1):
        if cell == "NULL" and not _quoted(cell):
            values.append(None)
            continue
        try:
            value = _read(cell, type_, base)
            pa.array([value], type_)  # an int that is too large for its type fails here, with its row's number
        except (ValueError, ArithmeticError, InvalidOperation, pa.ArrowException) as error:
            if isinstance(error, SpecError):
                raise
            raise SpecError(
                f"{str(cell)!r} in row {number}, column {name!r}, is not of type {type_name(type_)}"
            ) from None
        values.append(value)
    return pa.array(values, type_)


def _looks_like(cells: Sequence[str]) -> pa.DataType:
    if not cells:
        return pa.null()
    if any(_quoted(cell) for cell in cells):
        return pa.string()
    looks: list[tuple[str, Callable[[str], Any]]] = [
        ("bigint", _INTEGER.fullmatch),
        ("double", _NUMBER.fullmatch),
        ("boolean", lambda cell: cell in ("true", "false")),
        ("date", _DAY.fullmatch),
        ("timestamp", lambda cell: any(form.fullmatch(cell) for form in (_CLOCK, _RELATIVE, _DAY_AND_TIME))),
    ]
    return arrow_type(next((name for name, fits in looks if all(map(fits, cells))), "string"))


def _read(cell: str, type_: pa.DataType, base: datetime) -> Any:
    if pa.types.is_boolean(type_):
        return {"true": True, "false": False}[cell.lower()] if cell.lower() in ("true", "false") else _fail(cell)
    if pa.types.is_integer(type_):
        return int(cell)
    if pa.types.is_floating(type_):
        return float(cell)
    if pa.types.is_decimal(type_):
        return Decimal(cell)
    if pa.types.is_date(type_):
        return date.fromisoformat(cell)
    if pa.types.is_timestamp(type_):
        return _micros(cell, base)
    return cell.encode() if pa.types.is_binary(type_) else str(cell)


def _micros(cell: str, base: datetime) -> int:
    """A time in microseconds since 1970."""
    relative, clock = _RELATIVE.fullmatch(cell), _CLOCK.fullmatch(cell)
    origin = (base - _EPOCH) // _MICROSECOND
    if relative:
        length = parse_duration(relative[2], what=f"The time {cell!r}")
        return origin + (length if relative[1] == "+" else -length)
    if clock:
        day = base.replace(hour=0, minute=0, second=0, microsecond=0)
        hours, minutes, seconds = int(clock[1]), int(clock[2]), Fraction(clock[3] or 0)
        if hours > 23 or minutes > 59 or seconds >= 60:
            _fail(cell)
        return (day - _EPOCH) // _MICROSECOND + round((hours * 3600 + minutes * 60 + seconds) * 1_000_000)
    if _NUMBER.fullmatch(cell):
        return origin + round(Fraction(cell) * 1_000_000)
    return (_moment_of(cell) - _EPOCH) // _MICROSECOND


def _moment_of(moment: str | datetime) -> datetime:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _fail(cell: str) -> Any:
    raise ValueError(cell)


def _quoted(cell: str) -> bool:
    return isinstance(cell, _Text)


def _shown(cells: Sequence[str]) -> str:
    return " | ".join(cells)


# --- writing --------------------------------------------------------------------------------------------------------


def _values(column: pa.ChunkedArray) -> list[Any]:
    # times as numbers: Python's calendar is shorter than Arrow's
    return plain_values(column) if pa.types.is_timestamp(column.type) else list(column.to_pylist())


def _written(value: Any, type_: pa.DataType) -> str:
    if value is None:
        return "NULL"
    if pa.types.is_timestamp(type_):
        return _written_time(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        plain = value not in ("", "NULL") and not re.search(r"[|'\n]|^\s|\s$|^#|---", value)
        return value if plain else "'" + value.replace("'", "''").replace("\n", "\\n") + "'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return repr(value) if isinstance(value, float) else str(value)


def _written_time(micros: int) -> str:
    try:
        moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    except OverflowError:
        return f"{micros} us"
    seconds = f"{moment:%H:%M:%S.%f}".rstrip("0").rstrip(".")
    return f"{moment.date().isoformat()} {seconds}"
