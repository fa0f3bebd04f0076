"""The merger: the matches of all cores of a chain as one stream, in order where that is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import perf_counter

import pyarrow as pa

from handfast.flow.order import RANK, by_rank

Found = tuple[float, pa.RecordBatch]  # when, and what


class Merger:
    """One queue for each core, which alone writes to it, and the driver that reads them all.

    In order, a match is held back until none of a lower rank can still be found: what has passed the whole chain, from
    both ends, is the punctuation that says so.
    """

    def __init__(self, cores: int, *, in_order: bool) -> None:
        self._queues: list[deque[Found]] = [deque() for _ in range(cores)]
        self._in_order = in_order
        self._waiting: list[Found] = []
        self.held = 0.0  # for how long, at most, a match was held back, in seconds

    def put(self, core: int, batch: pa.RecordBatch) -> None:
        """Take in what a core has found."""
        self._queues[core].append((perf_counter(), batch))

    def collect(self) -> list[Found]:
        """Take what the cores have found so far out of their queues."""
        return [own.popleft() for own in self._queues for _ in range(len(own))]

    def give(self, found: list[Found], below: float) -> Iterator[pa.RecordBatch]:
        """What can be given of these matches and of those that waited; in order, the ones below a rank."""
        if not self._in_order:
            yield from (batch for _, batch in found)
            return
        now, ready, waiting = perf_counter(), [], []
        for when, batch in [*self._waiting, *found]:
            is_below = batch.column(RANK).to_numpy() < below
            if is_below.any():
                ready.append(batch.filter(pa.array(is_below)))
                self.held = max(self.held, now - when)
            if not is_below.all():
                waiting.append((when, batch.filter(pa.array(~is_below))))
        self._waiting = waiting
        yield from by_rank(ready)
