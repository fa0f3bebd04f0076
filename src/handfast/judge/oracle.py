"""What is right: the join's definition, executed naively in plain Python, one tuple after the other.

A row is a dict of plain values: int, float, str, bool, None; times and intervals as microseconds, dates as days,
decimals as their unscaled integer. Nothing is shared with stamper, core or kernels but what a function means
(`spec/meaning.py`, which Spark itself judges): where they differ, this is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, repeat
from typing import Any

from handfast.judge.evaluation import Row, compile
from handfast.spec.join import BoundJoin, Stream
from handfast.spec.meaning import AnsiError
from handfast.spec.window import CountWindow, Window

Tables = Mapping[str, Sequence[Row]]  # every stream's rows
BATCH = "#batch"  # with a row, where arrival orders: the number of the batch it came in

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 0001 to 9999 in microseconds


# --- the order of tuples, and their windows -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stamp:
    """A tuple's place in the one total order.

    Attributes:
        rank: Its place among the tuples of all streams.
        time: Its event time in microseconds.
        seq: Its place in its own stream.
        seen: How many tuples of each stream have a lower rank.
    """

    rank: int
    time: int
    seq: int
    seen: tuple[int, ...]


def stamp(join: BoundJoin, tables: Tables) -> list[list[Stamp | None]]:
    """Every row's stamp, by stream and by the row's index; None for a row that is rejected.

    By event order: time, then the stream's position, then its `sequence` column if it has one, then all columns in
    schema order as Spark sorts them. By arrival: the batch, then the stream's position, then the row's index; of
    bounded inputs, whose rows came in no batch, as in event order, but with `sequence` in the place of time.
    """
    rows = [tables[name] for name in join.spec.names]
    order = sorted(
        (*_place(join, stream, index, row), index)
        for stream, table in enumerate(rows)
        for index, row in enumerate(table)
        if not is_rejected(join.spec.streams[stream], row[join.times[stream]])
    )
    stamps: list[list[Stamp | None]] = [[None] * len(table) for table in rows]
    seen = [0] * len(rows)
    for rank, (_, stream, _, index) in enumerate(order):
        stamps[stream][index] = Stamp(rank, rows[stream][index][join.times[stream]], seen[stream], tuple(seen))
        seen[stream] += 1
    return stamps


def _place(join: BoundJoin, stream: int, index: int, row: Row) -> tuple[Any, int, list[Any]]:
    """What a row's place in the order of all goes by."""
    if BATCH in row:
        return row[BATCH], stream, [index]
    sequence, columns = join.sequences[stream], join.schemas[stream].names
    ties = [_sort_key(row[name]) for name in (columns if sequence is None else (sequence, *columns))]
    return (ties[0] if join.spec.order == "arrival" else row[join.times[stream]]), stream, ties


def _sort_key(value: Any) -> tuple[Any, ...]:
    """A key that sorts as Spark does: NULL first, NaN last, strings by code point, lists and structs item by item."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, Mapping):
        return (1, [_sort_key(item) for item in value.values()])
    if isinstance(value, list | tuple):
        return (1, [_sort_key(item) for item in value])
    return (1, value)


def is_rejected(stream: Stream, time: int | None) -> bool:
    """Whether a row of the stream with this time is rejected."""
    return time is None or not max(FIRST_TIME, stream.valid_from) <= time <= min(LAST_TIME, stream.valid_to)


def holds(window: Window, old: Stamp, at: Stamp, *, stream: int) -> bool:
    """Whether `old`, of the stream of number `stream`, is in its stream's window at the arrival of `at`."""
    if isinstance(window, CountWindow):
        return at.seen[stream] - window.rows <= old.seq < at.seen[stream]
    return old.rank < at.rank and at.time - old.time < window.length


# --- who is let in --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of the rows on admission, by stream."""

    admitted: dict[str, list[Row]]
    late: dict[str, list[Row]]
    rejected: dict[str, list[Row]]
    watermark: float


