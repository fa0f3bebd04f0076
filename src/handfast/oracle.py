"""What is right: the join's definition, executed naively in plain Python, one tuple after the other.

A row is a dict of plain values: int, float, str, bool, None; times and intervals as microseconds, dates as days,
decimals as their unscaled integer. Nothing is shared with stamper, core or kernels but what a function means
(`spec/meaning.py`, which Spark itself judges): where they differ, this is right.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, repeat
from typing import Any

from handfast.errors import InternalError
from handfast.spec.expression import Call, Column, Expr, Literal, Op, conjuncts
from handfast.spec.join import BoundJoin, Stream
from handfast.spec.meaning import Refused, rescaled, rule, to_float32, wrapped
from handfast.spec.types import Kind, Type
from handfast.spec.window import CountWindow, Window

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]  # every stream's rows
BATCH = "#batch"  # with a row, where arrival orders: the number of the batch it came in
Evaluator = Callable[[Sequence[Row]], Any]  # from one row of each stream to a value

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
    """Whether a row of the stream with this time is refused at the door."""
    return time is None or not max(FIRST_TIME, stream.valid_from) <= time <= min(LAST_TIME, stream.valid_to)


def holds(window: Window, old: Stamp, at: Stamp, *, stream: int) -> bool:
    """Whether `old`, of the stream of number `stream`, is in its stream's window at the arrival of `at`."""
    if isinstance(window, CountWindow):
        return at.seen[stream] - window.rows <= old.seq < at.seen[stream]
    return old.rank < at.rank and at.time - old.time < window.length


# --- who is let in --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of the rows at the door, by stream."""

    admitted: dict[str, list[Row]]
    late: dict[str, list[Row]]
    rejected: dict[str, list[Row]]
    watermark: float


def admit(join: BoundJoin, batches: Iterable[Tables], clock: Iterable[int] | None = None) -> Admission:
    """Replay the door: which rows of these batches, in their order of arrival, are admitted, late, rejected.

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
            except Refused:
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


def result(join: BoundJoin, tables: Tables, watermark: float = math.inf) -> list[tuple[Any, ...]]:
    """What is decided at this watermark, as rows of the result.

    Matches stand in the order of rank of their `at`. The columns of a stream that a row has no tuple of are None. The
    `match_time` of a row that matches nothing, and of a semi join's, is its own time; in order, a semi join's is that
    of the first `at` it matches.
    """
    found = matches(join, tables)
    rows: list[tuple[Any, ...]] = []
    if join.gives_pairs:
        rows += [_row(join, tables, indices) for indices in found]
    elif join.spec.how == "semi":
        first = {indices[0]: indices for indices in reversed(found)}
        chosen = sorted(first.values(), key=found.index)
        rows += [_row(join, tables, i if join.spec.in_order else (i[0], None)) for i in chosen]
    if join.gives_unmatched:
        for stream in join.preserved:
            for index in unmatched(join, tables, found, stream, watermark):
                rows.append(_row(join, tables, [index if k == stream else None for k in range(len(join.schemas))]))
    return rows


def _row(join: BoundJoin, tables: Tables, indices: Sequence[int | None]) -> tuple[Any, ...]:
    """A row of the result made of one tuple of each stream, or None."""
    streams = [tables[name] for name in join.spec.names]
    members = [rows[index] if index is not None else None for rows, index in zip(streams, indices, strict=True)]
    places = [
        (_place(join, k, index, member), member[join.times[k]])
        for k, (index, member) in enumerate(zip(indices, members, strict=True))
        if index is not None and member is not None
    ]
    match_time = max(places)[1]
    values: list[Any] = []
    for field in join.fields:
        member = members[field.stream] if field.stream is not None else None
        values.append(match_time if field.stream is None else member[field.column] if member is not None else None)
    return tuple(values)


# --- the predicate --------------------------------------------------------------------------------------------------


def evaluate(expr: Expr, rows: Sequence[Row]) -> Any:
    """The value of a typed tree for one row of each stream; None where it is NULL or Spark's ANSI mode refuses it."""
    try:
        return compile(expr)(rows)
    except Refused:
        return None


