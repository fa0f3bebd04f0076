"""Probing: the partners of new tuples, sought in the windows of all other streams in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from handfast.core.recipe import Pairing, Recipe
from handfast.core.segment import Marks, Segment
from handfast.flow.block import Block
from handfast.kernels.columns import ColumnReader, Columns
from handfast.kernels.course import Pairs, Positions, Ranges
from handfast.kernels.index.protocol import Keys
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


class Prober:
    """Finds the matches of new tuples with those that are stored."""

    def __init__(self, recipe: Recipe, reader: ColumnReader, segments: list[Segment]) -> None:
        self._recipe = recipe
        self._reader = reader
        self._segments = segments

    def matches(self, new: NewTuples) -> Iterator[Members]:
        """All matches that the new tuples bring, piece by piece."""
        order = self._recipe.probe_order[new.stream]
        if all(self._segments[to].live for _, to in order):
            yield from self._extend(new, {}, order)

    def _extend(self, new: NewTuples, partial: Members, order: list[tuple[int, int]]) -> Iterator[Members]:
        """Partial matches extended by a partner from each of the windows still to be probed."""
        if not order:
            yield self._whole(new, partial)
            return
        (start, to), *later = order
        if not partial:
            for at, found in self._pairs(start, to, new.columns, new.keys):
                if len(at):
                    yield from self._extend(new, {start: at, to: found}, later)
            return
        distinct, inverse = np.unique(partial[start], return_inverse=True)
        columns = self._columns(new, start).take(distinct)
        for at, found in self._pairs(start, to, columns, self._keys(start, to, columns)):
            for rows, partners in _fan_out(inverse, at, found):
                wider = {stream: positions[rows] for stream, positions in partial.items()}
                wider[to] = partners
                fitting = self._fitting(new, wider, start, to)
                if len(fitting[to]):
                    yield from self._extend(new, fitting, later)

    def _fitting(self, new: NewTuples, members: Members, start: int, to: int) -> Members:
        """The partial matches whose member of stream `to` fits all others too, not only the one it was found from."""
        for other in [stream for stream in members if stream not in (start, to)]:
            pairing = self._recipe.pairing(other, to)
            runs = [self._columns(new, stream).take(members[stream]) for stream in pairing.streams]
            every = np.arange(len(members[to]))
            rows, _ = self._check(pairing, runs[0], runs[1], (every, every.copy()))
            members = {stream: positions[rows] for stream, positions in members.items()}
        return members

    def _whole(self, new: NewTuples, members: Members) -> Members:
        """The matches that also satisfy the conditions over three streams and more."""
        rest = self._recipe.rest
        if rest is None:
            return members
        runs = [self._columns(new, stream).take(members[stream]) for stream in sorted(members)]
        ready = [self._reader.for_pairs(stream, run) for stream, run in enumerate(runs)]
        held = rest.holds(ready, self._reader.literals(rest.literals))
        return {stream: positions[held] for stream, positions in members.items()}

    def _columns(self, new: NewTuples, stream: int) -> Columns:
        return new.columns if stream == new.stream else self._segments[stream].columns()

    def _keys(self, start: int, to: int, columns: Columns) -> dict[Pair, Keys]:
        pair = self._recipe.pairing(start, to).streams
        index = self._segments[start].indexes.get(pair)
        return {pair: index.keys(columns)} if index is not None else {}

    # -- two streams -----------------------------------------------------------------------------

    def _pairs(self, start: int, to: int, run: Columns, keys: dict[Pair, Keys]) -> Iterator[Pairs]:
        """The pairs that match: places in a run of one stream's tuples, positions of stored tuples of the other."""
        pairing, stored = self._recipe.pairing(start, to), self._segments[to]
        index = stored.indexes.get(pairing.streams)
        if index is None:
            yield from self._scan(pairing, start, run, stored)
            return
        every = stored.columns()
        ranges = pairing.kernels.reach(pairing.side(start), pairing.view(run), pairing.view(every), stored.first)
        for candidates in index.candidates(keys[pairing.streams], ranges):
            yield self._checked(pairing, start, run, every, candidates)

    def _scan(self, pairing: Pairing, start: int, run: Columns, stored: Segment) -> Iterator[Pairs]:
        r, s = self._ready(pairing, *_ordered(pairing, start, run, stored.columns()))
        oldest = _ordered(pairing, start, 0, stored.first)
        for pair in pairing.kernels.scan(r, s, self._reader.literals(pairing.kernels.literals), oldest):
            yield _ordered(pairing, start, *pair)

    def _checked(self, pairing: Pairing, start: int, run: Columns, every: Columns, pair: Pairs) -> Pairs:
        r, s = _ordered(pairing, start, run, every)
        return _ordered(pairing, start, *self._check(pairing, r, s, _ordered(pairing, start, *pair)))

    def _check(self, pairing: Pairing, r: Columns, s: Columns, candidates: Pairs) -> Pairs:
        literals = self._reader.literals(pairing.kernels.literals)
        return pairing.kernels.check(*self._ready(pairing, r, s), literals, candidates)

    def _ready(self, pairing: Pairing, r: Columns, s: Columns) -> tuple[Columns, Columns]:
        lower, upper = pairing.streams
        return pairing.view(self._reader.for_pairs(lower, r)), pairing.view(self._reader.for_pairs(upper, s))


def _ordered(pairing: Pairing, start: int, own: T, other: T) -> tuple[T, T]:
    """One thing of stream `start` and one of its partner, put in the order of the streams; or put back."""
    return (own, other) if pairing.side(start) == 0 else (other, own)


def _fan_out(inverse: Positions, at: Positions, found: Positions) -> Iterator[Pairs]:
    """For pairs of a distinct tuple and a partner: every partial match with this tuple, paired with the partner."""
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    for k, places in Ranges(starts[at], ends[at], True).every_pair():
        yield order[places], found[k]
