"""Probing: the partners of new tuples, sought in the windows of all other streams in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from handfast.core.rates import Rates
from handfast.core.recipe import Pairing, Recipe
from handfast.core.segment import Marks, Segment
from handfast.core.workload import Step
from handfast.flow.block import Block
from handfast.kernels.columns import ColumnReader, Columns
from handfast.kernels.course import Pairs, Positions
from handfast.kernels.index.protocol import Index, Keys
from handfast.kernels.pairs import PairKernels
from handfast.kernels.partial import distinct, fan_out, left_over
from handfast.plan import Pair

T = TypeVar("T")
Members = dict[int, Positions]  # by stream, where the tuples of each match stand: matches side by side


@dataclass(slots=True)
class NewTuples:
    """New tuples of one stream at a core, read and ready to be joined and stored."""

    stream: int
    block: Block
    columns: Columns
    keys: dict[Pair, Keys]
    marks: Marks


@dataclass(frozen=True, slots=True)
class Arrival:
    """New tuples that have been stored.

    Attributes:
        stops: By stream, the position behind the last tuple that was stored before them.
        kept: Which of them are stored; the others can match nothing that comes later, or do so at another core.
    """

    new: NewTuples
    stops: tuple[int, ...]
    kept: NDArray[np.bool_]

    def positions(self, places: Positions) -> Positions:
        """Where those of the new tuples are stored that are at these places; all of them must be."""
        start = self.stops[self.new.stream]
        if self.kept.all():
            return start + places
        positions: Positions = start - 1 + np.cumsum(self.kept)[places]
        return positions


class Stored(Protocol):
    """Tuples among which partners are sought: a segment, or one side of the pairs in a stash."""

    @property
    def indexes(self) -> Mapping[Pair, Index[Any]]:
        """Over its tuples, by pair of streams."""
        ...

    @property
    def first(self) -> int:
        """The position of the oldest tuple that still counts."""
        ...

    def columns(self) -> Columns:
        """The columns of every position so far."""
        ...


class Prober:
    """Finds the matches of new tuples with those that are stored, and counts what it finds in `rates`."""

    def __init__(self, recipe: Recipe, reader: ColumnReader, segments: list[Segment], rates: Rates) -> None:
        self._recipe = recipe
        self._reader = reader
        self.segments = segments
        self.rates = rates

    def matches(self, new: NewTuples, order: Sequence[Step]) -> Iterator[Members]:
        """All matches that the new tuples bring, piece by piece; partners are sought in the given order."""
        if all(self.segments[to].live for _, to in order):
            yield from self._extend(new, {}, order)

    def _extend(self, new: NewTuples, partial: Members, order: Sequence[Step]) -> Iterator[Members]:
        """Partial matches extended by a partner from each of the windows still to be probed."""
        if not order:
            yield self.whole(new, partial)
            return
        (start, to), *later = order
        for wider in self.extended(new, partial, start, to):
            yield from self._extend(new, wider, later)

    def extended(
        self, new: NewTuples, partial: Members, start: int, to: int, stop: int | None = None
    ) -> Iterator[Members]:
        """Partial matches with a partner each from one more window, `to`, sought from their member of stream `start`.

        With `stop`, only the tuples stored before this position are partners. Without any members so far, the partial
        matches are the new tuples themselves.
        """
        if not partial:
            for at, found in self._sought(start, to, new.columns, new.keys, stop):
                if len(at):
                    yield {start: at, to: found}
            return
        different, which = distinct(partial[start])
        columns = self._columns(new, start).take(different)
        for at, found in self._sought(start, to, columns, self._keys(start, to, columns), stop):
            for rows, partners in fan_out(which, at, found):
                wider = {stream: positions[rows] for stream, positions in partial.items()}
                wider[to] = partners
                fitting = self.fitting(new, wider, start, to)
                if len(fitting[to]):
                    yield fitting

    def fitting(self, new: NewTuples, members: Members, start: int, to: int) -> Members:
        """The partial matches whose member of stream `to` fits all others too, not only the one it was found from."""
        for other in [stream for stream in members if stream not in (start, to)]:
            pairing = self._recipe.pairing(other, to)
            lower, upper = pairing.streams
            doubtful = self._doubtful(new, pairing, members)
            if doubtful is not None and not len(doubtful):
                continue
            r, s = self._columns(new, lower), self._columns(new, upper)
            pairs = members[lower], members[upper]
            if doubtful is not None:
                pairs = pairs[0][doubtful], pairs[1][doubtful]
            if not self._reader.reads_in_place:  # what is read is made of the columns, so only of those of members
                r, s = r.take(pairs[0]), s.take(pairs[1])
                pairs = np.arange(len(pairs[0])), np.arange(len(pairs[0]))
            kept = self._check(pairing, pairing.kernels, r, s, (pairs[0].copy(), pairs[1].copy()))
            if len(kept[0]) < len(pairs[0]):
                held = left_over(pairs, kept)
                if doubtful is not None:
                    every = np.ones(len(members[to]), np.bool_)
                    every[doubtful] = held
                    held = every
                rows = np.flatnonzero(held)
                members = {stream: positions[rows] for stream, positions in members.items()}
        return members

    def _doubtful(self, new: NewTuples, pairing: Pairing, members: Members) -> Positions | None:
        """Which partial matches may have two members that do not fit each other; None if all may.

        Where members share a key, only the windows are left. Of two members that came no later than the new tuple and
        are in their windows when it comes, each is in its window when the other comes.
        """
        known = self._recipe.shares_key and pairing.settled and not pairing.counted
        if not known or new.stream in pairing.streams:
            return None
        first = new.columns.times.min(keepdims=True)
        later = np.zeros(len(members[new.stream]), np.bool_)
        for stream in pairing.streams:
            courses = self.segments[stream].columns().courses
            assert courses is not None, "a segment knows how its stamps run"
            later |= members[stream] >= courses.times.starts(first, 0, 0, right=True)
        return np.flatnonzero(later)

    def whole(self, new: NewTuples, members: Members) -> Members:
        """The matches that also satisfy the conditions over three streams and more."""
        rest = self._recipe.rest
        if rest is None:
            return members
        runs = [self._columns(new, stream).take(members[stream]) for stream in sorted(members)]
        ready = [self._reader.for_pairs(stream, run) for stream, run in enumerate(runs)]
        held = rest.holds(ready, self._reader.literals(rest.literals))
        return {stream: positions[held] for stream, positions in members.items()}

    def _columns(self, new: NewTuples, stream: int) -> Columns:
        return new.columns if stream == new.stream else self.segments[stream].columns()

    def _keys(self, start: int, to: int, columns: Columns) -> dict[Pair, Keys]:
        pair = self._recipe.pairing(start, to).streams
        index = self.segments[start].indexes.get(pair)
        return {pair: index.keys(columns)} if index is not None else {}

    # -- two streams -----------------------------------------------------------------------------

    def _sought(self, start: int, to: int, run: Columns, keys: dict[Pair, Keys], stop: int | None) -> Iterator[Pairs]:
        """The pairs that match: places in a run of one stream's tuples, positions of stored tuples of the other."""
        stored, found = self.segments[to], 0
        live = (stored.stop if stop is None else stop) - stored.first
        if live <= 0:
            return
        for pairs in self.pairs(start, to, run, keys, stored, stop):
            found += len(pairs[0])
            yield pairs
        self.rates.tell(start, to, len(run), live, found)

    def pairs(
        self, start: int, to: int, run: Columns, keys: dict[Pair, Keys], stored: Stored, stop: int | None = None
    ) -> Iterator[Pairs]:
        """The pairs that match: places in a run of one stream's tuples, positions among stored ones of the other."""
        pairing = self._recipe.pairing(start, to)
        index = stored.indexes.get(pairing.streams)
        every = stored.columns() if stop is None else stored.columns().before(stop)
        if index is None:
            yield from self._scan(pairing, start, run, every, stored.first)
            return
        ranges = pairing.kernels.reach(pairing.side(start), pairing.view(run), pairing.view(every), stored.first)
        candidates = index.candidates(keys[pairing.streams], ranges)
        if pairing.settled and ranges.exact:
            yield from candidates
        else:
            for some in candidates:
                yield self._checked(pairing, pairing.left, start, run, every, some)
        for some in index.unplaced(keys[pairing.streams], ranges):
            yield self._checked(pairing, pairing.kernels, start, run, every, some)

    def _scan(self, pairing: Pairing, start: int, run: Columns, every: Columns, first: int) -> Iterator[Pairs]:
        r, s = self._ready(pairing, *_ordered(pairing, start, run, every))
        oldest = _ordered(pairing, start, 0, first)
        for pair in pairing.kernels.scan(r, s, self._reader.literals(pairing.kernels.literals), oldest):
            yield _ordered(pairing, start, *pair)

    def _checked(
        self, pairing: Pairing, kernels: PairKernels, start: int, run: Columns, every: Columns, pair: Pairs
    ) -> Pairs:
        r, s = _ordered(pairing, start, run, every)
        candidates = _ordered(pairing, start, *pair)
        return _ordered(pairing, start, *self._check(pairing, kernels, r, s, candidates))

    def _check(self, pairing: Pairing, kernels: PairKernels, r: Columns, s: Columns, candidates: Pairs) -> Pairs:
        return kernels.check(*self._ready(pairing, r, s), self._reader.literals(kernels.literals), candidates)

    def _ready(self, pairing: Pairing, r: Columns, s: Columns) -> tuple[Columns, Columns]:
        lower, upper = pairing.streams
        return pairing.view(self._reader.for_pairs(lower, r)), pairing.view(self._reader.for_pairs(upper, s))


def _ordered(pairing: Pairing, start: int, own: T, other: T) -> tuple[T, T]:
    """One thing of stream `start` and one of its partner, put in the order of the streams; or put back."""
    return (own, other) if pairing.side(start) == 0 else (other, own)
