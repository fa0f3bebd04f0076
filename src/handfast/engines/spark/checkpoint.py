"""What a checkpoint remembers of its join, so that another one can be told how it differs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from handfast.errors import EngineError
from handfast.plan import Plan
from handfast.spec.moment import format_moment
from handfast.spec.window import format_duration


def about(plan: Plan) -> str:
    """What was asked, part by part."""
    spec = plan.join.spec
    asked: dict[str, Any] = {"cores": plan.cores, "streams": ", ".join(spec.names)}
    asked |= {field.name: getattr(spec, field.name) for field in fields(spec) if field.name != "streams"}
    for stream, schema in zip(spec.streams, plan.join.schemas, strict=True):
        own = {field.name: getattr(stream, field.name) for field in fields(stream) if field.name != "name"}
        own |= {what: format_duration(own[what]) for what in ("lateness", "idle_timeout") if own[what] is not None}
        own |= {what: format_moment(own[what]) for what in ("valid_from", "valid_to")}
        own["columns"] = ", ".join(f"{name} {type_}" for name, type_ in schema.columns)
        asked |= {f"{what} of {stream.name!r}": value for what, value in own.items()}
    return json.dumps({what: str(value) for what, value in asked.items()}, ensure_ascii=False)


def another_join(before: str, plan: Plan) -> EngineError:
    """The error that says how the join that wrote the checkpoint differs from this one."""
    then, now = json.loads(before), json.loads(about(plan))
    changed = [what for what in (*then, *(w for w in now if w not in then)) if then.get(what) != now.get(what)]
    said = "; ".join(f"{what} was {then.get(what, 'not there')}, is {now.get(what, 'not there')}" for what in changed)
    return EngineError(
        "The checkpoint was written by another join or for another number of cores"
        f"{f' ({said})' if said else ''}; "
        "go back to the join it was started with, or start with a new checkpointLocation and a new path"
    )
