"""Columns as Spark writes them, `ts timestamp, price decimal(10,2)`, and the Arrow types they are."""

from __future__ import annotations

import re

import pyarrow as pa

from handfast.errors import SpecError
from handfast.spec.schema import nearest

TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_ALIASES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}
_NAMES = {arrow: name for name, arrow in TYPES.items()} | {pa.large_string(): "string", pa.large_binary(): "binary"}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_COLUMN = re.compile(r"\s*(?:`([^`]+)`|(\w+))\s*(?::\s*|\s+)(.+?)\s*")
_COMMA = re.compile(r",(?![^(<]*[)>])")  # one between columns, not one inside decimal(10,2)


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a Spark type's name."""
    plain = name.strip().lower()
    decimal = _DECIMAL.fullmatch(plain)
    if decimal:
        precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
        if not 1 <= precision <= 38 or scale > precision:
            raise SpecError(f"A decimal has at most 38 digits, and no more of them behind the point, not {name!r}")
        return pa.decimal128(precision, scale)
    plain = _ALIASES.get(plain, plain)
    if plain in TYPES:
        return TYPES[plain]
    near = nearest(plain, (*TYPES, "decimal"))
    hint = f"; did you mean {near!r}?" if near else ""
    raise SpecError(f"There is no type {name!r}{hint} (there are {', '.join(TYPES)}, decimal(p,s))")


def type_name(arrow: pa.DataType) -> str:
    """Spark's name of an Arrow type; Arrow's own where Spark has none."""
    if pa.types.is_dictionary(arrow):
        return type_name(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _NAMES.get(arrow, str(arrow))


def arrow_schema(columns: str, *, what: str) -> pa.Schema:
    """The Arrow schema of `name type, name type`; `what` names it in errors."""
    fields = []
    for part in _COMMA.split(columns):
        column = _COLUMN.fullmatch(part)
        if not column:
            raise SpecError(f"{what} must be columns like 'ts timestamp, price double', not {part.strip()!r}")
        fields.append(pa.field(column[1] or column[2], arrow_type(column[3])))
    names = [field.name for field in fields]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise SpecError(f"{what} has the column {twice[0]!r} twice; rename one of the two")
    return pa.schema(fields)
