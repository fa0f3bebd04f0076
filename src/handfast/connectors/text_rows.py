"""Rows of text, csv and json, read as a schema says; one that does not fit is corrupt: named, or counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from handfast.connectors.csv_line import BLANK, cells
from handfast.connectors.ddl import type_name
from handfast.connectors.json_line import NotJson, fields
from handfast.connectors.text_values import csv_column, json_column
from handfast.errors import EngineError, SpecError

_FRACTION = 1 << 16  # rows converted at a time

Record = tuple[int, Sequence[str | None] | str]  # the number of a line; its cells, or what is wrong with it


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

    def _records(self, text: Iterable[str], where: str) -> Iterator[Record]:
        """Every record with the number of its line: its cells, or what is wrong with it."""
        return self._csv(text, where) if self.lines == "csv" else self._json(text)

    def _csv(self, text: Iterable[str], where: str) -> Iterator[Record]:
        wanted = self.schema.names
        header = self.header
        for number, line in enumerate(text, 1):
            if not line.strip(BLANK):
                continue
            found = cells(line.rstrip("\r\n"), self.separator)
            if header:
                header = False
                if [name.lower() for name in found] != [name.lower() for name in wanted]:
                    raise SpecError(
                        f"{where} has the columns {', '.join(found)}, the schema of stream {self.stream!r} says "
                        f"{', '.join(wanted)}; mend the schema, or say header = false"
                    )
            elif len(found) == len(wanted):
                yield number, [cell if cell != "" else None for cell in found]
            else:
                yield number, f"it has {len(found)} cells, not {len(wanted)}"

    def _json(self, text: Iterable[str]) -> Iterator[Record]:
        names = self.schema.names
        for number, line in enumerate(text, 1):
            if not line.strip(" \t\r\n"):
                continue
            try:
                record: dict[str, str | None] = {}
                for name, value in fields(line):
                    if name in record:
                        self._check(name, record[name])
                    record[name] = value
                yield number, [record.get(name) for name in names]
            except NotJson as error:
                yield number, str(error)

    def _check(self, name: str, value: str | None) -> None:
        """Of fields with the same name the last one counts, but the others must fit as well."""
        at = self.schema.get_field_index(name)
        if at >= 0 and json_column([value], self.schema.types[at])[1]:
            raise NotJson(self._misfit(name, value))

    def _misfit(self, name: str, value: str | None) -> str:
        return f"{name} = {value!r} is not of type {type_name(self.schema.field(name).type)}"

    def _convert(self, records: list[Record], where: str) -> tuple[pa.Table, int]:
        wrong = {place: what for place, (_, what) in enumerate(records) if isinstance(what, str)}
        blank = [None] * len(self.schema)
        by_column = zip(*(blank if isinstance(what, str) else what for _, what in records), strict=True)
        columns = []
        for field, values in zip(self.schema, by_column, strict=True):
            array, bad = csv_column(values, field.type) if self.lines == "csv" else json_column(values, field.type)
            columns.append(array)
            for place in bad:
                wrong.setdefault(place, self._misfit(field.name, values[place]))
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
