"""The door: rows without a usable time are rejected, rows below the watermark are late; what is admitted joins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from handfast.flow.batch import admit_times
from handfast.flow.block import HOME, Block
from handfast.flow.time import NEVER, Progress
from handfast.spec.join import BoundJoin


def take_in(batch: pa.RecordBatch, time: str) -> Block | None:
    """The rows that have a usable time, as a block."""
    times, refused = admit_times(batch.column(time))
    if refused.any():
        rows = np.flatnonzero(~refused)
        batch, times = batch.take(pa.array(rows)), times[rows]
    if not len(times):
        return None
    return Block(batch, times, np.full(len(times), HOME, np.uint8))


def progress_of(blocks: Sequence[Block | None]) -> Progress:
    """How far each stream has come with these blocks."""
    return Progress(tuple(block.most_time if block is not None else NEVER for block in blocks))


class Admission:
    """Tells late rows from those in time, by the watermark that stood before their batch."""

    def __init__(self, join: BoundJoin, progress: Progress | None = None) -> None:
        self._lateness = [stream.lateness or 0 for stream in join.spec.streams]
        self.progress = progress if progress is not None else Progress.start(len(self._lateness))

    @property
    def watermark(self) -> int:
        return self.progress.watermark(self._lateness)

    def admit(self, blocks: Sequence[Block | None], progress: Progress) -> list[Block | None]:
        """The rows of a batch that are in time; afterwards the streams have come as far as `progress` says."""
        watermark = self.watermark
        admitted: list[Block | None] = []
        for block in blocks:
            kept = block.take(block.times >= watermark) if block is not None else None
            admitted.append(kept if kept is not None and len(kept) else None)
        self.progress = self.progress.advanced(progress)
        return admitted
