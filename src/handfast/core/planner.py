"""From a join to its plan: what the predicate offers, and the first routing that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handfast.core.routing.registry import routing_for
from handfast.plan import INDEX, Hot, Plan
from handfast.plan.offer import offer_of
from handfast.spec.join import BoundJoin

if TYPE_CHECKING:
    import pyarrow as pa


def make_plan(
    join: BoundJoin,
    cores: int,
    arrow: Sequence[pa.Schema] = (),
    local_join: str = INDEX,
    *,
    handshake: bool = False,
    hot: Hot = (),
) -> Plan:
    """Lay a join out over so many cores; by `handshake`, if the user asks for it, along a chain of them.

    `hot` names keys, or ranges of keys, that all cores are to share; for that the columns in Arrow must be known.
    """
    offer = offer_of(join, cores, local_join, handshake=handshake, hot=hot)
    routing = routing_for(offer)
    anchor = routing.anchor(offer)
    return Plan(join, cores, routing, offer.pairs, offer.classes, offer.keys, anchor, local_join, tuple(arrow), hot)
