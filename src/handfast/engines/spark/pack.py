"""Rows to blocks: what Spark moves between partitions are blocks of tuples in Arrow's format.

Every partition of the input also tells every core how far its stream has come, block or not: a punctuation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from handfast.core.route import Router
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.matches import gathered
from handfast.plan import Plan

PACKED = "core bigint, stream int, highest bigint, block binary"

_PACKED_ARROW = pa.schema(
    [("core", pa.int64()), ("stream", pa.int32()), ("highest", pa.int64()), ("block", pa.binary())]
)


@dataclass(frozen=True)
class Pack:
    """Packs the rows of one stream's partition into a block for each core."""

    plan: Plan
    stream: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        router = Router(self.plan, self.stream)
        for batch in gathered(batches):
            routed = router.route(
                batch.cast(pa.schema([field.with_type(_in_utc(field.type)) for field in batch.schema]))
            )
            rows: dict[str, list[Any]] = {name: [] for name in _PACKED_ARROW.names}
            for core in range(self.plan.cores):
                block = routed.blocks.get(core)
                rows["core"].append(core_key(core))
                rows["stream"].append(self.stream)
                rows["highest"].append(routed.highest)
                rows["block"].append(block.encoded if block is not None else None)
            yield pa.RecordBatch.from_pydict(rows, schema=_PACKED_ARROW)


def _in_utc(type_: pa.DataType) -> pa.DataType:
    """The type with every zone in it UTC: Spark hands rows over in the session's zone and takes them back in UTC."""
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_in_utc(type_.key_type), type_.item_field.with_type(_in_utc(type_.item_type)))
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_in_utc(type_.value_type)))
    return type_
