"""Rows to blocks: Spark does not move single rows to the cores, but blocks of tuples in Arrow's format.

Every core also gets a punctuation, whether there is a block for it or not: it says how far the stream has come.
Rejected rows go along, each to one core, which counts them and gives them out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from handfast.core.routing.router import Router
from handfast.engines.spark.packed import Packed, as_batch, measure
from handfast.engines.spark.residents import settle
from handfast.engines.spark.rows import REJECTED, RefusedRows, pack_rows
from handfast.flow.admission import progress_of, split
from handfast.flow.block import Block
from handfast.flow.pieces import LIMIT, Limit, gathered, together
from handfast.flow.punctuation import Punctuation
from handfast.plan import Plan

SEQUENCER = 0  # the core whose partition the sequencer runs in


@dataclass(frozen=True)
class Pack:
    """Packs the rows of one partition of a stream: a block for each core, or one for the sequencer."""

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
                rows = [Packed.of_tuples(SEQUENCER, self.stream, punctuation, block)]
            else:
                rows = for_cores(self.plan, self.stream, block, punctuation)
            if rejected is not None:
                cores = 1 if self.plan.join.stamped else self.plan.cores
                rows.append(for_one_core(cores, RefusedRows(REJECTED, self.stream, pack_rows(rejected))))
            for few in together(rows, measure, self.limit):
                yield as_batch(few)
        settle()

    def _as_declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with their own column names (see `columns.numbered`) and with the types that the result has.

        Spark hands timestamps over in the session's time zone and takes them back in UTC. And a running query may know
        that a part of a type is never NULL where the DataFrame's schema says that it may be.
        """
        if not self.plan.arrow:
            return batch
        asked = self.plan.arrow[self.stream]
        types = pa.schema([_declared_field(own, field) for own, field in zip(batch.schema, asked, strict=True)])
        if types.types == batch.schema.types:
            return pa.RecordBatch.from_arrays(batch.columns, schema=types)
        # the same bytes by another name: a cast refuses a NULL struct whose fields may not be NULL
        return pa.ipc.read_record_batch(batch.serialize(), types)


def for_cores(plan: Plan, stream: int, block: Block | None, punctuation: Punctuation) -> list[Packed]:
    """A row for every core: the punctuation, and the tuples that are routed there, if there are any."""
    sent = Router(plan, stream).route(block) if block is not None else {}
    return [Packed.of_tuples(core, stream, punctuation, sent.get(core)) for core in range(plan.cores)]


def for_one_core(cores: int, refused: RefusedRows) -> Packed:
    """Refused rows for one of so many cores; which one depends on their content alone."""
    return Packed.of_refused(zlib.crc32(refused.rows) % cores, refused)


def _declared(type_: pa.DataType, asked: pa.DataType) -> pa.DataType:
    """The type with the time zones of the `asked` one, and nullable where that one is, at every level."""
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