def compile(expr: Expr) -> Evaluator:
    """The tree as a function of one row of each stream; it raises `Refused` where Spark's ANSI mode would fail.

    AND and OR go from left to right and stop as soon as they are decided. Every other operator takes all its operands
    first, so an operand that is refused outweighs one that is NULL.
    """
    if isinstance(expr, Column):
        stream, name = expr.stream, expr.name
        return lambda rows: rows[stream][name]
    if isinstance(expr, Literal):
        value = expr.value
        return lambda rows: value
    if expr.op is Op.AND:
        return _all([compile(part) for part in conjuncts(expr)])
    if expr.op is Op.OR:
        return _either(*map(compile, expr.args))
    if expr.op is Op.SAME:
        return _same(*map(compile, expr.args))
    if expr.op is Op.IS_NULL:
        inner = compile(expr.args[0])
        return lambda rows: inner(rows) is None
    if expr.op in _CHOICES:
        return _CHOICES[expr.op]([compile(arg) for arg in expr.args])
    if expr.op not in _OWN or (expr.type.kind is Kind.DECIMAL and expr.op in (Op.MUL, Op.DIV, Op.MOD)):
        return _function(rule(expr), [compile(arg) for arg in expr.args])
    if len(expr.args) == 1:
        return _unary(_unary_rule(expr), compile(expr.args[0]))
    a, b = map(compile, expr.args)
    return (
        _less(a, b) if expr.op is Op.LT else _at_most(a, b) if expr.op is Op.LE else _binary(_binary_rule(expr), a, b)
    )


def _all(parts: list[Evaluator]) -> Evaluator:
    def conjunction(rows: Sequence[Row]) -> bool | None:
        truth: bool | None = True
        for part in parts:
            value = part(rows)
            if value is not True:
                if value is False:
                    return False
                truth = None
        return truth

    return conjunction


def _either(a: Evaluator, b: Evaluator) -> Evaluator:
    def disjunction(rows: Sequence[Row]) -> bool | None:
        x = a(rows)
        if x is True:
            return True
        y = b(rows)
        return True if y is True else None if x is None else y

    return disjunction


def _same(a: Evaluator, b: Evaluator) -> Evaluator:
    def same(rows: Sequence[Row]) -> bool:
        x, y = a(rows), b(rows)
        if x is None or y is None:
            return x is y
        return _equal(x, y)

    return same


def _less(a: Evaluator, b: Evaluator) -> Evaluator:
    def less(rows: Sequence[Row]) -> bool | None:
        x, y = a(rows), b(rows)
        if x is None or y is None:
            return None
        return _is_less(x, y)

    return less


def _at_most(a: Evaluator, b: Evaluator) -> Evaluator:
    def at_most(rows: Sequence[Row]) -> bool | None:
        x, y = a(rows), b(rows)
        return None if x is None or y is None else x <= y or y != y

    return at_most


def _function(apply: Callable[..., Any], args: list[Evaluator]) -> Evaluator:
    def function(rows: Sequence[Row]) -> Any:
        values = [arg(rows) for arg in args]
        return None if any(value is None for value in values) else apply(*values)

    return function


def _case(args: list[Evaluator]) -> Evaluator:
    *branches, default = args
    pairs = list(zip(branches[::2], branches[1::2], strict=True))

    def case(rows: Sequence[Row]) -> Any:
        for condition, value in pairs:
            if condition(rows) is True:
                return value(rows)
        return default(rows)

    return case


def _coalesce(args: list[Evaluator]) -> Evaluator:
    def coalesce(rows: Sequence[Row]) -> Any:
        return next((value for value in (arg(rows) for arg in args) if value is not None), None)

    return coalesce


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[[list[Evaluator]], Evaluator]:
    def make(args: list[Evaluator]) -> Evaluator:
        def extreme(rows: Sequence[Row]) -> Any:
            best = None
            for value in [arg(rows) for arg in args]:
                if best is None or (value is not None and is_better(value, best)):
                    best = value
            return best

        return extreme

    return make


def _is_less(x: Any, y: Any) -> bool:
    return bool(x < y or (y != y and x == x))  # NaN is equal to itself, and greater than anything else


_CHOICES: dict[Op, Callable[[list[Evaluator]], Evaluator]] = {
    Op.CASE: _case,
    Op.COALESCE: _coalesce,
    Op.GREATEST: _extreme(lambda x, y: _is_less(y, x)),
    Op.LEAST: _extreme(_is_less),
}


def _unary(rule: Callable[[Any], Any], a: Evaluator) -> Evaluator:
    def apply(rows: Sequence[Row]) -> Any:
        x = a(rows)
        return None if x is None else rule(x)

    return apply


