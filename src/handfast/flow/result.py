"""The result as Arrow: the schema of its columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from handfast.spec.join import BoundJoin


def result_schema(join: BoundJoin, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The Arrow schema of the result of a join over streams with these columns."""
    zone = schemas[join.spec.names[0]].field(join.times[0]).type.tz
    types = [
        pa.timestamp("us", zone) if f.stream is None else schemas[join.spec.names[f.stream]].field(f.column).type
        for f in join.fields
    ]
    return pa.schema(list(zip(join.output_names, types, strict=True)))
