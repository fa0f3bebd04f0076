"""The log: the tuples of both streams, as kernels read them, in chunks that every core of a chain finds by position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handfast.engines.local.native.memory import CHUNK, NULLABLE, SLOTS, STAMPS, STATUSES, VALUES, Words
from handfast.kernels.columns import Columns
from handfast.kernels.compiler.scan import SPARE
from handfast.kernels.values import Array, addresses

BITS = 14  # a chunk has so many tuples, as a power of two: it is more than a tile


class Log:
    """Both streams' tuples, from the oldest that a core may read on. One thread writes; cores read what they are told.

    Attributes:
        chunks: Where they lie: what cores read.
        stops: Of both streams, the position behind the last tuple.
        entered: The same, once all tuples of a step are here.
    """

    def __init__(self, chunks: Words, bits: int) -> None:
        self.chunks = chunks
        self._size = 1 << bits
        self.stops = [0, 0]
        self.entered = (0, 0)
        self._held: tuple[dict[int, _Chunk], dict[int, _Chunk]] = ({}, {})
        self._spare: tuple[list[_Chunk], list[_Chunk]] = ([], [])

    def append(self, stream: int, columns: Columns) -> None:
        """Write tuples behind the others of their stream."""
        done = 0
        while done < len(columns):
            number, at = divmod(self.stops[stream], self._size)
            count = min(len(columns) - done, self._size - at)
            chunk = self._held[stream].get(number) or self._begun(stream, number, columns)
            chunk.write(at, columns, done, count)
            if chunk.nullable:
                self.chunks[CHUNK * (stream * SLOTS + number % SLOTS) + NULLABLE] = 1
            self.stops[stream] += count
            done += count

    def enter(self) -> None:
        """Say that all tuples of a step are here."""
        self.entered = (self.stops[0], self.stops[1])

    def release(self, stream: int, first: int) -> None:
        """Let the chunks go that end at or before a position: no core reads them any more."""
        held = self._held[stream]
        while held and (oldest := next(iter(held))) < first // self._size:
            chunk = held.pop(oldest)
            if not self._spare[stream]:  # one is enough: chunks come and go at the same pace
                self._spare[stream].append(chunk)

    def rank(self, stream: int, position: int) -> int | None:
        """The place of a tuple in the order of all, None if its chunk is gone; tuples must be stamped.

        Where another thread writes, it is of this tuple only if cores can still read the tuple afterwards.
        """
        number, at = divmod(position, self._size)
        chunk = self._held[stream].get(number)
        return sum(int(own[at]) for own in chunk.stamps[1:]) if chunk is not None else None

    def newest(self, stream: int) -> list[Array]:
        """The arrays of the chunk that is being written: columns and stamps."""
        chunk = self._held[stream][self.stops[stream] // self._size - (self.stops[stream] % self._size == 0)]
        return [*chunk.values, *chunk.stamps]

    def _begun(self, stream: int, number: int, columns: Columns) -> _Chunk:
        """A new chunk, with tuples of these types."""
        spare = self._spare[stream]
        chunk = spare.pop() if spare else _Chunk(columns, self._size + SPARE)
        chunk.clear()
        place = CHUNK * (stream * SLOTS + number % SLOTS)
        self.chunks[place + VALUES], self.chunks[place + STATUSES], self.chunks[place + STAMPS] = (
            table.ctypes.data for table in chunk.tables
        )
        self.chunks[place + NULLABLE] = 0
        self._held[stream][number] = chunk
        return chunk


class _Chunk:
    """Columns for so many tuples."""

    def __init__(self, like: Columns, size: int) -> None:
        self.values = [np.zeros(size, own.dtype) for own in like.values]
        self.statuses = [np.zeros(size, np.uint8) for _ in like.values]
        self.stamps: list[NDArray[np.int64]] = [np.zeros(size, np.int64) for _ in range(1 + len(like.seen))]
        self.tables = addresses(self.values), addresses(self.statuses), addresses(self.stamps)
        self.nullable = False

    def clear(self) -> None:
        """Forget which tuples had NULLs."""
        if self.nullable:
            for own in self.statuses:
                own[:] = 0
        self.nullable = False

    def write(self, at: int, columns: Columns, start: int, count: int) -> None:
        """Write some of these tuples from a place on."""
        here, there = slice(at, at + count), slice(start, start + count)
        for own, values in zip(self.values, columns.values, strict=True):
            own[here] = values[there]
        for own, status in zip(self.statuses, columns.statuses, strict=True):
            if status is not None:
                own[here] = status[there]
                self.nullable = True
        for stamps, given in zip(self.stamps, (columns.times, *columns.seen), strict=True):
            stamps[here] = given[there]
