"""A join's fingerprint: what must agree for one join to go on where another has stopped, in fields that people read.

What is asked for as it would be unasked is left out. So a field that is new, at its default, changes no fingerprint.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from handfast.spec.moment import format_moment
from handfast.spec.window import TimeWindow, exact_duration

if TYPE_CHECKING:
    from handfast.spec.join import BoundJoin

Fingerprint = dict[str, str]


def fingerprint_of(join: BoundJoin) -> Fingerprint:
    """What was asked for, part by part."""
    spec = join.spec
    asked: Fingerprint = {"streams": ", ".join(spec.names)}
    asked |= {f.name: str(getattr(spec, f.name)) for f in fields(spec) if f.name != "streams"}
    for stream, schema in zip(spec.streams, join.schemas, strict=True):
        own = {f.name: _text(f.name, getattr(stream, f.name)) for f in fields(stream) if f.name != "name"}
        names = (name if name.isidentifier() else repr(name) for name in schema.names)
        own["columns"] = ", ".join(f"{name} {type_}" for name, (_, type_) in zip(names, schema.columns, strict=True))
        asked |= {f"{what} of {stream.name!r}": text for what, text in own.items()}
    return said(asked, join)


def said(asked: Fingerprint, join: BoundJoin) -> Fingerprint:
    """What of it differs from what goes unsaid."""
    spec = join.spec
    unsaid = {name: str(p.default) for name, p in inspect.signature(type(spec)).parameters.items()}
    for stream in spec.streams:
        own = {f.name: _text(f.name, f.default) for f in fields(stream) if f.default is not MISSING}
        unsaid |= {f"{what} of {stream.name!r}": text for what, text in own.items()}
    return {what: text for what, text in asked.items() if text != unsaid.get(what)}


def _text(what: str, value: Any) -> str:
    if isinstance(value, TimeWindow):
        return exact_duration(value.length)
    if value is not None and what in ("lateness", "idle_timeout"):
        return exact_duration(value)
    if what in ("valid_from", "valid_to"):
        return format_moment(value)
    return str(value)
