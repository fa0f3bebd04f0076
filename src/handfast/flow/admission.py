"""Admission: rows without a valid time are rejected, rows below the watermark are late, all others are admitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.flow.block import HOME, Block
from handfast.flow.same import same
from handfast.flow.time import NEVER, LastHeard, Progress, micros
from handfast.spec.join import ARRIVAL, BoundJoin


def split(join: BoundJoin, stream: int, batch: pa.RecordBatch) -> tuple[Block | None, pa.RecordBatch | None]:
    """A stream's rows with a valid time, as a block, and the rejected ones, which have none."""
    asked = join.spec.streams[stream]
    column = batch.column(join.times[stream])
    times = micros(column)
    if not len(times):
        return None, None
    block = _at_home(batch, times)
    invalid = _invalid(block, column, asked.valid_from, asked.valid_to)
    if invalid is None:
        return block, None
    rejected = batch.take(pa.array(np.flatnonzero(invalid)))
    rows = np.flatnonzero(~invalid)
    return _at_home(batch.take(pa.array(rows)), times[rows]) if len(rows) else None, rejected


def _invalid(block: Block, column: pa.Array, valid_from: int, valid_to: int) -> NDArray[np.bool_] | None:
    """Which rows are rejected, whose times are in this column: NULL, or outside of what is valid; None if none is."""
    # asked of the block, for it is asked again
    if not column.null_count and block.least_time >= valid_from and block.most_time <= valid_to:
        return None
    invalid: NDArray[np.bool_] = (block.times < valid_from) | (block.times > valid_to)
    if column.null_count:
        invalid |= column.is_null().to_numpy(zero_copy_only=False)
    return invalid


def _at_home(batch: pa.RecordBatch, times: NDArray[np.int64]) -> Block:
    """Rows with these times as a block."""
    return Block(batch, times, same(np.uint8(HOME), len(times)))


def progress_of(blocks: Sequence[Block | None]) -> Progress:
    """The highest time of each stream in these blocks, one for each stream."""
    return Progress(tuple(block.most_time if block is not None else NEVER for block in blocks))


class Admission:
    """Tells late rows from those in time: late are those below the watermark as it was before their batch."""

    def __init__(self, join: BoundJoin, progress: Progress | None = None, last_heard: LastHeard | None = None) -> None:
        self._lateness = [stream.lateness or 0 for stream in join.spec.streams]
        self._by_arrival = join.spec.order == ARRIVAL
        self._timeouts = [stream.idle_timeout for stream in join.spec.streams]
        self._times_out = any(timeout is not None for timeout in self._timeouts)
        self.progress = progress if progress is not None else Progress.start(len(self._lateness))
        self.last_heard = last_heard

    @property
    def watermark(self) -> int:
        if self._by_arrival:  # a place is final at once, and nothing is late
            return NEVER
        if self.last_heard is not None:
            return self.last_heard.watermark
        return self.progress.watermark(self._lateness)

    def admit(
        self, blocks: Sequence[Block | None], progress: Progress, now: int
    ) -> tuple[list[Block | None], list[Block | None]]:
        """Part the blocks of a batch into tuples in time and late ones, block by block; then move the watermark.

        Args:
            blocks: The tuples of the batch.
            progress: The highest time of each stream in the batch.
            now: The batch's processing time in microseconds, which `idle_timeout` is measured by.
        """
        watermark = self.watermark
        self.progress = self.progress.advanced(progress)
        if self._times_out:
            self.last_heard = self._heard(progress, now)
        parted = [_parted(block, watermark) if block is not None else (None, None) for block in blocks]
        return [in_time for in_time, _ in parted], [late for _, late in parted]

    def _heard(self, sent: Progress, now: int) -> LastHeard:
        """When each stream last sent something, and the watermark of those that are not idle."""
        before = self.last_heard or LastHeard((now,) * len(self._lateness), NEVER)
        when = tuple(then if high == NEVER else now for then, high in zip(before.when, sent.highest, strict=True))
        awake = [
            stream for stream, timeout in enumerate(self._timeouts) if timeout is None or now - when[stream] < timeout
        ]
        waited_for = Progress(tuple(self.progress.highest[stream] for stream in awake))
        reached = waited_for.watermark([self._lateness[stream] for stream in awake]) if awake else NEVER
        return LastHeard(when, max(before.watermark, reached))


def _parted(block: Block, watermark: int) -> tuple[Block | None, Block | None]:
    """The tuples in time, and the late ones."""
    if block.least_time >= watermark:
        return block, None
    return _only(block, block.times >= watermark), _only(block, block.times < watermark)


def _only(block: Block, rows: NDArray[np.bool_]) -> Block | None:
    return block.take(rows) if rows.any() else None
