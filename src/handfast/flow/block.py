"""Blocks: immutable runs of one stream's tuples, with their times and what routing says of each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.flow.fixed import base
from handfast.flow.gather import goes_up
from handfast.flow.same import joined, taken
from handfast.flow.size import content_bytes, widest_row
from handfast.flow.time import micros

HOME = 1  # this core is the one that counts the tuple
EVERYWHERE = 2  # the tuple was sent to every core
_TIME, _FLAGS, _SEEN = "#time", "#flags", "#seen"

Seen = tuple[NDArray[np.int64], ...]


class Block:
    """Tuples of one stream. Its bytes are its identity: a block never changes, so a cached one is never stale.

    `seen` has, for every stream, how many of its tuples came before each tuple here; among its own stream's that is
    the tuple's own place, its `seq`. It is empty where tuples are not stamped.
    """

    def __init__(
        self, batch: pa.RecordBatch, times: NDArray[np.int64], flags: NDArray[np.uint8], seen: Seen = ()
    ) -> None:
        self.batch = batch
        self.times = times
        self.flags = flags
        self.seen = seen

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def at_home(self) -> int:
        """How many of the tuples have their home at this core."""
        return int(np.count_nonzero(self.flags & HOME))

    @cached_property
    def in_time(self) -> bool:
        """Whether no tuple has a lower time than the one before it."""
        return goes_up(self.times)

    @cached_property
    def least_time(self) -> int:
        return int(self.times[0] if self.in_time else self.times.min())

    @cached_property
    def most_time(self) -> int:
        return int(self.times[-1] if self.in_time else self.times.max())

    @cached_property
    def most_seen(self) -> tuple[int, ...]:
        """For every stream, the most that any of the tuples has seen of it."""
        return tuple(int(own.max()) for own in self.seen)

    @cached_property
    def size(self) -> int:
        """How many bytes the values of the tuples take."""
        return content_bytes(self.batch)

    @cached_property
    def widest_row(self) -> int:
        """How many bytes the widest tuple takes."""
        return widest_row(self.batch)

    @cached_property
    def bases(self) -> tuple[int | None, ...]:
        """By column, the address of the first value, where all are as wide and none is NULL."""
        return tuple(map(base, self.batch.columns))

    @cached_property
    def _time_place(self) -> int | None:
        """The column that the times are, in memory too: what is made of the block need not have them twice."""
        address = self.times.ctypes.data
        places = (k for k, own in enumerate(self.bases) if own == address and self.times.strides == (8,))
        return next((k for k in places if pa.types.is_timestamp(self.batch.schema.types[k])), None)

    @cached_property
    def encoded(self) -> bytes:
        """The block as bytes."""
        columns = [*self.batch.columns, *map(pa.array, self.seen), pa.array(self.times), pa.array(self.flags)]
        seen = [f"{_SEEN}{stream}" for stream in range(len(self.seen))]
        batch = pa.RecordBatch.from_arrays(columns, names=[*self.batch.schema.names, *seen, _TIME, _FLAGS])
        batch = batch.replace_schema_metadata({_SEEN: str(len(seen))})
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
        """The block with these bytes."""
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        # by position: a user's column may have any name
        *columns, times, flags = batch.columns
        stamped = int(batch.schema.metadata[_SEEN.encode()])
        own = len(columns) - stamped
        seen = tuple(column.to_numpy() for column in columns[own:])
        block = Block(batch.select(range(own)), times.to_numpy(), flags.to_numpy(), seen)
        if isinstance(data, bytes):
            block.__dict__["encoded"] = data
        return block

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Block:
        """The tuples at these positions, or under this mask."""
        if rows.dtype == np.bool_:
            if rows.all():
                return self
            rows = np.flatnonzero(rows)
        seen = tuple(own[rows] for own in self.seen)
        batch, place = self.batch.take(pa.array(rows)), self._time_place
        times = self.times[rows] if place is None else micros(batch.column(place))
        return Block(batch, times, taken(self.flags, rows), seen)

    def sorted(self) -> Block:
        """The same tuples sorted by rank, or by time where they are not stamped; equal ones stay in their order."""
        if not self.seen:
            return self if self.in_time else self.take(np.argsort(self.times, kind="stable"))
        places = np.sum(self.seen, axis=0)
        return self if goes_up(places) else self.take(np.argsort(places, kind="stable"))

    def with_flags(self, flags: NDArray[np.uint8]) -> Block:
        """The same tuples with other flags."""
        return Block(self.batch, self.times, flags, self.seen)

    def with_seen(self, seen: Seen) -> Block:
        """The same tuples, stamped."""
        return Block(self.batch, self.times, self.flags, seen)

    def slice(self, start: int, stop: int) -> Block:
        """The tuples from `start` up to `stop`."""
        seen = tuple(own[start:stop] for own in self.seen)
        return Block(self.batch.slice(start, stop - start), self.times[start:stop], self.flags[start:stop], seen)

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """Several blocks as one."""
        if len(blocks) == 1:
            return blocks[0]
        batch = pa.concat_batches([block.batch for block in blocks])
        place, *others = {block._time_place for block in blocks}
        if place is None or others:
            times = np.concatenate([block.times for block in blocks])
        else:
            times = micros(batch.column(place))
        seen = tuple(np.concatenate(own) for own in zip(*(block.seen for block in blocks), strict=True))
        return Block(batch, times, joined([block.flags for block in blocks]), seen)
