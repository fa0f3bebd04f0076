"""Blocks: immutable runs of one stream's tuples, with their times and what routing says of each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HOME = 1  # the tuple's own core: here it counts
EVERYWHERE = 2  # the tuple was sent to every core
_TIME, _FLAGS = "#time", "#flags"


class Block:
    """Tuples of one stream. Its bytes are its identity: a block never changes, so a cached one is never stale."""

    def __init__(self, batch: pa.RecordBatch, times: NDArray[np.int64], flags: NDArray[np.uint8]) -> None:
        self.batch = batch
        self.times = times
        self.flags = flags

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def least_time(self) -> int:
        return int(self.times.min())

    @cached_property
    def most_time(self) -> int:
        return int(self.times.max())

    @cached_property
    def encoded(self) -> bytes:
        """The block as bytes."""
        columns = [*self.batch.columns, pa.array(self.times), pa.array(self.flags)]
        batch = pa.RecordBatch.from_arrays(columns, names=[*self.batch.schema.names, _TIME, _FLAGS])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data: bytes = sink.getvalue().to_pybytes()
        return data

    @cached_property
    def id(self) -> str:
        """The hash of the block's bytes."""
        return hashlib.blake2b(self.encoded, digest_size=16).hexdigest()

    @staticmethod
    def decode(data: bytes | pa.Buffer) -> Block:
        """The block that these bytes are."""
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        payload = batch.select(range(batch.num_columns - 2))
        block = Block(payload, batch.column(_TIME).to_numpy(), batch.column(_FLAGS).to_numpy())
        if isinstance(data, bytes):
            block.__dict__["encoded"] = data
        return block

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Block:
        """The tuples at these positions, or under this mask."""
        if rows.dtype == np.bool_:
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        return Block(self.batch.take(pa.array(rows)), self.times[rows], self.flags[rows])

    def slice(self, start: int, stop: int) -> Block:
        """The tuples from `start` up to `stop`."""
        return Block(self.batch.slice(start, stop - start), self.times[start:stop], self.flags[start:stop])

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """Several blocks as one."""
        if len(blocks) == 1:
            return blocks[0]
        batch = pa.concat_batches([block.batch for block in blocks])
        times = np.concatenate([block.times for block in blocks])
        return Block(batch, times, np.concatenate([block.flags for block in blocks]))
