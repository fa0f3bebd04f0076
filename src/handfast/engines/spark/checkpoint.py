"""Whether a join may go on from a checkpoint; if not, how the join that wrote it differs."""

from __future__ import annotations

import json

from handfast.engines.spark import old_fingerprint
from handfast.errors import EngineError
from handfast.plan import Plan
from handfast.spec.fingerprint import Fingerprint, changes

_DERIVED = ("layout", "routing", "routing rule")  # nobody asks for these: they follow from the rest and the version


def about(plan: Plan) -> str:
    """The join's description as it stands beside the state."""
    return json.dumps(plan.fingerprint, ensure_ascii=False)


def check(before: Fingerprint | str, about_it: str, plan: Plan) -> None:
    """Refuse the state of another join, or of one that is laid out in another way, and say what differs."""
    if isinstance(before, str):
        if not old_fingerprint.is_of(before, plan):
            raise _another_join(old_fingerprint.in_fields(json.loads(about_it), plan), plan)
    elif before != plan.fingerprint:
        raise _another_join(before, plan)


def _another_join(then: Fingerprint, plan: Plan) -> EngineError:
    changed = changes(then, plan.fingerprint)
    asked = [line for what, line in changed.items() if what not in _DERIVED]
    return EngineError(
        "The checkpoint was written by another join or for another number of cores "
        f"({'; '.join(asked or changed.values())}); "
        "go back to the join it was started with, or start with a new checkpointLocation and a new path"
    )
