"""The choices of a plan in words: what was chosen, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handfast.core.recipe import recipe
from handfast.core.routing import registry
from handfast.core.routing.routing import Routing
from handfast.plan.values import SCAN, Choice, PairPlan, Plan


def choices(plan: Plan) -> tuple[Choice, ...]:
    """Every decision with its reason."""
    indexes = (_index_choice(plan, pair) for pair in _shown_pairs(plan))
    return (_routing_choice(plan), *_copies_choice(plan), *indexes, window_choice(plan))


def _routing_choice(plan: Plan) -> Choice:
    if plan.cores == 1 and not plan.routing.is_handshake:
        return Choice("routing", "one core", "there is nothing to divide")
    how, why = plan.routing.words(plan)
    return Choice("routing", f"{how}, over {plan.cores} cores", why)


def _copies_choice(plan: Plan) -> Iterator[Choice]:
    """With three streams and more: to how many cores a tuple of each goes, and how many it would be in other ways."""
    taken = plan.routing.copies(plan.offer)
    if len(taken) < 3 or plan.cores == 1:
        return
    (first, cores), *rest = zip(plan.join.spec.names, taken, strict=True)
    others = sorted((sum(copies), routing.title(plan.offer), copies) for routing, copies in _other_ways(plan))
    more = ", ".join(f"{title} ({_by_stream(plan, copies)})" for _, title, copies in others)
    yield Choice(
        "copies",
        f"a tuple of {first} goes to {cores} core{'s' if cores > 1 else ''}, "
        + ", ".join(f"of {name} to {count}" for name, count in rest),
        f"other ways send more, if every stream has as many rows: {more}"
        if more
        else "without keys there is no other way",
    )


def _other_ways(plan: Plan) -> Iterator[tuple[Routing, tuple[int, ...]]]:
    for routing in registry.ROUTINGS:
        if routing != plan.routing and (copies := routing.copies(plan.offer)):
            yield routing, copies


def _by_stream(plan: Plan, copies: Sequence[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(plan.join.spec.names, copies, strict=True))


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


def window_choice(plan: Plan) -> Choice:
    """The windows, and what they mean as an interval."""
    windows = ", ".join(f"{stream.name}: {stream.window}" for stream in plan.join.spec.streams)
    return Choice("windows", windows, plan.join.interval())
