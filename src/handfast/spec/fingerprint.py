"""A join's fingerprint: what must agree for one join to go on where another has stopped, in fields that people read.

Whatever is at its default is left out. So a field that a later version adds, at its default, changes no fingerprint.
Every description of a join in a checkpoint is made and compared here: in Spark's state, and in handfast.json.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from handfast.spec.moment import format_moment
from handfast.spec.schema import Schema
from handfast.spec.window import TimeWindow, exact_duration

if TYPE_CHECKING:
    from handfast.spec.join import JoinSpec

Fingerprint = dict[str, str]


def fingerprint_of(spec: JoinSpec, columns: Mapping[str, str]) -> Fingerprint:
    """What was asked for, field by field; `columns` are those of each stream, as text."""
    asked: Fingerprint = {"streams": ", ".join(spec.names)}
    asked |= {f.name: str(getattr(spec, f.name)) for f in fields(spec) if f.name != "streams"}
    for stream in spec.streams:
        own = {f.name: _text(f.name, getattr(stream, f.name)) for f in fields(stream) if f.name != "name"}
        own["columns"] = columns[stream.name]
        asked |= {of_stream(what, stream.name): text for what, text in own.items()}
    return without_defaults(asked, spec)


def of_stream(what: str, stream: str) -> str:
    """What a field of one stream is called."""
    return f"{what} of {stream!r}"


def columns_text(schema: Schema) -> str:
    """The columns of a stream as text."""
    names = (name if name.isidentifier() else repr(name) for name in schema.names)
    return ", ".join(f"{name} {type_}" for name, (_, type_) in zip(names, schema.columns, strict=True))


def without_defaults(asked: Mapping[str, str], spec: JoinSpec) -> Fingerprint:
    """Those of the fields that are not at their default in a join of this kind."""
    defaults = {name: str(p.default) for name, p in inspect.signature(type(spec)).parameters.items()}
    for stream in spec.streams:
        own = {f.name: _text(f.name, f.default) for f in fields(stream) if f.default is not MISSING}
        defaults |= {of_stream(what, stream.name): text for what, text in own.items()}
    return {what: text for what, text in asked.items() if text != defaults.get(what)}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What differs between two fingerprints, by field: "cores was 2, is 3"."""
    return {
        what: f"{what} was {then.get(what, _DEFAULT)}, is {now.get(what, _DEFAULT)}"
        for what in (*then, *(what for what in now if what not in then))
        if then.get(what) != now.get(what)
    }


_DEFAULT = "the default"


def _text(what: str, value: Any) -> str:
    if isinstance(value, TimeWindow):
        return exact_duration(value.length)
    if value is not None and what in ("lateness", "idle_timeout"):
        return exact_duration(value)
    if what in ("valid_from", "valid_to"):
        return format_moment(value)
    return str(value)
