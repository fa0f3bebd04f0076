"""Whether a checkpoint is this join's to go on from; if not, in what its own differs."""

from __future__ import annotations

import json

from handfast.engines.spark import old_fingerprint
from handfast.errors import EngineError
from handfast.plan import Plan
from handfast.spec.fingerprint import Fingerprint

_FOLLOWS = ("layout", "routing", "routing rule")  # from what is asked, and from the version of handfast


def about(plan: Plan) -> str:
    """What was asked, as it stands beside the state."""
    return json.dumps(plan.fingerprint, ensure_ascii=False)


def check(before: Fingerprint | str, about_it: str, plan: Plan) -> None:
    """Refuse the state of another join, or of one that is laid out in another way, and say how it differs."""
    if isinstance(before, str):
        if not old_fingerprint.is_of(before, plan):
            raise _another_join(old_fingerprint.in_fields(json.loads(about_it), plan), plan)
    elif before != plan.fingerprint:
        raise _another_join(before, plan)


def _another_join(then: Fingerprint, plan: Plan) -> EngineError:
    now = plan.fingerprint
    changed = [what for what in (*then, *(w for w in now if w not in then)) if then.get(what) != now.get(what)]
    asked = [what for what in changed if what not in _FOLLOWS]
    words = "; ".join(
        f"{what} was {then.get(what, 'the default')}, is {now.get(what, 'the default')}" for what in asked or changed
    )
    return EngineError(
        f"The checkpoint was written by another join or for another number of cores ({words}); "
        "go back to the join it was started with, or start with a new checkpointLocation and a new path"
    )
