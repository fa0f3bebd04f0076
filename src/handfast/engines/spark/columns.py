"""Spark's types as a predicate sees them, and the schema of the result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from handfast.errors import SpecError
from handfast.spec import types
from handfast.spec.expression import Column, walk
from handfast.spec.join import BoundJoin
from handfast.spec.schema import Schema
from handfast.spec.types import Kind, Type

_SIMPLE = {
    "boolean": types.BOOLEAN,
    "tinyint": types.INT8,
    "smallint": types.INT16,
    "int": types.INT32,
    "bigint": types.INT64,
    "float": types.FLOAT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "binary": types.BINARY,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "timestamp_ntz": types.TIMESTAMP_NTZ,
}


def schema_of(frame: Any) -> Schema:
    """The columns of a DataFrame with the types a predicate sees."""
    return Schema(tuple((field.name, _type_of(field.dataType.simpleString())) for field in frame.schema.fields))


def arrow_schema(frame: Any, stream: str) -> pa.Schema:
    """The columns of a DataFrame as its workers get them, in UTC; one that they cannot get is an error by its name."""
    large = frame.sparkSession.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    return pa.schema([_arrow_field(field, stream, large=large) for field in frame.schema.fields])


def needed(frames: dict[str, Any], join: BoundJoin) -> dict[str, Any]:
    """The DataFrames without the columns that nothing asks for: where rows have a place, all of them decide ties."""
    if join.stamped:
        return frames
    read = {(node.stream, node.name) for node in walk(join.predicate) if isinstance(node, Column)}
    read |= {(field.stream, field.column) for field in join.fields if field.stream is not None}
    read |= set(enumerate(join.times))
    read |= {(stream, name) for stream, name in enumerate(join.sequences) if name is not None}
    found = {}
    for stream, (name, schema) in enumerate(zip(join.spec.names, join.schemas, strict=True)):
        kept = [(stream, column) in read for column in schema.names]
        own = numbered(frames[name]).select([str(place) for place, keep in enumerate(kept) if keep])
        found[name] = own.toDF(*(column for column, keep in zip(schema.names, kept, strict=True) if keep))
    return found


def numbered(frame: Any) -> Any:
    """The DataFrame with numbers for column names: `mapInArrow` would read a dot or a backtick in a name as SQL."""
    return frame.toDF(*map(str, range(len(frame.columns))))


def result_schema(join: BoundJoin, frames: dict[str, Any]) -> StructType:
    """The Spark schema of the matches."""
    names = join.spec.names
    time = frames[names[0]].schema[join.times[0]].dataType
    types = [time if f.stream is None else frames[names[f.stream]].schema[f.column].dataType for f in join.fields]
    return StructType([StructField(n, t) for n, t in zip(join.output_names, types, strict=True)])


def names_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that differ in nothing but their case."""
    known: dict[str, str] = {}
    for name in names:
        if name.lower() in known:
            return known[name.lower()], name
        known[name.lower()] = name
    return None


def _arrow_field(field: StructField, stream: str, *, large: bool) -> pa.Field:
    twice = _field_twice(field.dataType)
    if twice is not None:
        raise SpecError(
            f"Column {field.name!r} of stream {stream!r} is of type {field.dataType.simpleString()}, and Spark hands "
            f"no struct with two fields {twice!r} to Python; leave it out of the input, or rename one of the two"
        )
    try:
        return to_arrow_schema(StructType([field]), timezone="UTC", prefers_large_types=large).field(0)
    except (PySparkTypeError, ValueError) as error:
        raise SpecError(
            f"Column {field.name!r} of stream {stream!r} is of type {field.dataType.simpleString()}, which Spark does "
            "not hand to Python; leave it out of the input, or cast it, e.g. to string"
        ) from error


def _field_twice(type_: DataType) -> str | None:
    """The name that two fields of a struct in this type have, at any depth."""
    if isinstance(type_, StructType):
        twice = next((name for name in type_.names if type_.names.count(name) > 1), None)
        inner = [field.dataType for field in type_.fields]
    else:
        twice = None
        inner = [type_.elementType] if isinstance(type_, ArrayType) else []
        inner += [type_.keyType, type_.valueType] if isinstance(type_, MapType) else []
    return twice or next(filter(None, map(_field_twice, inner)), None)


def _type_of(name: str) -> Type:
    digits = re.fullmatch(r"decimal\((\d+),(\d+)\)", name)
    if digits is not None:
        return types.decimal(int(digits[1]), int(digits[2]))
    return _SIMPLE.get(name, Type(Kind.PAYLOAD, label=name))
