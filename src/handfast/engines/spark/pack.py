"""Rows to blocks: what Spark moves between partitions are blocks of tuples in Arrow's format.

With the blocks go punctuations, to every core in every batch, block or not: how far the streams have come. Rejected
rows go along, each to one core, to be counted there and to be handed out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from handfast.core.routing.router import Router
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.output import REJECTED, pack_rows
from handfast.flow.admission import progress_of, split
from handfast.flow.block import Block
from handfast.flow.pieces import LIMIT, Limit, gathered, together
from handfast.flow.punctuation import Punctuation
from handfast.plan import Plan

PACKED = "core bigint, stream int, kind string, punctuation binary, block binary"
SEQUENCER = 0  # the core whose partition the sequencer runs in
TUPLES = "tuples"  # the kind of what may join; other rows were refused

_PACKED_ARROW = pa.schema(
    [
        ("core", pa.int64()),
        ("stream", pa.int32()),
        ("kind", pa.string()),
        ("punctuation", pa.binary()),
        ("block", pa.binary()),
    ]
)
Packed = tuple[int, int, str, bytes | None, bytes | None]  # key of a core, stream, kind, punctuation, block


@dataclass(frozen=True)
class Pack:
    """Packs the rows of one stream's partition: a block for each core, or one for the sequencer."""

    plan: Plan
    stream: int
    limit: Limit = LIMIT

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        streams = len(self.plan.join.schemas)
        task = TaskContext.get()
        partition = task.partitionId() if task is not None else 0
        for number, batch in enumerate(gathered(batches, self.limit)):
            block, rejected = split(self.plan.join, self.stream, self._as_declared(batch))
            blocks = [block if stream == self.stream else None for stream in range(streams)]
            punctuation = Punctuation(batch.num_rows, progress_of(blocks), (partition, number))
            if self.plan.join.stamped:
                encoded = block.encoded if block is not None else None
                rows: list[Packed] = [(core_key(SEQUENCER), self.stream, TUPLES, punctuation.encode(), encoded)]
            else:
                rows = packed(self.plan, self.stream, block, punctuation)
            if rejected is not None:
                cores = 1 if self.plan.join.stamped else self.plan.cores
                rows.append(refused(cores, self.stream, REJECTED, pack_rows(rejected)))
            for few in together(rows, measure, self.limit):
                yield as_batch(few)

    def _as_declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the columns' own names and with the types that the result has.

        Spark hands rows over in the session's zone and takes them back in UTC; and what may not be NULL in a type it
        knows better when it runs than when it was asked.
        """
        if not self.plan.arrow:
            return batch
        asked = self.plan.arrow[self.stream]
        types = pa.schema([_declared_field(own, field) for own, field in zip(batch.schema, asked, strict=True)])
        if types.types == batch.schema.types:
            return pa.RecordBatch.from_arrays(batch.columns, schema=types)
        # the same bytes by another name: a cast refuses a NULL struct whose fields may not be NULL
        return pa.ipc.read_record_batch(batch.serialize(), types)


def packed(plan: Plan, stream: int, block: Block | None, punctuation: Punctuation) -> list[Packed]:
    """A row for every core: its block, if it gets one, and the punctuation."""
    sent = Router(plan, stream).route(block) if block is not None else {}
    told = punctuation.encode()
    return [
        (core_key(core), stream, TUPLES, told, sent[core].encoded if core in sent else None)
        for core in range(plan.cores)
    ]


def refused(cores: int, stream: int, kind: str, rows: bytes) -> Packed:
    """Refused rows on their way to one of so many cores, whose choice depends on their content alone."""
    return core_key(zlib.crc32(rows) % cores), stream, kind, None, rows


def measure(row: Packed) -> tuple[int, int]:
    """How large a packed row is."""
    return 1, len(row[-1] or b"")


def as_batch(rows: Sequence[Packed]) -> pa.RecordBatch:
    """Packed rows as Spark takes them."""
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _PACKED_ARROW, strict=True)],
        schema=_PACKED_ARROW,
    )


def _declared(type_: pa.DataType, asked: pa.DataType) -> pa.DataType:
    """The type with the zones of the one that is `asked` for, and with its word on what may be NULL, at every level."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp(type_.unit, asked.tz)
    if pa.types.is_struct(type_):
        return pa.struct([_declared_field(own, field) for own, field in zip(type_, asked, strict=True)])
    if pa.types.is_map(type_):
        return pa.map_(
            _declared_field(type_.key_field, asked.key_field), _declared_field(type_.item_field, asked.item_field)
        )
    if pa.types.is_list(type_):
        return pa.list_(_declared_field(type_.value_field, asked.value_field))
    return type_


def _declared_field(field: pa.Field, asked: pa.Field) -> pa.Field:
    return asked.with_type(_declared(field.type, asked.type))