def admit(join: BoundJoin, batches: Iterable[Tables], clock: Iterable[int] | None = None) -> Admission:
    """Replay the admission: which rows of these batches, in their order of arrival, are admitted, late, rejected.

    `clock` has the processing time of each batch in microseconds, for streams that may fall idle.
    """
    names = join.spec.names
    admitted: dict[str, list[Row]] = {name: [] for name in names}
    late: dict[str, list[Row]] = {name: [] for name in names}
    rejected: dict[str, list[Row]] = {name: [] for name in names}
    newest: dict[str, float] = dict.fromkeys(names, -math.inf)
    heard: dict[str, int] = {}  # when a stream last sent something, by the clock
    watermark = -math.inf
    by_arrival = join.spec.order == "arrival"  # then a row's place is final at once, and nothing is late
    for number, (batch, now) in enumerate(zip(batches, clock if clock is not None else repeat(0), strict=False)):
        sent = set(names) - heard.keys()  # before the first batch nobody was waited for
        for stream, column in zip(join.spec.streams, join.times, strict=True):
            name = stream.name
            for row in batch.get(name, ()):
                time = row[column]
                if is_rejected(stream, time):
                    rejected[name].append(row)
                elif time < watermark:
                    late[name].append(row)
                else:
                    admitted[name].append({**row, BATCH: number} if by_arrival else row)
                    newest[name] = max(newest[name], time)
                if not is_rejected(stream, time):
                    sent.add(name)
        heard |= dict.fromkeys(sent, now)
        # without a lateness the input is bounded: nothing in it is ever late
        reached = [
            -math.inf if stream.lateness is None or by_arrival else newest[stream.name] - stream.lateness
            for stream in join.spec.streams
            if stream.idle_timeout is None or now - heard[stream.name] < stream.idle_timeout
        ]
        watermark = max(watermark, min(reached, default=-math.inf))
    return Admission(admitted, late, rejected, watermark)


def final(join: BoundJoin, admission: Admission) -> dict[str, list[Row]]:
    """The admitted rows that take part in what is decided so far: where places matter, those below the watermark."""
    if not join.stamped or join.spec.order == "arrival":
        return admission.admitted
    times = dict(zip(join.spec.names, join.times, strict=True))
    return {n: [r for r in rows if r[times[n]] < admission.watermark] for n, rows in admission.admitted.items()}


# --- the result -----------------------------------------------------------------------------------------------------


def matches(join: BoundJoin, tables: Tables) -> list[tuple[int, ...]]:
    """All matches of these admitted rows, each as the indices of its rows, one of each stream.

    Tuples arrive in the order of rank. At the arrival of `at`, a stream's window is the run of its tuples that came
    before and are still held: times never fall in that order, so what a window has lost it never holds again.
    """
    rows = [tables[name] for name in join.spec.names]
    windows = [stream.window for stream in join.spec.streams]
    stamps = stamp(join, tables)
    predicate = compile(join.predicate)
    live: list[list[int]] = [[] for _ in rows]  # the window of every stream, oldest first, as indices
    found: list[tuple[int, ...]] = []
    for at, origin, index in _by_rank(stamps):
        for stream, window in enumerate(windows):
            live[stream] = _still_held(window, live[stream], stamps[stream], at, stream)
        members = [[index] if stream == origin else held for stream, held in enumerate(live)]
        candidates = [[table[i] for i in held] for table, held in zip(rows, members, strict=True)]
        for candidate, indices in zip(product(*candidates), product(*members), strict=True):
            try:
                if predicate(candidate) is True:
                    found.append(indices)
            except AnsiError:
                continue
        live[origin].append(index)
    return found


def _by_rank(stamps: Sequence[Sequence[Stamp | None]]) -> list[tuple[Stamp, int, int]]:
    """Every stamp with its stream and index, in the order of rank."""
    stamped = [(s, stream, i) for stream, column in enumerate(stamps) for i, s in enumerate(column) if s is not None]
    return sorted(stamped, key=lambda arrival: arrival[0].rank)


def _still_held(window: Window, held: list[int], stamps: Sequence[Stamp | None], at: Stamp, stream: int) -> list[int]:
    """A window's tuples, oldest first, without those at the front that it no longer holds at the arrival of `at`."""
    gone = 0
    for index in held:
        old = stamps[index]
        assert old is not None, "a rejected row never gets into a window"
        if holds(window, old, at, stream=stream):
            break
        gone += 1
    return held[gone:] if gone else held


