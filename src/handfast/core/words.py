"""The choices of a plan in words: what was chosen, and why."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.core.recipe import recipe
from handfast.plan.values import SCAN, Choice, PairPlan, Plan


def choices(plan: Plan) -> tuple[Choice, ...]:
    """Every decision with its reason."""
    indexes = (_index_choice(plan, pair) for pair in _shown_pairs(plan))
    return (_routing_choice(plan), *indexes, _window_choice(plan))


def _routing_choice(plan: Plan) -> Choice:
    if plan.cores == 1 and not plan.routing.is_handshake:
        return Choice("routing", "one core", "there is nothing to divide")
    how, why = plan.routing.words(plan)
    return Choice("routing", f"{how}, over {plan.cores} cores", why)


def _shown_pairs(plan: Plan) -> Sequence[PairPlan]:
    """With two streams the only pair; with more those that have an index, or one to say that none has."""
    return plan.pairs if len(plan.pairs) == 1 else [pair for pair in plan.pairs if pair.indexed] or plan.pairs[:1]


def _index_choice(plan: Plan, pair: PairPlan) -> Choice:
    what = "index" if len(plan.pairs) == 1 else ", ".join(plan.name_of(stream) for stream in pair.streams)
    pairing = recipe(plan).pairings[pair.streams]
    if pairing.index is not None:
        return Choice(what, *pairing.index.words(pairing.conditions))
    asked = (
        "it was asked for"
        if plan.local_join == SCAN
        else "no equality and no band of constant width to find candidates by"
    )
    return Choice(what, "none: SIMD scan", asked)


def _window_choice(plan: Plan) -> Choice:
    windows = ", ".join(f"{stream.name}: {stream.window}" for stream in plan.join.spec.streams)
    return Choice("windows", windows, plan.join.interval())