def _binary(rule: Callable[[Any, Any], Any], a: Evaluator, b: Evaluator) -> Evaluator:
    def apply(rows: Sequence[Row]) -> Any:
        x, y = a(rows), b(rows)
        return None if x is None or y is None else rule(x, y)

    return apply


def _binary_rule(expr: Call) -> Callable[[Any, Any], Any]:
    """What a binary operator does with two values that are not NULL."""
    if expr.op is Op.EQ:
        return _equal
    rule = _ARITHMETIC[expr.op]
    if expr.type.kind is Kind.DOUBLE:
        return rule
    if expr.type.kind is Kind.FLOAT:
        # the double result of + - * % on two floats, rounded once more, is the float result
        return lambda x, y: to_float32(rule(x, y))
    if expr.type.kind is Kind.DECIMAL:
        return rule  # the type has room for every sum
    if expr.type.kind is Kind.DATE:
        return lambda x, y: wrapped(rule(x, y), 32)
    low, high = _bounds(expr.type)

    def checked(x: int, y: int) -> int:
        z: int = rule(x, y)
        if low <= z <= high:
            return z
        raise Refused(f"{x} {expr.op.value} {y} is beyond {expr.type}")

    return checked


def _equal(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def _divide(x: float, y: float) -> float:
    if y == 0:
        raise Refused(f"{x} / {y}")
    return x / y


def _remainder(x: Any, y: Any) -> Any:
    """As in Java: with the sign of the dividend."""
    if y == 0:
        raise Refused(f"{x} % {y}")
    if isinstance(x, int):
        return abs(x) % abs(y) * (1 if x >= 0 else -1)
    return math.nan if math.isinf(x) else math.fmod(x, y)


_ARITHMETIC: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: _divide,
    Op.MOD: _remainder,
}


def _unary_rule(expr: Call) -> Callable[[Any], Any]:
    """What a unary operator does with a value that is not NULL."""
    if expr.op is Op.NOT:
        return lambda x: not x
    if expr.op is Op.CAST:
        return _cast_rule(expr.args[0].type, expr.type)
    if expr.op not in (Op.ABS, Op.NEG):
        raise InternalError(f"The oracle does not know the operator {expr.op}")
    rule: Callable[[Any], Any] = operator.abs if expr.op is Op.ABS else operator.neg
    if expr.type.is_floating or expr.type.kind is Kind.DECIMAL:
        return rule
    low, high = _bounds(expr.type)

    def checked(x: int) -> int:
        y: int = rule(x)
        if low <= y <= high:
            return y
        raise Refused(f"{expr.op.value} {x} is beyond {expr.type}")

    return checked


def _cast_rule(source: Type, target: Type) -> Callable[[Any], Any]:
    """How a value of one type becomes one of another; what lies beyond the target is refused."""
    if source.kind is Kind.NULL or source == target:
        return lambda x: x
    if target.kind is Kind.DECIMAL:
        return lambda x: rescaled(x, source.scale, target)
    if target.kind is Kind.TIMESTAMP_NTZ:
        return _within(target, lambda days: days * 86_400_000_000)
    if target.kind is Kind.DATE:
        return lambda time: time // 86_400_000_000
    if target.is_floating and source.is_floating:
        return to_float32 if target.kind is Kind.FLOAT else lambda x: x
    if target.is_floating:
        return rule(Call(Op.CAST, (Literal(0, source),), target))
    unit = 10**source.scale
    if source.is_floating:
        return lambda x: _truncated(x, target)
    return _within(target, lambda x: x if unit == 1 else abs(x) // unit * (1 if x > 0 else -1))


def _within(target: Type, convert: Callable[[int], int]) -> Callable[[int], int]:
    low, high = _bounds(target)

    def checked(x: int) -> int:
        y = convert(x)
        if low <= y <= high:
            return y
        raise Refused(f"{x} is beyond {target}")

    return checked


def _truncated(x: float, target: Type) -> int:
    """A floating number without what is behind the point; just beyond the largest bigint there is no other double."""
    low, high = _bounds(target)
    if x != x or math.isinf(x) or not (math.floor(x) <= float(high) and math.ceil(x) >= low):
        raise Refused(f"{x} is beyond {target}")
    return min(math.trunc(x), high)


def _bounds(type_: Type) -> tuple[int, int]:
    """The smallest and largest value of an integer, time or interval type."""
    bits = type_.bits if type_.is_integer else 64
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


_OWN = frozenset({*_ARITHMETIC, Op.EQ, Op.LT, Op.LE, Op.NOT, Op.NEG, Op.ABS, Op.CAST})
