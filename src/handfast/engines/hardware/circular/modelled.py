"""A join on the fast model of a ring: what matches, say the kernels of the other engines; when, says the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.engines.hardware.circular.conditions import RingConditions
from handfast.engines.hardware.model.circular import Entering
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.stashed.conditions import PAIR, A, B, LineConditions, Step, inner, outer
from handfast.engines.hardware.steps import Places
from handfast.flow.block import Block
from handfast.kernels.columns import ColumnReader, Reading
from handfast.kernels.compiler.program import make_program
from handfast.kernels.pairs import TupleKernel
from handfast.kernels.strings import StringTable
from handfast.spec.classify import classify
from handfast.spec.expression import Expr, conjunction

_AT_ONCE = 1 << 20  # candidates that are checked together


def entering(blocks: Sequence[Block], held: Sequence[Places]) -> Entering:
    """The tuples in the order of their rank.

    Args:
        blocks: The stamped tuples of each stream.
        held: By stream: for each stream, how many tuples its window holds at the arrival of each of the own tuples.
    """
    stops = np.concatenate([np.stack(block.seen, axis=1) for block in blocks])
    order = np.argsort(stops.sum(axis=1), kind="stable")
    origins = np.concatenate([np.full(len(block), stream) for stream, block in enumerate(blocks)])
    holding = np.concatenate([own.T for own in held])
    return Entering(origins[order], stops[order], holding[order])


@dataclass(frozen=True, slots=True)
class _Items:
    """What comes to a stage after the same number of hops, in the order of the tuples that they belong to."""

    tuples: Places  # by item: the tuple, by the order in which it enters
    members: dict[int, Places]  # by stream, and item: the place of the member

    def taken(self, rows: Places) -> _Items:
        return _Items(self.tuples[rows], {stream: own[rows] for stream, own in self.members.items()})

    def __len__(self) -> int:
        return len(self.tuples)


Way = Sequence[tuple[int, Sequence[Expr]]]
"""The windows that tuples of a stream come to, one after the other: their streams, and what is checked there."""


def ring_ways(conditions: RingConditions) -> list[Way]:
    """By stream, the way of its tuples round a ring."""
    streams = conditions.streams

    def due(stage: int, hop: int) -> list[Expr]:
        return [check.condition for check in conditions.checks[stage] if hop in check.hops]

    stages = [[(origin + 1 + hop) % streams for hop in range(streams - 1)] for origin in range(streams)]
    return [[(stage, due(stage, hop)) for hop, stage in enumerate(own)] for own in stages]


def line_ways(conditions: LineConditions) -> list[Way]:
    """By stream, the way of its tuples along a line, as if no pair were kept."""
    streams = conditions.streams

    def due(stage: int, step: Step) -> list[Expr]:
        return [check.condition for check in conditions.checks[stage] if step in check.steps]

    ways: list[Way] = []
    for origin in range(streams):
        if origin in PAIR:
            other = 1 - origin
            way = [(other, due(0, Step(origin, frozenset({origin}), frozenset({other}))))]
        else:
            way = [(A, due(0, outer(origin))), (B, due(0, inner(origin)))]
        for stage in range(1, streams - 1):
            if origin != stage + 1:
                before = frozenset({*range(stage + 1), origin})
                way.append((stage + 1, due(stage, Step(origin, before, frozenset({stage + 1})))))
        ways.append(way)
    return ways


class Matches:
    """What scans find.

    Args:
        ways: By stream, the way of its tuples.
        blocks: The stamped tuples of each stream.
        into: What enters.
    """

    def __init__(self, ways: Sequence[Way], blocks: Sequence[Block], into: Entering) -> None:
        self._ways = ways
        self._blocks = blocks
        self._into = into

    def lists(self) -> Lists:
        """For every tuple and every intermediate, what it matches in the window that it comes to."""
        into = self._into
        number = len(into.origins)  # of the next list; those of the tuples themselves come first
        owners: list[Places] = []
        places: list[Places] = []
        further: list[Places] = []
        for origin, way in enumerate(self._ways):
            own = np.flatnonzero(into.origins == origin)
            items, lists = _Items(own, {origin: np.arange(len(own))}), own
            for stream, conditions in way:
                rows, items = self._extended(items, stream, conditions)
                owners.append(lists[rows])
                places.append(items.members[stream])
                lists = number + np.arange(len(items))
                number += len(items)
                further.append(lists)
        owner, place, onward = (np.concatenate(own) for own in (owners, places, further))
        order = np.lexsort((place, owner))
        counts = np.bincount(owner, minlength=number)
        ends = np.cumsum(counts)
        return Lists(
            places=place[order],
            further=onward[order],
            starts=ends - counts,
            ends=ends,
            first=np.arange(len(into.origins)),
            closing=np.empty(0, np.int64),
            opening=np.zeros(len(into.origins), np.int64),
            stride=0,
        )

    def _extended(self, items: _Items, stage: int, conditions: Sequence[Expr]) -> tuple[Places, _Items]:
        """What a window makes of items: for each new one the item that it comes from, and the new ones themselves."""
        check = _Check(conditions, self._blocks)
        equality = check.equality(stage)
        rows, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for begin, end, starts, counts, among in self._ranges(items, stage, equality):
            at = np.repeat(np.arange(begin, end), counts)
            found = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(len(at))
            if among is not None:
                found = among[found]
            fitting = check.holds({**items.taken(at).members, stage: found})
            rows.append(at[fitting])
            places.append(found[fitting])
        row, place = np.concatenate(rows), np.concatenate(places)
        extended = items.taken(row)
        extended.members[stage] = place
        return row, extended

    def _ranges(
        self, items: _Items, stage: int, equality: tuple[int, Places, Places] | None
    ) -> Iterator[tuple[int, int, Places, Places, Places | None]]:
        """Runs of items, and for each of these the candidates: where they start and how many there are, among the
        places of the window's stream, or in a list of these places.
        """
        stops, held = (own[items.tuples, stage] for own in (self._into.stops, self._into.held))
        starts, counts, among = stops - held, held, None
        if equality is not None:  # only tuples with an equal value, by value and place
            other, theirs, own = equality
            among = np.lexsort((np.arange(len(own)), own))
            width = len(own) + 1
            by_value, value = own[among] * width + among, theirs[items.members[other]] * width
            starts = np.searchsorted(by_value, value + stops - held)
            counts = np.searchsorted(by_value, value + stops) - starts
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(items):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
            yield begin, end, starts[begin:end], counts[begin:end], among
            begin = end


class _Check:
    """Conditions, and the tuples that they are checked on."""

    def __init__(self, conditions: Sequence[Expr], blocks: Sequence[Block]) -> None:
        equalities = [one for part in conditions for one in classify(part).equalities]
        self._equality = equalities[0] if equalities else None
        keys = list(self._equality.sides) if self._equality is not None else []
        self._program = make_program(conjunction(list(conditions)), keys, len(blocks))
        self._reader = ColumnReader(Reading(self._program, ordered_strings=False), StringTable())
        self._columns = [self._reader.read(stream, block) for stream, block in enumerate(blocks)]
        self._kernel = TupleKernel(self._program) if conditions else None

    def holds(self, members: dict[int, Places]) -> NDArray[np.bool_]:
        """For which rows of members, by the places of tuples, the conditions are all true."""
        count = len(next(iter(members.values())))
        if self._kernel is None or not count:
            return np.ones(count, np.bool_)
        none = np.zeros(count, np.int64)  # of a stream that no condition reads
        runs = [own.take(members.get(stream, none)) for stream, own in enumerate(self._columns)]
        ready = [self._reader.for_pairs(stream, run) for stream, run in enumerate(runs)]
        return self._kernel.holds(ready, self._reader.literals(self._kernel.literals))

    def equality(self, stage: int) -> tuple[int, Places, Places] | None:
        """A stream and numbers for its tuples and for those of the stage: equal where a condition wants them equal."""
        if self._equality is None or stage not in self._equality.streams:
            return None
        own = self._equality.streams.index(stage)
        streams, sides = self._equality.streams, self._equality.sides
        values = [
            self._columns[stream].values[self._program.position(side)]
            for stream, side in zip(streams, sides, strict=True)
        ]
        if any(each.ndim != 1 for each in values):
            return None
        numbers = np.unique(np.concatenate(values), return_inverse=True)[1].reshape(-1)
        ours = numbers[: len(values[0])], numbers[len(values[0]) :]
        return streams[1 - own], ours[1 - own], ours[own]
