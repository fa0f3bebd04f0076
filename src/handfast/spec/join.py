"""The join that is asked for: a value, checked when it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handfast.errors import SpecError
from handfast.spec.classify import Conditions, classify
from handfast.spec.expression import Expr
from handfast.spec.moment import EARLIEST, LATEST, Moment, parse_moment
from handfast.spec.predicate import bind, parse
from handfast.spec.schema import Schema, nearest
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

HOW = ("inner",)


@dataclass(frozen=True, slots=True)
class Stream:
    """One input: its name, window, time column, how late a row may come (if it is unbounded), what orders its ties.

    Rows whose time is before `valid_from` or after `valid_to` are rejected. The watermark does not wait for a stream that
    has sent nothing for `idle_timeout`.
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
    """A sliding-window join of two streams.

    Args:
        streams: The streams' names in their order: at equal times the first is taken to have come first.
        on: The predicate, a SQL condition over `stream.column`.
        window: How long a tuple stays, like "10 minutes" or "500 rows": one for all streams, or one by stream.
        time: The event-time column: one name for all streams, or one by stream.
        lateness: How far a row may lag behind its stream's newest, for streaming inputs: one, or one by stream.
        how: "inner".
        sequence: The column that orders tuples of one stream at the same time: one name for all streams, or one by
            stream. Without it their columns do, all of them, as Spark sorts them.
        valid_from: The first time that a row may have, a datetime or microseconds since 1970: one for all streams, or
            one by stream. A row before it is rejected, as is one without a time.
        valid_to: The last time that a row may have, in the same way.
        idle_timeout: For how long, by the clock, the watermark waits for a stream that sends nothing, for streaming
            inputs: one, or one by stream. Without it, for ever.
    """

    streams: tuple[Stream, ...]
    on: str
    how: str

    def __init__(
        self,
        streams: tuple[str, ...] | list[str],
        on: str,
        *,
        window: Duration | Window | Mapping[str, Duration | Window],
        time: str | Mapping[str, str],
        lateness: Duration | Mapping[str, Duration] | None = None,
        how: str = "inner",
        sequence: str | Mapping[str, str] | None = None,
        valid_from: Moment | Mapping[str, Moment | None] | None = None,
        valid_to: Moment | Mapping[str, Moment | None] | None = None,
        idle_timeout: Duration | Mapping[str, Duration | None] | None = None,
    ) -> None:
        names = _checked_names(streams)
        if how not in HOW:
            raise SpecError(f"how={how!r} is not a join that handfast knows; it knows {', '.join(HOW)}")
        parse(on)
        windows = _by_stream(window, names, "window")
        times = _by_stream(time, names, "time")
        lags = _by_stream(lateness, names, "lateness") if lateness is not None else {}
        sequences = _by_stream(sequence, names, "sequence")
        timeouts = _by_stream(idle_timeout, names, "idle_timeout")
        firsts, lasts = _by_stream(valid_from, names, "valid_from"), _by_stream(valid_to, names, "valid_to")
        built = tuple(
            Stream(
                name,
                parse_window(windows[name], stream=name),
                _checked_time(times[name], name),
                _checked_lateness(lags[name], name) if name in lags else None,
                _checked_sequence(sequences[name], name),
                *_checked_bounds(firsts[name], lasts[name], name),
                _checked_timeout(timeouts[name], name),
            )
            for name in names
        )
        object.__setattr__(self, "streams", built)
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "how", how)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(stream.name for stream in self.streams)

    def bind(self, schemas: Mapping[str, Schema]) -> BoundJoin:
        """The join over streams with these columns: typed and classified, or an error that says what does not fit."""
        ordered = {name: schemas[name] for name in self.names}
        predicate = bind(self.on, ordered)
        times = []
        for stream in self.streams:
            name, type_ = ordered[stream.name].column(stream.name, stream.time)
            if not type_.is_timestamp:
                raise SpecError(
                    f"The time column {name!r} of stream {stream.name!r} is of type {type_}, not a timestamp; "
                    "convert it in the input, e.g. timestamp_micros(…) or to_timestamp(…)"
                )
            times.append(name)
        kinds = {ordered[s.name].column(s.name, s.time)[1] for s in self.streams}
        if len(kinds) > 1:
            raise SpecError("The streams' time columns must all be with time zone or all without; cast one of them")
        sequences = tuple(
            ordered[s.name].column(s.name, s.sequence)[0] if s.sequence is not None else None for s in self.streams
        )
        bound = BoundJoin(self, tuple(ordered.values()), tuple(times), sequences, predicate, classify(predicate))
        bound.check_output_names()
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

    @property
    def counted(self) -> bool:
        """Whether a window counts tuples: then every tuple needs its place in the order before it can join."""
        return any(isinstance(stream.window, CountWindow) for stream in self.spec.streams)

    @property
    def time_type(self) -> Type:
        """The type of `match_time`."""
        return self.schemas[0].column(self.spec.names[0], self.times[0])[1]

    @property
    def output_names(self) -> tuple[str, ...]:
        """The result's columns: every column as `<stream>_<column>`, then `match_time`."""
        named = [f"{s}_{c}" for s, schema in zip(self.spec.names, self.schemas, strict=True) for c in schema.names]
        return (*named, "match_time")

    def check_output_names(self) -> None:
        """Refuse a result two of whose columns have one name."""
        names = self.output_names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SpecError(f"Two columns of the result would be called {twice[0]!r}; rename a stream or a column")

    @property
    def fingerprint(self) -> str:
        """The same for the same join on the same columns, another one for any other."""
        return hashlib.blake2b(repr((self.spec, self.schemas)).encode(), digest_size=16).hexdigest()

    def interval(self) -> str:
        """The windows as an interval: of time differences, or of tuples that came between."""
        (r, s), (r_time, s_time) = self.spec.streams, self.times
        if isinstance(r.window, TimeWindow) and isinstance(s.window, TimeWindow):
            low, high = format_duration(s.window.length), format_duration(r.window.length)
            return f"{s.name}.{s_time} − {r.name}.{r_time} in (−{low}, +{high})"
        return " and ".join(
            f"{new.name} meets the last {old.window} of {old.name}"
            if isinstance(old.window, CountWindow)
            else f"{new.name} meets {old.name} of the last {old.window}"
            for old, new in ((r, s), (s, r))
        )


