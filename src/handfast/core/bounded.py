"""Bounded inputs: a core run once from start to end in order, its state as small as the windows.

Where all tuples are known before the first one is joined, one of two streams need not be stored: it is enough that
each of its tuples meets all partners in the other, those that come after it as well.
"""

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
from handfast.spec.window import CountWindow, Window

_SLICE = Limit(rows=1 << 16, bytes=1 << 26)  # what a core is fed at a time, of all streams together
_AHEAD = Limit(rows=1 << 21, bytes=1 << 28)  # what is stored at a time: an index over more tuples is the better one


def run_bounded(
    plan: Plan, pieces: Sequence[Sequence[Block]], limit: Limit = _SLICE, finder: Finder | None = None
) -> Iterator[pa.RecordBatch]:
    """The matches that one core finds in all its blocks, which are given by stream; or that a finder finds for it."""
    core = JoinCore(plan, finder)
    spec = plan.join.spec
    if finder is None and len(pieces) == 2 and spec.how == "inner" and not spec.in_order:
        yield from _probed(core, [_Ordered(own) for own in pieces], limit)
        return
    for arrivals, horizon in slices(plan, pieces, limit):
        yield from core.step(arrivals, horizon)


def _probed(core: JoinCore, streams: Sequence[_Ordered], limit: Limit) -> Iterator[pa.RecordBatch]:
    """The matches of two streams of which only one is stored: that of fewer tuples, as far ahead as the other needs."""
    spec = core.plan.join.spec
    stored = int(len(streams[1]) <= len(streams[0]))
    probing = 1 - stored
    own, other = streams[probing], streams[stored]
    if not len(other):
        return
    step, piece = limit.step(len(own), own.size), _AHEAD.step(len(other), other.size)
    windows = [stream.window for stream in spec.streams]
    spans = [(start, min(start + step, len(own))) for start in range(0, len(own), step)]
    # of the stored stream, what each of these spans can have as partners
    firsts = [other.first_held(windows[stored], stored, own.stamp(start)) for start, _ in spans]
    needs = [other.last_holding(windows[probing], probing, own.stamp(stop - 1)) for _, stop in spans]
    core.reserve(stored, max((need - first for first, need in zip(firsts, needs, strict=True)), default=0))
    done = 0  # what is stored, or was over before it was needed
    for (start, stop), first, need in zip(spans, firsts, needs, strict=True):
        for begin in range(max(done, first), need, piece):
            core.store(stored, other.slice(begin, min(need, begin + piece)))
        done = max(done, need)
        yield from core.probe(probing, own.slice(start, stop))
        core.expire(own.horizon(stop, timed=spec.order != ARRIVAL))


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
        self.size = sum(block.size for block in blocks)  # bytes
        self._whole = blocks[0] if len(blocks) == 1 and goes_up(_places(blocks[0])) else None
        if self._whole is not None:
            self.places, self.times, self._seen = _places(self._whole), self._whole.times, self._whole.seen
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

    def __len__(self) -> int:
        return len(self.places)

    def stamp(self, at: int) -> Horizon:
        """The stamp of one tuple: none after it has a lower one."""
        return Horizon(int(self.times[at]), tuple(int(own[at]) for own in self._seen))

    def horizon(self, at: int, timed: bool) -> Horizon:
        """What no tuple from this place on lies below; where they are not in the order of their times, all may."""
        if at == len(self):
            return Horizon(END, self.stamp(at - 1).counts)
        return Horizon(int(self.times[at]) if timed else NEVER, self.stamp(at).counts)

    def first_held(self, window: Window, stream: int, at: Horizon) -> int:
        """The first of these tuples, of stream number `stream`, that its window can hold when a stamp comes."""
        if isinstance(window, CountWindow):
            return int(np.searchsorted(self._seen[stream], at.counts[stream] - window.rows, side="left"))
        limit = at.time - window.length  # as Python counts: it may be below every int64, or above
        return int(np.searchsorted(self.times, limit, side="right")) if limit >= NEVER else 0

    def last_holding(self, window: Window, stream: int, at: Horizon) -> int:
        """Behind the last of these tuples at whose arrival the window of stream number `stream` can hold a stamp."""
        if isinstance(window, CountWindow):
            return int(np.searchsorted(self._seen[stream], at.counts[stream] + window.rows, side="right"))
        limit = at.time + window.length
        return int(np.searchsorted(self.times, limit, side="left")) if limit <= END else len(self)

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
