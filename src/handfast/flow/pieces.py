"""Pieces: how much goes at a time, by rows and by bytes; what is small goes together, what is large is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from handfast.flow.block import Block
from handfast.flow.size import content_bytes

T = TypeVar("T")
Measure = tuple[int, int]  # rows, bytes


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a piece may hold; a single row may be larger."""

    rows: int = 1 << 17
    bytes: int = 1 << 25

    def holds(self, rows: int, size: int) -> bool:
        return rows <= self.rows and size <= self.bytes

    def step(self, rows: int, size: int) -> int:
        """How many rows go at a time, if so many take so much and all are alike; at least one."""
        return max(1, min(self.rows, self.bytes * rows // max(1, size)))


LIMIT = Limit()


def together(items: Iterable[T], measure: Callable[[T], Measure], limit: Limit) -> Iterator[list[T]]:
    """The items in their order, as many at a time as the limit holds, and at least one."""
    group: list[T] = []
    rows = size = 0
    for item in items:
        more_rows, more_bytes = measure(item)
        if group and not limit.holds(rows + more_rows, size + more_bytes):
            yield group
            group, rows, size = [], 0, 0
        group.append(item)
        rows, size = rows + more_rows, size + more_bytes
    if group:
        yield group


def gathered(batches: Iterable[pa.RecordBatch], limit: Limit) -> Iterator[pa.RecordBatch]:
    """The rows of batches in pieces; batches without rows are left out."""
    cut = (
        batch.slice(start, stop - start) for batch in batches for start, stop in _spans(batch, 0, batch.num_rows, limit)
    )
    for few in together(cut, _measure_batch, limit):
        yield few[0] if len(few) == 1 else pa.concat_batches(few)


def gathered_blocks(blocks: Iterable[Block], limit: Limit) -> Iterator[Block]:
    """The tuples of blocks in pieces."""
    cut = (
        block.slice(start, stop) if stop - start < len(block) else block
        for block in blocks
        for start, stop in _spans(block.batch, 0, len(block), limit)
    )
    for few in together(cut, lambda block: (len(block), block.size), limit):
        yield Block.concat(few)


def _measure_batch(batch: pa.RecordBatch) -> Measure:
    return batch.num_rows, content_bytes(batch)


def _spans(batch: pa.RecordBatch, start: int, stop: int, limit: Limit) -> Iterator[tuple[int, int]]:
    """Where to cut a batch: in halves, until each of them fits."""
    if start == stop:
        return
    if stop - start == 1 or limit.holds(*_measure_batch(batch.slice(start, stop - start))):
        yield start, stop
        return
    middle = (start + stop) // 2
    yield from _spans(batch, start, middle, limit)
    yield from _spans(batch, middle, stop, limit)
