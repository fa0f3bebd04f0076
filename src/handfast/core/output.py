"""What a core gives: matches, rows that match something, rows that match nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.probe import Members, NewTuples
from handfast.core.segment import Segment
from handfast.core.span import window_span
from handfast.flow.block import Block, Seen
from handfast.flow.time import Horizon
from handfast.kernels.course import Positions
from handfast.kernels.taking import Blocks
from handfast.plan import Plan
from handfast.spec.join import ARRIVAL
from handfast.spec.select import Field

_ROWS = 1 << 16  # rows in one batch of output
_BYTES = 1 << 26  # and what they take at the most
_SOME = 1 << 13  # rows for which Arrow's call takes longer than what it does

Numbers = NDArray[np.int64]
Columns = dict[int, pa.Array]  # by place


class Output:
    """Turns matches into rows of the result, and marks the preserved tuples that have matched as settled.

    The rows come in blocks with the time of their `at`; where the result is in order, also with the `seen` of it.
    """

    def __init__(self, plan: Plan, segments: list[Segment]) -> None:
        self._plan = plan
        self._join = plan.join
        self._segments = segments
        # By stream the places of the columns that the result has: no other is copied for a match.
        self._places: list[list[int]] = [
            sorted({names.index(field.column) for field in plan.join.fields if field.stream == stream})
            for stream, names in enumerate(schema.names for schema in plan.join.schemas)
        ]
        # whether anybody reads the times of rows
        self._timed = plan.join.spec.in_order or any(field.stream is None for field in plan.join.fields)
        self._firsts: list[tuple[Positions, Numbers, Seen]] = []  # of a semi join in order: row, and its match's stamp

    def matched(self, new: NewTuples, members: Members) -> Iterator[Block]:
        """The rows that these matches give; all of their members are stored if `new` is of none of their streams."""
        if self._join.spec.how == "semi":
            yield from self._semi(new, members)
            return
        for stream in self._join.preserved:
            _settle(new, self._segments[stream], stream, members[stream])
        if self._join.gives_pairs:
            members = self._grouped(new, members)
            step = self._step(new)
            for start in range(0, _count(members), step):
                piece = {stream: positions[start : start + step] for stream, positions in members.items()}
                times = self._at_times(new, piece)
                rows = {stream: self._rows(new, stream, at) for stream, at in piece.items()}
                yield self._given(rows, times, self._at_seen(new, piece))

    def completed(self, new: NewTuples) -> Iterator[Block]:
        """The rows that are known only when the new tuples have met everyone: those of a semi join in order."""
        if not self._firsts:
            return
        of_rows, of_times, of_seen = zip(*self._firsts, strict=True)
        rows, times = np.concatenate(of_rows), np.concatenate(of_times)
        seen = tuple(np.concatenate(own) for own in zip(*of_seen, strict=True))
        self._firsts = []
        order = np.lexsort((np.sum(seen, axis=0), rows))
        first = order[np.unique(rows[order], return_index=True)[1]]
        fresh = np.isin(rows[first], _settle(new, self._segments[0], 0, rows[first]))
        chosen = first[fresh]
        if len(chosen):
            own = {0: self._rows(new, 0, rows[chosen])}
            yield self._given(own, times[chosen], tuple(known[chosen] for known in seen))

    def unmatched(self, horizon: Horizon) -> Iterator[Block]:
        """The preserved rows that match nothing so far and that no tuple beyond the horizon can match."""
        if not self._join.gives_unmatched:
            return
        for stream in self._join.preserved:
            span = window_span(self._join.spec.streams[stream].window, stream)
            segment = self._segments[stream]
            for block, marks in zip(segment.blocks, segment.marks, strict=True):
                over = ~marks & span.over(block, horizon) if not marks.all() else ~marks
                if over.any():
                    marks[over] = True
                    alone = block.take(over)
                    rows = {place: alone.batch.column(place) for place in self._places[stream]}
                    yield self._given({stream: rows}, alone.times, alone.seen)

    def _semi(self, new: NewTuples, members: Members) -> Iterator[Block]:
        rows = members[0]
        if self._join.spec.in_order:
            self._firsts.append((rows.copy(), self._at_times(new, members), self._at_seen(new, members)))
            return
        fresh = _settle(new, self._segments[0], 0, rows)
        if len(fresh):
            yield self._given({0: self._rows(new, 0, fresh)}, self._times(new, 0, fresh), ())

    def _step(self, new: NewTuples) -> int:
        """How many matches make one batch, so that none of its columns is too large."""
        stored = [segment.widest_row for stream, segment in enumerate(self._segments) if stream != new.stream]
        return max(1, min(_ROWS, _BYTES // max(1, new.block.widest_row + sum(stored))))

    def _grouped(self, new: NewTuples, members: Members) -> Members:
        """The matches ordered by the block of one of their stored tuples, so that each block is read in one go."""
        stream = next(stream for stream in members if stream != new.stream)
        order = self._segments[stream].grouped(members[stream], self._places[stream])
        return members if order is None else {k: positions[order] for k, positions in members.items()}

    # -- the members of matches ------------------------------------------------------------------

    def _rows(self, new: NewTuples, stream: int, at: Positions) -> Columns:
        places = self._places[stream]
        if stream != new.stream:
            columns = self._segments[stream].take(at, places)
        else:
            columns = _taken(new.block, np.ascontiguousarray(at), places)
        return dict(zip(places, columns, strict=True))

    def _times(self, new: NewTuples, stream: int, at: Positions) -> Numbers:
        times = new.block.times if stream == new.stream else self._segments[stream].times
        if len(at) < _SOME:
            return times[at]
        # by Arrow, which lets other threads run meanwhile
        taken: Numbers = pa.array(times).take(pa.array(at)).to_numpy()
        return taken

    def _at_times(self, new: NewTuples, members: Members) -> Numbers:
        """The time of each match's `at`: the highest of its members', unless the order is that of arrival.

        Where nobody reads them, all are 0.
        """
        if not self._timed:
            return np.broadcast_to(np.int64(0), _count(members))
        times = [self._times(new, stream, at) for stream, at in members.items()]
        if self._join.spec.order == ARRIVAL:
            last = np.argmax([np.sum(seen, axis=0) for seen in self._seen(new, members)], axis=0)
            of_last: Numbers = np.stack(times)[last, np.arange(len(last))]
            return of_last
        highest: Numbers = np.maximum.reduce(times) if len(times) > 2 else np.maximum(*times)
        return highest

    def _at_seen(self, new: NewTuples, members: Members) -> Seen:
        """The `seen` of each match's `at`, the highest of its members' for every stream; empty if not in order."""
        if not self._join.spec.in_order:
            return ()
        return tuple(np.maximum.reduce(own) for own in zip(*self._seen(new, members), strict=True))

    def _seen(self, new: NewTuples, members: Members) -> list[Seen]:
        """By stream, the `seen` of each match's member."""
        return [
            tuple(own[at] for own in (new.columns.seen if stream == new.stream else self._segments[stream].seen))
            for stream, at in members.items()
        ]

    def _given(self, members: dict[int, Columns], times: Numbers, seen: Seen) -> Block:
        """Rows of the result; the columns of a stream that has no tuple in them are NULL."""
        columns = [self._column(field, members, times) for field in self._join.fields]
        rows = pa.RecordBatch.from_arrays(columns, names=list(self._join.output_names))
        return Block(rows, times, np.zeros(len(times), np.uint8), seen)

    def _column(self, field: Field, members: dict[int, Columns], times: Numbers) -> pa.Array:
        if field.stream is None:
            # A match has a stored member, and an unmatched row is one: the type of one time column is known.
            known = (self._type(stream, column) for stream, column in enumerate(self._join.times))
            zone = next(type_ for type_ in known if not pa.types.is_null(type_)).tz
            return pa.array(times).cast(pa.timestamp("us", zone))
        rows = members.get(field.stream)
        if rows is None:
            return pa.nulls(len(times), self._type(field.stream, field.column))
        return rows[self._join.schemas[field.stream].names.index(field.column)]

    def _type(self, stream: int, column: str) -> Any:
        """The Arrow type of a column, as far as it is known."""
        blocks = self._segments[stream].blocks
        place = self._join.schemas[stream].names.index(column)
        if blocks:
            return blocks[0].batch.schema.field(place).type
        return self._plan.arrow[stream].types[place] if self._plan.arrow else pa.null()


def _count(members: Members) -> int:
    """How many matches these are."""
    return len(next(iter(members.values())))


def _taken(block: Block, at: Positions, places: list[int]) -> list[pa.Array]:
    """The tuples of one block at these places: the columns with these places."""
    blocks = Blocks((block,), np.zeros(1, np.int64))
    return [
        blocks.take(place, None, at) if blocks.takes(place) else block.batch.column(place).take(pa.array(at))
        for place in places
    ]


def _settle(new: NewTuples, stored: Segment, stream: int, rows: Positions) -> Positions:
    """Mark tuples of a stream as settled; give back those that were not settled before, each once."""
    if stream != new.stream:
        return stored.settle(rows)
    fresh = np.unique(rows)
    fresh = fresh[~new.marks[fresh]]
    new.marks[fresh] = True
    return fresh
