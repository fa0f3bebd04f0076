"""Fingerprints of checkpoints from before they had fields: a hash of the join's `repr`, and the number of cores.

The `repr` of that time is spelled out here, so that a field which came later does not change it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from handfast.plan import FIRST, Plan
from handfast.spec.fingerprint import Fingerprint, without_defaults

_AT_FIRST = {"layout": str(FIRST), "routing rule": str(FIRST)}  # these fields came later
_FIELDS = {
    "JoinSpec": ("streams", "on", "how", "in_order", "select", "order"),
    "Stream": ("name", "window", "time", "lateness", "sequence", "valid_from", "valid_to", "idle_timeout"),
    "TimeWindow": ("length",),
    "CountWindow": ("rows",),
    "Schema": ("columns",),
    "Type": ("kind", "precision", "scale", "label"),
}


def is_of(fingerprint: str, plan: Plan) -> bool:
    """Whether an old fingerprint is this plan's."""
    join = plan.join
    digest = hashlib.blake2b(_repr((join.spec, join.schemas)).encode(), digest_size=16).hexdigest()
    return fingerprint == f"{digest}/{plan.cores}" and _AT_FIRST.items() <= plan.fingerprint.items()


def in_fields(about: Fingerprint, plan: Plan) -> Fingerprint:
    """The description that stands beside an old fingerprint, in the fields of a new one."""
    return without_defaults(about, plan.join.spec) | _AT_FIRST | {"routing": plan.fingerprint["routing"]}


def _repr(value: Any) -> str:
    name = type(value).__name__
    if isinstance(value, tuple):
        return f"({', '.join(map(_repr, value))}{',' if len(value) == 1 else ''})"
    if name in _FIELDS:
        return f"{name}({', '.join(f'{field}={_repr(getattr(value, field))}' for field in _FIELDS[name])})"
    return repr(value)
