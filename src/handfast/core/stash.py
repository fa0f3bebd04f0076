"""The stash of [CMJ §III]: matching pairs of two streams' tuples are kept, and tuples of other streams probe them.

It is bounded: a new pair overwrites the oldest. Where one that is overwritten could still match, the stash is not whole
any more, and partners are computed again from both windows until all that was lost has expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.core.probe import Arrival, Members, Prober
from handfast.core.recipe import Recipe
from handfast.core.segment import Segment
from handfast.flow.metrics import StashMetrics
from handfast.kernels.columns import Columns
from handfast.kernels.growing import Growing, GrowingColumns
from handfast.plan import Pair

_SPARE = 4096  # overwritten and expired pairs that may always linger


class Stash:
    """The matching pairs of two streams.

    Args:
        pair: The two streams.
        members: By every other stream, that one of the two from which its tuples' partners are sought.
        size: How many pairs are kept at the most; all that are in their windows, if None.
    """

    def __init__(self, recipe: Recipe, pair: Pair, members: dict[int, int], size: int | None) -> None:
        self.pair = pair
        self._recipe = recipe
        self._members = members
        self._size = size
        self._lost: tuple[int, int] | None = None  # the highest positions of pairs that are missing
        self.hits = self.recomputed = self.overwritten = 0
        self._empty()

    def _empty(self) -> None:
        self.first = 0  # the oldest pair that counts
        self._positions = {stream: Growing(np.dtype(np.int64)) for stream in self.pair}
        self._sides = {member: Side(self._recipe, member, self._members) for member in set(self._members.values())}

    def __len__(self) -> int:
        return len(self._positions[self.pair[0]]) - self.first

    def metrics(self) -> StashMetrics:
        """What it holds and what it was good for."""
        a, b = (self._recipe.plan.join.spec.names[stream] for stream in self.pair)
        return StashMetrics((a, b), len(self), self.hits, self.overwritten, self.recomputed)

    # -- what is kept ----------------------------------------------------------------------------

    def begin(self, stops: Sequence[int], segments: Sequence[Segment]) -> None:
        """Begin with windows that are filled up to some positions: their pairs are missing until they have expired."""
        self._empty()
        a, b = self.pair
        filled = all(segments[stream].first < stops[stream] for stream in self.pair)
        self._lost = (stops[a] - 1, stops[b] - 1) if filled else None

    def is_whole(self, segments: Sequence[Segment]) -> bool:
        """Whether it has every pair that is in the windows."""
        if self._lost is not None:
            expired = (last < segments[stream].first for stream, last in zip(self.pair, self._lost, strict=True))
            if any(expired):
                self._lost = None
        return self._lost is None

    def add(self, arrival: Arrival, members: Members, segments: Sequence[Segment]) -> None:
        """Keep pairs of new tuples of one of the streams with tuples of the other."""
        new, own = arrival.new, members[arrival.new.stream]
        kept = arrival.kept[own]
        places = own if kept.all() else own[kept]
        partner = next(stream for stream in self.pair if stream != new.stream)
        partners = members[partner] if kept.all() else members[partner][kept]
        positions = {new.stream: arrival.positions(places), partner: partners}
        self._append(positions, segments)
        if self._size is not None and len(self) > self._size:
            self._overwrite(len(self) - self._size, segments)
            if self.first > len(self) + _SPARE:
                self._cut(segments)

    def _append(self, positions: Members, segments: Sequence[Segment]) -> None:
        for stream, own in positions.items():
            self._positions[stream].append(own)
        for member, side in self._sides.items():
            side.append(segments[member].columns().take(positions[member]))

    def _overwrite(self, count: int, segments: Sequence[Segment]) -> None:
        """Let the oldest pairs go, and remember up to where the windows have pairs that are missing now."""
        gone = slice(self.first, self.first + count)
        a, b = (self._positions[stream].values[gone] for stream in self.pair)
        live = (a >= segments[self.pair[0]].first) & (b >= segments[self.pair[1]].first)  # type: ignore[operator]
        self.first += count
        lost = int(np.count_nonzero(live))
        if lost:
            before = self._lost or (-1, -1)
            self._lost = max(before[0], int(a[live].max())), max(before[1], int(b[live].max()))
            self.overwritten += lost

    def _cut(self, segments: Sequence[Segment]) -> None:
        """Free what was overwritten: one step may bring any number of pairs."""
        held = {stream: own.values[self.first :] for stream, own in self._positions.items()}
        self._empty()
        self._append(held, segments)  # type: ignore[arg-type]

    def tidy(self, segments: Sequence[Segment]) -> None:
        """Make it anew where it carries too many pairs that have been overwritten or have expired."""
        if len(self._positions[self.pair[0]]) > 2 * self._live(segments) + _SPARE:
            self.moved(segments, segments)

    def _live(self, segments: Sequence[Segment]) -> int:
        a, b = (self._positions[stream].values[self.first :] for stream in self.pair)
        return int(np.count_nonzero((a >= segments[self.pair[0]].first) & (b >= segments[self.pair[1]].first)))  # type: ignore[operator]

    def moved(self, before: Sequence[Segment], after: Sequence[Segment]) -> None:
        """Learn that tuples are at other positions now; pairs that have expired fall out."""
        held = {stream: self._positions[stream].values[self.first :] for stream in self.pair}
        if any(before[stream].is_torn for stream in self.pair):
            self.begin([segment.stop for segment in after], after)
            return
        there = {stream: before[stream].moved(own, after[stream]) for stream, own in held.items()}  # type: ignore[arg-type]
        live: NDArray[np.bool_] = np.logical_and.reduce([own >= 0 for own in there.values()])
        lost = self._lost
        self._empty()
        if lost is not None:
            self._lost = self._moved_bounds(lost, before, after)
        self._append({stream: own[live] for stream, own in there.items()}, after)

    def _moved_bounds(
        self, lost: tuple[int, int], before: Sequence[Segment], after: Sequence[Segment]
    ) -> tuple[int, int] | None:
        """Where the youngest tuples of missing pairs are now; nothing is missing if all of one stream have expired."""
        a, b = (
            before[stream].last_moved(position, after[stream]) for stream, position in zip(self.pair, lost, strict=True)
        )
        return None if a < 0 or b < 0 else (a, b)

    # -- what is found ---------------------------------------------------------------------------

    def matches(self, prober: Prober, arrival: Arrival) -> Iterator[Members]:
        """New tuples of another stream with the pairs that both match, if the stash is whole."""
        if not len(self):
            return
        new = arrival.new
        member = self._members[new.stream]
        other = next(stream for stream in self.pair if stream != member)
        side = self._sides[member]
        for at, entries in prober.pairs(new.stream, member, new.columns, new.keys, side.since(self.first)):
            members = {new.stream: at, **{stream: self._positions[stream].values[entries] for stream in self.pair}}
            yield prober.fitting(new, members, member, other)  # type: ignore[arg-type]


class Side:
    """The tuples of one stream in the pairs of a stash, as a segment has its tuples: a pair's number is a position."""

    def __init__(self, recipe: Recipe, member: int, members: dict[int, int]) -> None:
        pairs = [(min(member, other), max(member, other)) for other, own in members.items() if own == member]
        self.indexes = {pair: index for pair, index in recipe.new_indexes(member).items() if pair in pairs}
        self._columns = GrowingColumns()
        self.first = 0

    def append(self, columns: Columns) -> None:
        """Add the tuples of new pairs."""
        if len(columns):
            self._columns.append(columns)
            for index in self.indexes.values():
                index.insert(index.keys(columns))

    def since(self, first: int) -> Side:
        """The same, with the oldest pair that counts."""
        self.first = first
        for index in self.indexes.values():
            index.expire(first)
        return self

    def columns(self) -> Columns:
        """The columns of every pair so far."""
        return self._columns.all()