def _checked_names(streams: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    names = tuple(streams)
    if len(names) != 2:
        raise SpecError(f"A join takes two streams, not {len(names)}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise SpecError(f"A stream's name must be a plain identifier like 'r' or 'trades', not {name!r}")
    if len({name.lower() for name in names}) < len(names):
        raise SpecError(f"Stream {names[0]!r} is named twice; give every stream a name of its own, whatever the case")
    return names


def _by_stream(value: Any, names: tuple[str, ...], what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    unknown = [name for name in value if name not in names]
    if unknown:
        near = nearest(unknown[0], names)
        hint = f"; did you mean {near!r}?" if near else ""
        raise SpecError(f"{what} names a stream {unknown[0]!r} that the join does not have{hint}")
    missing = [name for name in names if name not in value]
    if missing:
        raise SpecError(f"{what} says nothing for stream {missing[0]!r}; give one for every stream, or one for all")
    return dict(value)


def _checked_time(time: str, stream: str) -> str:
    if not isinstance(time, str) or not time:
        raise SpecError(f"time must name the event-time column of stream {stream!r}, not {time!r}")
    return time


def _checked_sequence(sequence: str | None, stream: str) -> str | None:
    if sequence is not None and (not isinstance(sequence, str) or not sequence):
        raise SpecError(f"sequence must name a column of stream {stream!r}, not {sequence!r}")
    return sequence


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


def _checked_lateness(lateness: Duration, stream: str) -> int:
    micros = parse_duration(lateness, what=f"The lateness of stream {stream!r}")
    if micros < 0:
        raise SpecError(f"The lateness of stream {stream!r} cannot be negative: {lateness!r}")
    return micros
