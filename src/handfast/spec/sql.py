"""The join's definition as one SQL query over stamped tuples, for people and for Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast.spec.moment import EARLIEST, LATEST
from handfast.spec.window import CountWindow

if TYPE_CHECKING:
    from handfast.spec.join import JoinSpec, Stream


def to_sql(spec: JoinSpec) -> str:
    """The query that defines the result of bounded inputs, where the predicate's arithmetic does not fail.

    The streams are tables of their names. Every tuple of a match is a struct; where there is none it is NULL.
    """
    streams = spec.streams
    spec.check_bounded()
    parts = [_stamped(k, stream, spec.order) for k, stream in enumerate(streams)]
    parts.append(_ranked(streams, "_time" if spec.order == "event" else "_place"))
    parts += [_tuples(k, stream, len(streams)) for k, stream in enumerate(streams)]
    parts.append(_matches(spec))
    return "WITH " + ",\n".join(parts) + "\n" + _result(spec)


def _stamped(position: int, stream: Stream, order: str) -> str:
    """A stream's tuples of valid times with their time in microseconds and their place in the stream."""
    ties = f"`{stream.sequence}`, _tuple" if stream.sequence is not None else "_tuple"
    first, place = ("_time, ", "") if order == "event" else ("", f", `{stream.sequence}` AS _place")
    bounded = (stream.valid_from, stream.valid_to) != (EARLIEST, LATEST)
    valid = f"BETWEEN {stream.valid_from} AND {stream.valid_to}" if bounded else "IS NOT NULL"
    return (
        f"_stream{position} AS (\n"
        f"  SELECT *, row_number() OVER (ORDER BY {first}{ties}) - 1 AS _seq\n"
        f"  FROM (SELECT *, struct(*) AS _tuple, unix_micros(`{stream.time}`) AS _time{place} FROM `{stream.name}`)\n"
        f"  WHERE _time {valid})"
    )


def _ranked(streams: tuple[Stream, ...], place: str) -> str:
    """Every tuple's place in the order of all, and how many tuples of each stream came before it."""
    every = "\n    UNION ALL ".join(
        f"SELECT {k} AS _stream, {place}, _seq FROM _stream{k}" for k in range(len(streams))
    )
    seen = ",\n    ".join(
        f"count_if(_stream = {k}) OVER (ORDER BY {place}, _stream, _seq "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - int(_stream = {k}) AS _seen{k}"
        for k in range(len(streams))
    )
    return (
        f"_order AS (\n  SELECT _stream, _seq, row_number() OVER (ORDER BY {place}, _stream, _seq) AS _rank,\n"
        f"    {seen}\n"
        f"  FROM ({every}))"
    )


def _tuples(position: int, stream: Stream, streams: int) -> str:
    seen = ", ".join(f"o._seen{k}" for k in range(streams))
    return (
        f"_tuples{position} AS (\n  SELECT t.*, o._rank, {seen}\n"
        f"  FROM _stream{position} t JOIN _order o ON o._stream = {position} AND o._seq = t._seq)"
    )


def _matches(spec: JoinSpec) -> str:
    """One tuple of each stream, the others in their windows at the arrival of the last."""
    streams = spec.streams
    names = [f"`{stream.name}`" for stream in streams]
    last = f"greatest({', '.join(f'{name}._rank' for name in names)})"
    held = "\n    AND ".join(
        f"({name}._rank = {last} OR {_held(k, stream, names, last)})"
        for k, (stream, name) in enumerate(zip(streams, names, strict=True))
    )
    columns = ", ".join(f"{name}._tuple AS {name}, {name}._rank AS _rank{k}" for k, name in enumerate(names))
    tables = ", ".join(f"_tuples{k} AS {name}" for k, name in enumerate(names))
    return (
        f"_matches AS (\n  SELECT {columns}, {_of_last('_time', names, last)} AS _time, {last} AS _last\n"
        f"  FROM {tables}\n  WHERE {held}\n    AND ({spec.on_sql}))"
    )


def _held(position: int, stream: Stream, names: list[str], last: str) -> str:
    if isinstance(stream.window, CountWindow):
        return f"{_of_last(f'_seen{position}', names, last)} - {stream.window.rows} <= {names[position]}._seq"
    return f"{_of_last('_time', names, last)} - {names[position]}._time < {stream.window.length}"


def _of_last(column: str, names: list[str], last: str) -> str:
    """A column of the match's last tuple."""
    cases = " ".join(f"WHEN {name}._rank THEN {name}.{column}" for name in names)
    return f"CASE {last} {cases} END"


def _result(spec: JoinSpec) -> str:
    names = [f"`{stream.name}`" for stream in spec.streams]
    if spec.how == "semi" and spec.in_order:
        return (
            f"SELECT min_by({names[0]}, _last) AS {names[0]}, timestamp_micros(min_by(_time, _last)) AS match_time\n"
            "FROM _matches GROUP BY _rank0 ORDER BY min(_last)"
        )
    shown = names[:1] if spec.how in ("semi", "anti") else names
    place = ", _last" if spec.in_order else ""
    matches = f"SELECT {', '.join(names)}, timestamp_micros(_time) AS match_time{place} FROM _matches"
    kept = {"left": [0], "right": [1], "full": [0, 1]}.get(spec.how, [])
    if spec.how in ("semi", "anti"):
        parts = [_alone(spec.how, 0, shown, in_order=spec.in_order)]
    else:
        parts = [matches, *(_alone("anti", k, names, in_order=spec.in_order) for k in kept)]
    whole = "\nUNION ALL ".join(parts)
    return f"SELECT {', '.join(shown)}, match_time FROM (\n{whole})\nORDER BY _last" if spec.in_order else whole


def _alone(kind: str, position: int, names: list[str], *, in_order: bool) -> str:
    """The rows of one stream that match something (semi) or nothing (anti)."""
    columns = ", ".join(f"_tuple AS {n}" if k == position else f"NULL AS {n}" for k, n in enumerate(names))
    place = ", _rank AS _last" if in_order else ""
    return (
        f"SELECT {columns}, timestamp_micros(_time) AS match_time{place} FROM _tuples{position} "
        f"LEFT {kind.upper()} JOIN _matches ON _matches._rank{position} = _tuples{position}._rank"
    )
