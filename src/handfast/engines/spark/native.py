"""Spark's own join of bounded inputs by equal keys: when it gives the same result, and how it is written.

It tries every pair of equal keys, and has the windows as one more condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import functions as F

from handfast.core.describe import Words
from handfast.engines.spark.as_column import as_column, beyond
from handfast.engines.spark.columns import numbered
from handfast.engines.spark.options import NATIVE
from handfast.errors import UnsupportedError
from handfast.plan import Plan
from handfast.spec.expression import Call
from handfast.spec.shown import shown
from handfast.spec.types import TIMESTAMP
from handfast.spec.window import TimeWindow

Frames = Mapping[str, Any]  # DataFrames by stream

_TIME = "time"  # the column of a row's time in microseconds, behind the letter of its stream
_LETTERS = "rs"
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"  # what Spark notes of a column of a table that has such a type
_OURS, _SPARKS = "handfast's cores", "Spark's own join by equal keys"


def obstacle(plan: Plan, frames: Frames) -> str | None:
    """Why Spark's own join may not give the same result, or None if it does."""
    join = plan.join
    if len(join.schemas) > 2:
        return "there are more streams than two"
    if not join.conditions.equalities:
        return "no equality joins the streams"
    if join.counted:
        return "a window counts rows"
    if join.stamped:
        return "rows are to come in the order of all streams together"
    if join.time_type != TIMESTAMP:
        return f"times of type {join.time_type} would go by the session's time zone"
    for name in join.spec.names:
        for field in frames[name].schema.fields:
            if _PADDED in field.metadata:
                return f"Spark may pad {field.name!r} of {name!r}, a column of {field.metadata[_PADDED]}, to compare it"
    part = beyond(join.predicate)
    if part is not None:
        what = part.op.value if isinstance(part, Call) else shown(part, join.spec.names)
        return f"{what} of {part.type} may fail in Spark, or mean something else, where here it is NULL"
    return None


def is_native(plan: Plan, frames: Frames, asked: str | None) -> bool:
    """Whether Spark's own join takes the inputs, as it is asked for by `SparkOptions(batch_join=…)`."""
    if asked == NATIVE and (why := obstacle(plan, frames)) is not None:
        raise UnsupportedError(
            "SparkOptions(batch_join='native') is for two streams, equal keys and time windows, where Spark's own join "
            f"gives the same rows; here it may not: {why}; leave batch_join out"
        )
    return asked == NATIVE or (asked is None and _tries_none_in_vain(plan) and obstacle(plan, frames) is None)


def words(plan: Plan, frames: Frames, asked: str | None) -> Words | None:
    """What joins the inputs, and why; None where there is nothing to choose from."""
    native = is_native(plan, frames, asked)
    if asked is not None:
        return (_SPARKS if native else _OURS), "it was asked for"
    if native:
        return _SPARKS, "all valid times are in one window: Spark's own join by equal keys tries no pair in vain"
    if obstacle(plan, frames) is not None:
        return None
    return _OURS, "Spark's own join would try every pair of equal keys, however far apart in time"


def _tries_none_in_vain(plan: Plan) -> bool:
    """Whether any two rows of valid times are in each other's windows."""
    streams = plan.join.spec.streams
    span = max(stream.valid_to for stream in streams) - min(stream.valid_from for stream in streams)
    return all(isinstance(stream.window, TimeWindow) and span < stream.window.length for stream in streams)


def join_natively(plan: Plan, frames: Frames) -> Any:
    """The matches as a DataFrame, for a plan without an `obstacle`."""
    join = plan.join
    r, s = (_with_times(frames[name], plan, stream) for stream, name in enumerate(join.spec.names))
    condition = as_column(join.predicate, lambda stream, name: _column(plan, stream, name))
    joined = r.join(s, reduce(and_, [condition, *_in_windows(plan)]), _how(join.spec.how))
    times = [_column(plan, stream, name) for stream, name in enumerate(join.times)]
    match_time = F.greatest(*times) if join.gives_pairs else times[0]  # of an unmatched row the other one is NULL
    fields = (
        (match_time if field.stream is None else _column(plan, field.stream, field.column)).alias(field.name)
        for field in join.fields
    )
    return joined.select(*fields)


def _with_times(frame: Any, plan: Plan, stream: int) -> Any:
    """The rows of valid times, their columns called by letter and number: names may be alike, and hold dots."""
    asked = plan.join.spec.streams[stream]
    renamed = numbered(frame).toDF(*(f"{_LETTERS[stream]}{place}" for place in range(len(frame.columns))))
    time = F.unix_micros(_column(plan, stream, plan.join.times[stream]))
    whole = renamed.withColumn(_LETTERS[stream] + _TIME, time)
    return whole.where(F.col(_LETTERS[stream] + _TIME).between(asked.valid_from, asked.valid_to))


def _in_windows(plan: Plan) -> list[Any]:
    """That the older row is still in its window when the other one comes."""
    r, s = (F.col(letter + _TIME) for letter in _LETTERS)
    of_r, of_s = (stream.window for stream in plan.join.spec.streams)
    assert isinstance(of_r, TimeWindow) and isinstance(of_s, TimeWindow)
    return [s - r < F.lit(of_r.length), r - s < F.lit(of_s.length)]


def _column(plan: Plan, stream: int, name: str) -> Any:
    return F.col(f"{_LETTERS[stream]}{plan.join.schemas[stream].names.index(name)}")


def _how(how: str) -> str:
    return f"left_{how}" if how in ("semi", "anti") else how
