"""The join that is asked for: a value, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handfast.errors import SpecError
from handfast.spec.classify import Conditions, classify
from handfast.spec.expression import Expr, conjunction
from handfast.spec.fingerprint import Fingerprint, columns_text, fingerprint_of
from handfast.spec.moment import EARLIEST, LATEST, Moment, parse_moment
from handfast.spec.predicate import bind, parse
from handfast.spec.python_predicate import PythonPredicate
from handfast.spec.schema import Schema, nearest
from handfast.spec.select import Field, every_field, select_fields
from handfast.spec.sql import to_sql
from handfast.spec.types import Type
from handfast.spec.window import (
    CountWindow,
    Duration,
    TimeWindow,
    Window,
    format_duration,
    parse_duration,
    parse_window,
)

On = str | PythonPredicate | tuple[str | PythonPredicate, ...]  # a predicate as it is asked for

EVENT, ARRIVAL = ORDERS = ("event", "arrival")
HOW = ("inner", "left", "right", "full", "semi", "anti")
_SPARKS = {  # what Spark calls them besides, any case, with or without underscores
    "leftouter": "left",
    "rightouter": "right",
    "outer": "full",
    "fullouter": "full",
    "leftsemi": "semi",
    "leftanti": "anti",
}
_ONE_SIDED = ("semi", "anti")  # what gives rows of the first stream alone
_PRESERVED = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1), "semi": (0,), "anti": (0,)}


@dataclass(frozen=True, slots=True)
class Stream:
    """One input: its name, window, time column, how late a row may come (if it is unbounded), what orders its ties.

    Rows whose time is before `valid_from` or after `valid_to` are rejected. The watermark does not wait for a stream
    that has sent nothing for `idle_timeout`.
    """

    name: str
    window: Window
    time: str
    lateness: int | None = None
    sequence: str | None = None
    valid_from: int = EARLIEST
    valid_to: int = LATEST
    idle_timeout: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class JoinSpec:
    """A sliding-window join of two or more streams.

    Args:
        streams: The streams' names in their order: at equal times the first is taken to have come first.
        on: The predicate: a SQL condition over `stream.column`, an `hf.predicate`, or a list of them, all to hold.
        window: How long a tuple stays, like "10 minutes" or "500 rows": one for all streams, or one by stream.
        time: The event-time column: one name for all streams, or one by stream.
        lateness: How far a row may lag behind its stream's newest, for streaming inputs: one, or one by stream.
        how: "inner" gives the matches. Of two streams also: "left", "right", "full" (the matches, and the rows of the
            first, the second, or both that match nothing), "semi" (rows of the first that match something), "anti"
            (rows of the first that match nothing). Spark's other names for them, like "left_outer", mean the same.
        sequence: The column that orders tuples of one stream at the same time: one name for all streams, or one by
            stream. Without it their columns do, all of them, as Spark sorts them.
        in_order: Give the rows in the order of `match_time`, each once no row of an earlier one can still be given.
        select: The result's columns, a SQL list like "r.price, s.price AS bid, match_time"; every column when None.
        order: What a tuple's place goes by: "event", its time, or "arrival", with count windows only: the order in
            which a session is fed, or Spark's batches bring the rows; of bounded inputs, their `sequence` columns.
        valid_from: The first time that a row may have, a datetime or microseconds since 1970: one for all streams, or
            one by stream. A row before it is rejected, as is one without a time.
        valid_to: The last time that a row may have, in the same way.
        idle_timeout: For how long, by the clock, the watermark waits for a stream that sends nothing, for streaming
            inputs: one, or one by stream. Without it, for ever.
    """

    streams: tuple[Stream, ...]
    on: On
    how: str
    in_order: bool
    select: str | None
    order: str

    def __init__(
        self,
        streams: tuple[str, ...] | list[str],
        on: On | list[str | PythonPredicate],
        *,
        window: Duration | Window | Mapping[str, Duration | Window],
        time: str | Mapping[str, str],
        lateness: Duration | Mapping[str, Duration | None] | None = None,
        how: str = "inner",
        sequence: str | Mapping[str, str | None] | None = None,
        in_order: bool = False,
        select: str | None = None,
        order: str = "event",
        valid_from: Moment | Mapping[str, Moment | None] | None = None,
        valid_to: Moment | Mapping[str, Moment | None] | None = None,
        idle_timeout: Duration | Mapping[str, Duration | None] | None = None,
    ) -> None:
        names = _checked_names(streams)
        how = _plain_how(how)
        _check_how(how, names, in_order=in_order)
        wanted = _checked_on(on, names)
        windows = _by_stream(window, names, "window")
        times = _by_stream(time, names, "time")
        lags = _by_stream(lateness, names, "lateness", needed=False)
        sequences = _by_stream(sequence, names, "sequence", needed=False)
        timeouts = _by_stream(idle_timeout, names, "idle_timeout", needed=False)
        firsts = _by_stream(valid_from, names, "valid_from", needed=False)
        lasts = _by_stream(valid_to, names, "valid_to", needed=False)
        built = tuple(
            Stream(
                name,
                parse_window(windows[name], stream=name),
                _checked_time(times[name], name),
                _checked_lateness(lags[name], name),
                _checked_sequence(sequences[name], name),
                *_checked_bounds(firsts[name], lasts[name], name),
                _checked_timeout(timeouts[name], name),
            )
            for name in names
        )
        object.__setattr__(self, "streams", built)
        object.__setattr__(self, "on", wanted)
        object.__setattr__(self, "how", how)
        object.__setattr__(self, "in_order", bool(in_order))
        object.__setattr__(self, "select", select)
        object.__setattr__(self, "order", _checked_order(order, built))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.streams)

    @property
    def conditions(self) -> tuple[str | PythonPredicate, ...]:
        """The conditions that must all hold."""
        return self.on if isinstance(self.on, tuple) else (self.on,)

    @property
    def on_sql(self) -> str:
        """The predicate as SQL, with a function's name where it is written in Python."""
        if isinstance(self.on, str):
            return self.on
        parts = [part if isinstance(part, str) else part.sql(self.names) for part in self.conditions]
        return parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts)

    def to_sql(self) -> str:
        """The query, in Spark SQL over tables of the streams' names, that defines the result of bounded inputs."""
        return to_sql(self)

    def check_bounded(self) -> None:
        """Refuse an order that bounded inputs do not have."""
        if self.order == ARRIVAL and any(stream.sequence is None for stream in self.streams):
            raise SpecError(
                "order='arrival' is for streams, whose rows arrive in an order; bounded inputs need a column that "
                "has it: sequence='…'"
            )

    def check_unbounded(self, way_out: str) -> None:
        """Refuse streams without an end that have no lateness; `way_out` says how to give one."""
        if self.order == ARRIVAL:  # a place is final at once, and nothing is late
            return
        for stream in self.streams:
            if stream.lateness is None:
                raise SpecError(
                    f"Stream {stream.name!r} is unbounded and needs a lateness: how far a row may lag behind the "
                    f"newest; {way_out}"
                )

    def bind(self, schemas: Mapping[str, Schema]) -> BoundJoin:
        """The join over streams with these columns: typed and classified, or an error that says what does not fit."""
        ordered = {name: schemas[name] for name in self.names}
        predicate = conjunction([_bound(part, ordered) for part in self.conditions])
        times = []
        for stream in self.streams:
            name, type_ = ordered[stream.name].column(stream.name, stream.time)
            if not type_.is_timestamp:
                raise SpecError(
                    f"The time column {name!r} of stream {stream.name!r} is of type {type_}, not a timestamp; "
                    "convert it first: to_timestamp(…) or timestamp_micros(…) on Spark, pd.to_datetime(…) in pandas"
                )
            times.append(name)
        kinds = {ordered[s.name].column(s.name, s.time)[1] for s in self.streams}
        if len(kinds) > 1:
            raise SpecError("The streams' time columns must all be with time zone or all without; cast one of them")
        sequences = tuple(
            ordered[s.name].column(s.name, s.sequence)[0] if s.sequence is not None else None for s in self.streams
        )
        shown = range(len(self.streams)) if self.how not in _ONE_SIDED else _PRESERVED[self.how]
        fields = every_field(ordered, shown) if self.select is None else select_fields(self.select, ordered, shown)
        bound = BoundJoin(
            self, tuple(ordered.values()), tuple(times), sequences, predicate, classify(predicate), fields
        )
        bound.check_output_names()
        kinds = {ordered[s.name].column(s.name, s.sequence)[1] for s in self.streams if s.sequence is not None}
        if self.order == ARRIVAL and len(kinds) > 1:
            raise SpecError(
                f"With order='arrival' the sequence columns must be of one type, not {' and '.join(map(str, kinds))}"
            )
        return bound


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A join bound to the columns of its streams."""

    spec: JoinSpec
    schemas: tuple[Schema, ...]
    times: tuple[str, ...]
    sequences: tuple[str | None, ...]
    predicate: Expr
    conditions: Conditions
    fields: tuple[Field, ...]

    @property
    def counted(self) -> bool:
        """Whether a window counts tuples: then every tuple needs its place in the order before it can join."""
        return any(isinstance(stream.window, CountWindow) for stream in self.spec.streams)

    @property
    def stamped(self) -> bool:
        """Whether tuples wait until their place is final before they join."""
        return self.counted or self.spec.in_order

    @property
    def preserved(self) -> tuple[int, ...]:
        """The streams of which it is asked, row by row, whether they match anything."""
        return _PRESERVED[self.spec.how]

    @property
    def gives_pairs(self) -> bool:
        """Whether matches are given; otherwise rows of the first stream alone."""
        return self.spec.how not in _ONE_SIDED

    @property
    def gives_unmatched(self) -> bool:
        """Whether preserved rows that match nothing are given."""
        return self.spec.how in ("left", "right", "full", "anti")

    @property
    def time_type(self) -> Type:
        """The type of `match_time`."""
        return self.schemas[0].column(self.spec.names[0], self.times[0])[1]

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(field.name for field in self.fields)

    def check_output_names(self) -> None:
        """Refuse a result two of whose columns have one name."""
        names = self.output_names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SpecError(f"Two columns of the result would be called {twice[0]!r}; rename a stream or a column")

    @property
    def fingerprint(self) -> Fingerprint:
        """The same for the same join on the same columns, another one for any other."""
        columns = {name: columns_text(own) for name, own in zip(self.spec.names, self.schemas, strict=True)}
        return fingerprint_of(self.spec, columns)

    def interval(self) -> str:
        """The windows as an interval: of time differences, or of tuples that came between."""
        streams, times = self.spec.streams, self.times
        if len(streams) == 2 and not self.counted:
            (r, s), (r_time, s_time) = streams, times
            low, high = format_duration(_length(s.window)), format_duration(_length(r.window))
            return f"{s.name}.{s_time} − {r.name}.{r_time} in (−{low}, +{high})"
        held = [
            f"the last {s.window} of {s.name}"
            if isinstance(s.window, CountWindow)
            else f"{s.name} of the last {s.window}"
            for s in streams
        ]
        if len(streams) == 2:
            (r, s), (of_r, of_s) = streams, held
            return f"{s.name} meets {of_r} and {r.name} meets {of_s}"
        return f"a new tuple meets {', '.join(held)}, its own stream's left out"


def _length(window: Window) -> int:
    assert isinstance(window, TimeWindow)
    return window.length


def _checked_names(streams: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    names = tuple(streams)
    if len(names) < 2:
        raise SpecError(f"A join takes two streams or more, not {len(names)}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise SpecError(f"A stream's name must be a plain identifier like 'r' or 'trades', not {name!r}")
    lower = [name.lower() for name in names]
    twice = [name for name in names if lower.count(name.lower()) > 1]
    if twice:
        raise SpecError(f"Stream {twice[0]!r} is named twice; give every stream a name of its own, whatever the case")
    return names


def _checked_on(on: On | list[str | PythonPredicate], names: tuple[str, ...]) -> On:
    if isinstance(on, list | tuple) and not on:
        raise SpecError("on=[] has no condition; write on='TRUE' for every pair")
    wanted = tuple(on) if isinstance(on, list | tuple) else on
    for part in wanted if isinstance(wanted, tuple) else (wanted,):
        if isinstance(part, PythonPredicate):
            part.places(names)
        elif callable(part):
            raise SpecError("A Python function as a predicate is written on=hf.predicate(…)")
        elif part is not None and not isinstance(part, str):
            raise SpecError(
                "on must be SQL text over stream.column like 'r.x = s.x', an hf.predicate, or a list of them, "
                f"not {part!r}"
            )
        else:
            parse(part)
    return wanted


def _bound(part: str | PythonPredicate, schemas: Mapping[str, Schema]) -> Expr:
    """One condition as a typed tree over the named streams."""
    return part.bind(schemas) if isinstance(part, PythonPredicate) else bind(part, schemas)


def _plain_how(how: Any) -> Any:
    """The name that we have for what Spark calls by several."""
    if not isinstance(how, str):
        return how
    bare = how.lower().replace("_", "")
    plain = _SPARKS.get(bare, bare)
    return plain if plain in HOW else how


def _check_how(how: str, names: tuple[str, ...], *, in_order: bool) -> None:
    if how not in HOW:
        near = nearest(how, HOW) if isinstance(how, str) else None
        hint = f"did you mean {near!r}?" if near else f"it knows {', '.join(HOW)}"
        raise SpecError(f"how={how!r} is not a join that handfast knows; {hint}")
    if how != "inner" and len(names) != 2:
        raise SpecError(
            f"how={how!r} joins two streams, not {len(names)}; join all but one with how='inner' and in_order=True, "
            "and that one with their matches, which are a stream whose time is 'match_time'"
        )
    if not isinstance(in_order, bool):
        raise SpecError(f"in_order is True or False, not {in_order!r}")


def _by_stream(value: Any, names: tuple[str, ...], what: str, *, needed: bool = True) -> dict[str, Any]:
    """What is said of every stream; None of one that is left out, where it may be."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    unknown = [name for name in value if name not in names]
    if unknown:
        near = nearest(unknown[0], names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise SpecError(f"{what} names a stream {unknown[0]!r} that the join does not have{hint}")
    missing = [name for name in names if name not in value]
    if missing and needed:
        raise SpecError(f"{what} says nothing for stream {missing[0]!r}; give one for every stream, or one for all")
    return {name: value.get(name) for name in names}


def _checked_time(time: str, stream: str) -> str:
    if not isinstance(time, str) or not time:
        raise SpecError(f"time must name the event-time column of stream {stream!r}, not {time!r}")
    return time


def _checked_sequence(sequence: str | None, stream: str) -> str | None:
    if sequence is not None and (not isinstance(sequence, str) or not sequence):
        raise SpecError(f"sequence must name a column of stream {stream!r}, not {sequence!r}")
    return sequence


def _checked_order(order: str, streams: tuple[Stream, ...]) -> str:
    if order not in ORDERS:
        raise SpecError(f"order={order!r} is not an order that handfast knows; it knows {', '.join(ORDERS)}")
    timed = [stream for stream in streams if not isinstance(stream.window, CountWindow)]
    if order == ARRIVAL and timed:
        raise SpecError(
            f"order='arrival' goes with count windows only, and the window of stream {timed[0].name!r} is "
            f"{timed[0].window}; write '500 rows', or leave order out"
        )
    return order


def _checked_bounds(first: Moment | None, last: Moment | None, stream: str) -> tuple[int, int]:
    low = parse_moment(first, what=f"valid_from of stream {stream!r}") if first is not None else EARLIEST
    high = parse_moment(last, what=f"valid_to of stream {stream!r}") if last is not None else LATEST
    if low > high:
        raise SpecError(f"valid_from of stream {stream!r} is after its valid_to: it would reject every row")
    return low, high


def _checked_timeout(timeout: Duration | None, stream: str) -> int | None:
    if timeout is None:
        return None
    micros = parse_duration(timeout, what=f"The idle_timeout of stream {stream!r}")
    if micros <= 0:
        raise SpecError(f"The idle_timeout of stream {stream!r} must be longer than nothing, not {timeout!r}")
    return micros


def _checked_lateness(lateness: Duration | None, stream: str) -> int | None:
    if lateness is None:
        return None
    micros = parse_duration(lateness, what=f"The lateness of stream {stream!r}")
    if micros < 0:
        raise SpecError(f"The lateness of stream {stream!r} cannot be negative: {lateness!r}")
    return micros
