"""Bounded inputs: a core run once from start to end in order, its state as small as the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.join_core import Finder, JoinCore
from handfast.flow.block import Block
from handfast.flow.gather import gather, goes_up
from handfast.flow.pieces import Limit
from handfast.flow.time import END, NEVER, Horizon
from handfast.plan import Plan
from handfast.spec.join import ARRIVAL

_SLICE = Limit(rows=1 << 16, bytes=1 << 26)  # what a core is fed at a time, of all streams together


def run_bounded(
    plan: Plan, pieces: Sequence[Sequence[Block]], limit: Limit = _SLICE, finder: Finder | None = None
) -> Iterator[pa.RecordBatch]:
    """The matches that one core finds in all its blocks, which are given by stream; or that a finder finds for it."""
    core = JoinCore(plan, finder)
    for arrivals, horizon in slices(plan, pieces, limit):
        yield from core.step(arrivals, horizon)


def slices(
    plan: Plan, pieces: Sequence[Sequence[Block]], limit: Limit = _SLICE
) -> Iterator[tuple[list[Block | None], Horizon]]:
    """Slices of all streams in order, each with the horizon below which no tuple of a later slice falls."""
    if any(not own for own in pieces) and not plan.join.gives_unmatched:
        return
    by_arrival = plan.join.spec.order == ARRIVAL
    for arrivals, until in sorted_slices(pieces, limit):
        # in rank order no later tuple has seen less than one of these
        seen = [block.seen for block in arrivals if block is not None and block.seen]
        counts = tuple(max(int(own[k].max()) for own in seen) if seen else 0 for k in range(len(pieces)))
        yield arrivals, Horizon(NEVER if by_arrival and until != END else until, counts)


def sorted_slices(pieces: Sequence[Sequence[Block]], limit: Limit) -> Iterator[tuple[list[Block | None], int]]:
    """All tuples in one order, cut into slices of all streams; with each slice, the time at which the next one begins.

    There is at least one slice. Nothing comes after the last: its time is `END`.
    """
    streams = [_Ordered(own) for own in pieces]
    total = sum(len(stream.places) for stream in streams)
    step = limit.step(total, sum(block.size for own in pieces for block in own))
    starts = [0] * len(streams)
    for start in range(0, max(1, total), step):
        stops = _first(streams, min(start + step, total))
        arrivals = [
            stream.slice(first, stop) if stop > first else None
            for stream, first, stop in zip(streams, starts, stops, strict=True)
        ]
        starts = stops
        following = [(int(own.places[at]), k) for k, (own, at) in _numbered(streams, stops) if at < len(own.places)]
        yield arrivals, int(streams[min(following)[1]].times[stops[min(following)[1]]]) if following else END


def _first(streams: Sequence[_Ordered], count: int) -> list[int]:
    """How many of each stream's tuples are among the first so many of all; of equal places the first stream's."""
    low = min((int(own.places[0]) for own in streams if len(own.places)), default=0)
    high = max((int(own.places[-1]) for own in streams if len(own.places)), default=0)
    while low < high:  # the lowest place up to which there are so many
        middle = (low + high) // 2
        if sum(int(np.searchsorted(own.places, middle, side="right")) for own in streams) >= count:
            high = middle
        else:
            low = middle + 1
    stops = [int(np.searchsorted(own.places, low)) for own in streams]
    for k, (own, at) in _numbered(streams, stops):
        equal = int(np.searchsorted(own.places, low, side="right")) - at
        stops[k] += min(equal, count - sum(stops))
    return stops


def _numbered(streams: Sequence[_Ordered], stops: Sequence[int]) -> list[tuple[int, tuple[_Ordered, int]]]:
    return list(enumerate(zip(streams, stops, strict=True)))


class _Ordered:
    """The tuples of one stream, sorted by rank, or by time where they are not stamped; rows are not copied yet."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._whole = blocks[0] if len(blocks) == 1 and goes_up(_places(blocks[0])) else None
        if self._whole is not None:
            self.places, self.times = _places(self._whole), self._whole.times
            return
        self._batches = [block.batch for block in blocks]
        counts = [len(block) for block in blocks]
        owners, rows = np.repeat(np.arange(len(blocks)), counts), _joined([np.arange(count) for count in counts])
        times = _joined([block.times for block in blocks])
        flags = _joined([block.flags for block in blocks])
        seen = [_joined(list(own)) for own in zip(*(block.seen for block in blocks), strict=True)]
        places = np.sum(seen, axis=0) if seen else times
        order = slice(None) if goes_up(places) else np.argsort(places, kind="stable")
        self.places, self.times, self._flags = places[order], times[order], flags[order].astype(np.uint8)
        self._owners, self._rows = owners[order], rows[order]
        self._seen = tuple(own[order] for own in seen)

    def slice(self, start: int, stop: int) -> Block:
        """The tuples from `start` up to `stop`."""
        if self._whole is not None:
            return self._whole.slice(start, stop)
        part = slice(start, stop)
        batch = gather(self._batches, self._owners[part], self._rows[part])
        return Block(batch, self.times[part], self._flags[part], tuple(own[part] for own in self._seen))


def _places(block: Block) -> NDArray[np.int64]:
    """What tuples are sorted by: their rank, or their time where they are not stamped."""
    places: NDArray[np.int64] = np.sum(block.seen, axis=0) if block.seen else block.times
    return places


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