def unmatched(
    join: BoundJoin, tables: Tables, found: Sequence[tuple[int, ...]], stream: int, watermark: float
) -> list[int]:
    """The rows of a stream that are in none of the matches `found`, and that no tuple still to come can match.

    A tuple still to come has a time from the watermark on, and comes after every tuple that is here.
    """
    matched = {indices[stream] for indices in found}
    window, stamps = join.spec.streams[stream].window, stamp(join, tables)[stream]
    here = sum(s is not None for s in stamps)

    def is_over(s: Stamp) -> bool:
        if watermark == math.inf:
            return True
        if isinstance(window, CountWindow):
            return s.seq < here - window.rows
        return s.time + window.length <= watermark

    return [i for i, s in enumerate(stamps) if s is not None and i not in matched and is_over(s)]


def _is_next(join: BoundJoin, stamps: Sequence[Sequence[Stamp | None]], at: Stamp, watermark: float) -> bool:
    """Whether every preserved tuple that can stand before `at` has had its last chance to match."""
    for stream in join.preserved:
        window = join.spec.streams[stream].window
        here = sum(s is not None for s in stamps[stream])
        if isinstance(window, CountWindow):
            has_had = watermark == math.inf or at.seen[stream] <= here - window.rows
        else:
            has_had = at.time + window.length <= watermark
        if not has_had:
            return False
    return True


def result(join: BoundJoin, tables: Tables, watermark: float = math.inf) -> list[tuple[Any, ...]]:
    """What is given at this watermark, as rows of the result, in the order of rank of their `at`.

    The columns of a stream that a row has no tuple of are None. A row that matches nothing is its own `at`, and so is a
    semi join's; in order, a semi join's is that of its first match.
    """
    return [row for _, row in stamped_result(join, tables, watermark)]


def stamped_result(join: BoundJoin, tables: Tables, watermark: float = math.inf) -> list[tuple[Stamp, tuple[Any, ...]]]:
    """The rows of the result, each with the stamp of its `at`.

    In order, where rows that match nothing are given, a row waits until none that stands before it can still be given.
    """
    found, stamps = matches(join, tables), stamp(join, tables)
    rows: list[tuple[Stamp, Sequence[int | None]]] = []
    if join.gives_pairs:
        rows += [(_last(stamps, indices), indices) for indices in found]
    elif join.spec.how == "semi":
        first = {indices[0]: indices for indices in reversed(found)}
        rows += [(_last(stamps, own if join.spec.in_order else own[:1]), (own[0], None)) for own in first.values()]
    if join.gives_unmatched:
        for stream in join.preserved:
            for index in unmatched(join, tables, found, stream, watermark):
                alone = [index if k == stream else None for k in range(len(stamps))]
                rows.append((_last(stamps, alone), alone))
        if join.spec.in_order:
            rows = [(at, indices) for at, indices in rows if _is_next(join, stamps, at, watermark)]
    rows.sort(key=lambda row: row[0].rank)
    return [(at, _row(join, tables, indices, at.time)) for at, indices in rows]


def _last(stamps: Sequence[Sequence[Stamp | None]], indices: Sequence[int | None]) -> Stamp:
    """The stamp of the member that came last."""
    members = [stamps[stream][index] for stream, index in enumerate(indices) if index is not None]
    return max((s for s in members if s is not None), key=lambda s: s.rank)


def _row(join: BoundJoin, tables: Tables, indices: Sequence[int | None], match_time: int) -> tuple[Any, ...]:
    """A row of the result made of one tuple of each stream, or None."""
    streams = [tables[name] for name in join.spec.names]
    members = [rows[index] if index is not None else None for rows, index in zip(streams, indices, strict=True)]
    values: list[Any] = []
    for field in join.fields:
        member = members[field.stream] if field.stream is not None else None
        values.append(match_time if field.stream is None else member[field.column] if member is not None else None)
    return tuple(values)
