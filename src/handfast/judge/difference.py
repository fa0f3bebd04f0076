"""How two tables differ as multisets of rows, shown so that a person sees what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa

from handfast.connectors.ddl import type_name
from handfast.errors import SpecError
from handfast.flow.batch import as_table
from handfast.judge.grid import aligned, cells_of, rights, table
from handfast.judge.rows import Values, plain_values

_SHOWN = 20  # rows of each kind
_NEAR = 40  # rows of each kind among which partners are looked for
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
_KINDS = (  # one kind in several sizes
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_duration, "duration"),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """What is missing in a table, and what is in it too often; true if there is a difference.

    Attributes:
        missing: The rows that should be there and are not, each as often as it is missing.
        extra: The rows that are there and should not be.
        alike: How many rows are as expected.
        order: Of rows that are the same, the first that is not in its place, if the order matters.
        said: The difference in words, for a terminal.
    """

    missing: pa.Table
    extra: pa.Table
    alike: int
    order: int | None
    said: str

    def __bool__(self) -> bool:
        return bool(self.said)

    def __str__(self) -> str:
        return self.said or f"The same {_rows(self.alike)}"


def assert_same(found: Any, expected: Any, *, in_order: bool = False, columns_in_order: bool = False) -> None:
    """Fail, and show the difference, unless `found` has just the rows of `expected`.

    Args:
        found: An Arrow, pandas or Polars table, a list of Arrow batches, or a Spark DataFrame.
        expected: The same, or text as `table` reads it; columns whose header says no type have the type they are found
            with.
        in_order: Whether the order of the rows matters.
        columns_in_order: Whether the order of the columns matters.
    """
    __tracebackhide__ = True  # pytest shows the caller's line, not these
    differs = difference(found, expected, in_order=in_order, columns_in_order=columns_in_order)
    if differs:
        raise AssertionError(str(differs))


def difference(found: Any, expected: Any, *, in_order: bool = False, columns_in_order: bool = False) -> Difference:
    """The difference of two tables; the arguments are those of `assert_same`."""
    is_there = _table(found, "found")
    types = {field.name: type_name(field.type) for field in is_there.schema}
    wanted = table(expected, types=_readable(types)) if isinstance(expected, str) else _table(expected, "expected")
    wrong_columns = _column_difference(is_there.column_names, wanted.column_names, columns_in_order)
    if wrong_columns:
        return Difference(wanted, is_there, 0, None, wrong_columns)
    is_there = is_there.select(wanted.column_names)
    ours, right = _keys(is_there), _keys(wanted)
    missing, extra = Counter(right) - Counter(ours), Counter(ours) - Counter(right)
    alike = len(right) - missing.total()
    if missing or extra:
        absent, surplus = _Some.of(wanted, right, missing), _Some.of(is_there, ours, extra)
        said = _shown(absent, surplus, alike, _type_notes(is_there.schema, wanted.schema))
        return Difference(absent.rows, surplus.rows, alike, None, said)
    none = wanted.slice(0, 0)
    at = next((k for k, (a, b) in enumerate(zip(ours, right, strict=True)) if a != b), None) if in_order else None
    return Difference(none, none, alike, at, "" if at is None else _order(is_there, wanted, at))


@dataclass(frozen=True, slots=True)
class _Some:
    """Some rows of a table: each once, with how often it counts."""

    distinct: pa.Table
    keys: list[Values]
    counts: list[int]

    @staticmethod
    def of(table: pa.Table, keys: list[Values], counts: Counter[Values]) -> _Some:
        places: dict[Values, int] = {}
        for place, key in enumerate(keys):
            if key in counts:
                places.setdefault(key, place)
        return _Some(table.take(pa.array(places.values(), pa.int64())), list(places), [counts[key] for key in places])

    @property
    def rows(self) -> pa.Table:
        """The rows as often as they count."""
        places = [place for place, count in enumerate(self.counts) for _ in range(count)]
        return self.distinct.take(pa.array(places, pa.int64()))

    def __len__(self) -> int:
        return sum(self.counts)


def _table(data: Any, what: str) -> pa.Table:
    if isinstance(data, list) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return pa.Table.from_batches(data)
    if isinstance(data, list) and not data:
        raise SpecError(f"{what} is an empty list, which has no columns; give pa.Table.from_batches(batches, schema)")
    if type(data).__module__.startswith("pyspark."):
        data = data.toArrow()
    return as_table(data, what)


def _readable(types: dict[str, str]) -> dict[str, str]:
    """The types that can be written in a grid; others are read as they look."""
    return {name: said for name, said in types.items() if said.isidentifier() or said.startswith("decimal(")}


def _keys(table: pa.Table) -> list[Values]:
    """Every row as values that are equal if, and only if, the rows count as the same."""
    columns = [_counted(column) for column in table.columns]
    return list(zip(*columns, strict=True))


def _counted(column: pa.ChunkedArray) -> list[Any]:
    arrow = column.type
    if pa.types.is_dictionary(arrow):
        return _counted(pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], arrow.value_type))
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        kind = _kind(arrow)
        return [None if count is None else (kind, count) for count in plain_values(column)]
    return [None if value is None else _key(value, arrow) for value in column.to_pylist()]


def _key(value: Any, arrow: pa.DataType) -> Any:
    """A number by its value; anything else with its kind, as values of two kinds are never equal."""
    if value is None or pa.types.is_integer(arrow):
        return value
    if pa.types.is_floating(arrow):
        return value if value == value else "NaN"
    if pa.types.is_decimal(arrow):
        return Fraction(value)
    if pa.types.is_dictionary(arrow):
        return _key(value, arrow.value_type)
    if pa.types.is_struct(arrow):
        return "struct", *((field.name, _key(value[field.name], field.type)) for field in arrow)
    if pa.types.is_map(arrow):
        return "map", *((_key(name, arrow.key_type), _key(item, arrow.item_type)) for name, item in value)
    if _is_list(arrow):
        return "list", *(_key(item, arrow.value_type) for item in value)
    if pa.types.is_timestamp(arrow):
        epoch = _EPOCH if value.tzinfo is not None else _EPOCH.replace(tzinfo=None)
        return _kind(arrow), (value - epoch) // timedelta(microseconds=1)
    return _kind(arrow), value


def _is_list(arrow: pa.DataType) -> bool:
    return any(is_kind(arrow) for is_kind in _LISTS)


def _column_difference(found: list[str], expected: list[str], in_order: bool) -> str:
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    lines = []
    if missing:
        lines.append(f"  missing  {', '.join(missing)}")
    if extra:
        lines.append(f"  extra    {', '.join(extra)}")
    if lines:
        return "\n".join(["The columns differ, so no rows were compared", *lines])
    if in_order and found != expected:
        return f"The columns are in another order\n  expected  {', '.join(expected)}\n  found     {', '.join(found)}"
    return ""


def _type_notes(found: pa.Schema, expected: pa.Schema) -> list[str]:
    """Columns that cannot be equal whatever their values."""
    notes = []
    for field in expected:
        other = found.field(field.name).type
        if _kind(field.type) != _kind(other) and "null" not in (str(field.type), str(other)):
            notes.append(f"Column {field.name!r} is expected as {type_name(field.type)}, found as {type_name(other)}")
    return notes


def _kind(arrow: pa.DataType) -> str:
    """What values have in common that can be equal."""
    if pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "number"
    if pa.types.is_struct(arrow):
        return f"struct<{', '.join(f'{field.name}: {_kind(field.type)}' for field in arrow)}>"
    if pa.types.is_map(arrow):
        return f"map<{_kind(arrow.key_type)}, {_kind(arrow.item_type)}>"
    if _is_list(arrow):
        return f"list<{_kind(arrow.value_type)}>"
    if pa.types.is_dictionary(arrow):
        return _kind(arrow.value_type)
    for is_kind, name in _KINDS:
        if is_kind(arrow):
            return name
    return type_name(arrow)


def _shown(missing: _Some, extra: _Some, alike: int, notes: list[str]) -> str:
    parts = [f"{len(some)} {word}" for some, word in ((missing, "missing"), (extra, "extra")) if len(some)]
    heading = f"The rows differ: {', '.join(parts)}, {alike} as expected"
    names = missing.distinct.column_names
    pairs = _partners(missing, extra)
    absent = list(zip(*cells_of(missing.distinct.slice(0, _SHOWN)), strict=True))
    surplus = list(zip(*cells_of(extra.distinct.slice(0, _SHOWN)), strict=True))
    lines: list[list[str]] = []
    marks: dict[int, list[bool]] = {}  # behind which line to mark which cells
    left = dict(enumerate(surplus))
    for place, cells in enumerate(absent):
        lines.append([_label("missing", missing.counts[place]), *cells])
        partner = pairs.get(place)
        if partner in left:
            other = left.pop(partner)
            lines.append([_label("extra", extra.counts[partner]), *other])
            key, found = missing.keys[place], extra.keys[partner]
            marks[len(lines) - 1] = [a != b for a, b in zip(key, found, strict=True)]
    lines.extend([_label("extra", extra.counts[place]), *cells] for place, cells in left.items())
    on_right = [
        False,
        *(a and b for a, b in zip(rights(missing.distinct.schema), rights(extra.distinct.schema), strict=True)),
    ]
    grid = aligned([["", *names], *lines], right=on_right)
    widths = [max(map(len, column)) for column in zip(["", *names], *lines, strict=True)]
    shown = ["", grid[0].rstrip()]
    for number, line in enumerate(grid[1:]):
        shown.append(line)
        if number in marks:
            shown.append(_marked(lines[number][1:], widths, marks[number], on_right[1:]))
    for some, word in ((missing, "missing"), (extra, "extra")):
        if len(some.counts) > _SHOWN:
            shown.append(f"… and {len(some.counts) - _SHOWN} more that are {word}")
    return "\n".join([heading, *notes, *("  " + line if line else line for line in shown)])


def _label(word: str, count: int) -> str:
    return word if count == 1 else f"{word} ×{count}"


def _marked(cells: list[str], widths: list[int], differ: list[bool], right: list[bool]) -> str:
    """A line of carets under the cells that differ from those above."""
    parts = [" " * widths[0]]
    for cell, width, differs, on_right in zip(cells, widths[1:], differ, right, strict=True):
        carets = "^" * len(cell) if differs else ""
        parts.append(carets.rjust(width) if on_right else carets.ljust(width))
    return "   ".join(parts).rstrip()


def _partners(missing: _Some, extra: _Some) -> dict[int, int]:
    """Which extra row a missing one was probably meant to be: the one that differs in the fewest columns."""
    if not missing.keys:
        return {}
    most = len(missing.keys[0]) // 2
    candidates = sorted(
        (distance, place, other)
        for place, key in enumerate(missing.keys[:_NEAR])
        for other, found in enumerate(extra.keys[:_NEAR])
        if (distance := sum(a != b for a, b in zip(key, found, strict=True))) <= most
    )
    pairs: dict[int, int] = {}
    for _, place, other in candidates:
        if place not in pairs and other not in pairs.values():
            pairs[place] = other
    return pairs


def _order(found: pa.Table, expected: pa.Table, at: int) -> str:
    rows = pa.concat_tables([expected.slice(at, 1), found.slice(at, 1)], promote_options="permissive")
    first, second = zip(*cells_of(rows), strict=True)
    grid = aligned(
        [["", *expected.column_names], ["expected", *first], ["found", *second]], right=[False, *rights(rows.schema)]
    )
    heading = f"The rows are the same, their order is not: row {at + 1} of {len(expected)} is the first that differs"
    return "\n".join([heading, "", *("  " + line for line in grid)])


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
