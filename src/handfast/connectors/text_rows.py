"""Rows of text, csv and json, read as a schema says; one that does not fit is corrupt: named, or counted."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from handfast.connectors.ddl import type_name
from handfast.errors import EngineError, SpecError

_FRACTION = 1 << 16  # rows converted at a time


@dataclass(frozen=True, slots=True)
class TextRows:
    """How lines of text become rows.

    Attributes:
        lines: "csv" or "json".
        drops: Whether corrupt rows are left out and counted; otherwise the first one is an error.
    """

    stream: str
    lines: str
    schema: pa.Schema
    drops: bool = False
    header: bool = True
    separator: str = ","

    def __post_init__(self) -> None:
        for field in self.schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_null(field.type):
                raise SpecError(
                    f"Column {field.name!r} of stream {self.stream!r} is of type {type_name(field.type)}, "
                    f'which the local engine does not read from {self.lines}; use engine = "spark"'
                )

    def read(self, text: Iterable[str], *, where: str) -> tuple[pa.Table, int]:
        """The rows of a text, and how many corrupt ones were dropped; `where` names the text in errors."""
        tables, corrupt = [self.schema.empty_table()], 0
        for records in _cut(self._records(text, where)):
            table, dropped = self._convert(records, where)
            tables.append(table)
            corrupt += dropped
        return pa.concat_tables(tables).combine_chunks(), corrupt

    # -- pieces ----------------------------------------------------------------------------------

    def _records(self, text: Iterable[str], where: str) -> Iterator[tuple[int, Sequence[Any] | str]]:
        """Every record with the number of its line: its cells, or what is wrong with it."""
        return self._csv(text, where) if self.lines == "csv" else self._json(text)

    def _csv(self, text: Iterable[str], where: str) -> Iterator[tuple[int, Sequence[Any] | str]]:
        reader = csv.reader(text, delimiter=self.separator, strict=False)
        wanted = self.schema.names
        before = 0
        for cells in reader:
            before, lines = reader.line_num, reader.line_num - before
            if self.header and reader.line_num == 1:
                names = [cell.strip() for cell in cells]
                if [name.lower() for name in names] != [name.lower() for name in wanted]:
                    raise SpecError(
                        f"{where} has the columns {', '.join(names)}, the schema of stream {self.stream!r} says "
                        f"{', '.join(wanted)}; mend the schema, or say header = false"
                    )
            elif lines > 1:
                yield reader.line_num, "it has a line break inside a cell"
            elif len(cells) == len(wanted):
                yield reader.line_num, [cell if cell != "" else None for cell in cells]
            elif cells:
                yield reader.line_num, f"it has {len(cells)} cells, not {len(wanted)}"

    def _json(self, text: Iterable[str]) -> Iterator[tuple[int, Sequence[Any] | str]]:
        names = self.schema.names
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_float=Decimal)
            except ValueError as error:
                yield number, f"it is not valid JSON ({error})"
                continue
            if isinstance(record, dict):
                yield number, [record.get(name) for name in names]
            else:
                yield number, "it is not a JSON object"

    def _convert(self, records: list[tuple[int, Sequence[Any] | str]], where: str) -> tuple[pa.Table, int]:
        wrong = {place: what for place, (_, what) in enumerate(records) if isinstance(what, str)}
        blank = [None] * len(self.schema)
        cells = list(zip(*(blank if isinstance(what, str) else what for _, what in records), strict=True))
        columns = []
        for field, values in zip(self.schema, cells, strict=True):
            column, bad = _column(values, field.type)
            columns.append(column)
            for place in bad:
                wrong.setdefault(place, f"{field.name} = {values[place]!r} is not of type {type_name(field.type)}")
        table = pa.Table.from_arrays(columns, schema=self.schema)
        if not wrong:
            return table, 0
        if not self.drops:
            place = min(wrong)
            raise EngineError(
                f"Stream {self.stream!r}: line {records[place][0]} of {where} is corrupt: {wrong[place]}; "
                'mend it, or say on_corrupt = "drop" to leave such rows out and count them'
            )
        return table.filter(pa.array([place not in wrong for place in range(len(records))])), len(wrong)


def _cut(records: Iterator[Any]) -> Iterator[list[Any]]:
    some: list[Any] = []
    for record in records:
        some.append(record)
        if len(some) == _FRACTION:
            yield some
            some = []
    if some:
        yield some


def _column(values: Sequence[Any], arrow: pa.DataType) -> tuple[pa.Array, list[int]]:
    """The values as an array, and the places of those that do not fit, which are NULL in it."""
    try:
        if pa.types.is_string(arrow) or (pa.types.is_floating(arrow) or pa.types.is_integer(arrow)):
            texts = pa.array(values, pa.string())  # fails where json has something else than text
            return pc.cast(texts, arrow), []
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass  # value by value, to find out which
    read = _reader(arrow)
    converted: list[Any] = []
    bad = []
    for place, value in enumerate(values):
        try:
            item = None if value is None else read(value)
            pa.scalar(item, arrow)
            converted.append(item)
        except (ValueError, ArithmeticError, TypeError, pa.ArrowException):
            converted.append(None)
            bad.append(place)
    return pa.array(converted, arrow), bad


def _reader(arrow: pa.DataType) -> Callable[[Any], Any]:
    """From a cell of csv or a value of json to a value of this type; it raises where that cannot be."""
    if pa.types.is_boolean(arrow):
        return _boolean
    if pa.types.is_integer(arrow):
        return _integer
    if pa.types.is_floating(arrow):
        return _floating
    if pa.types.is_decimal(arrow):
        return lambda value: _number(Decimal(value)).quantize(Decimal(1).scaleb(-arrow.scale))
    if pa.types.is_date(arrow):
        return lambda value: date.fromisoformat(value)
    if pa.types.is_timestamp(arrow):
        return lambda value: _moment(value, zoned=arrow.tz is not None)
    return lambda value: value if isinstance(value, str) else json.dumps(value, default=str)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[value.lower()] if isinstance(value, str) else _refuse(value)


def _integer(value: Any) -> int:
    if isinstance(value, str) and "_" not in value:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else _refuse(value)


def _floating(value: Any) -> float:
    return float(value) if not isinstance(value, bool) and "_" not in str(value) else _refuse(value)


def _number(value: Decimal) -> Decimal:
    return value if math.isfinite(value) else _refuse(value)


def _moment(value: Any, *, zoned: bool) -> datetime:
    moment = datetime.fromisoformat(value.strip())
    if not zoned:
        return moment if moment.tzinfo is None else _refuse(value)
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _refuse(value: Any) -> Any:
    raise ValueError(value)
