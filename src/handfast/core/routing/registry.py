"""Every routing, in the order in which they are asked: the first that takes a join has it. A new one is added here."""

from __future__ import annotations

from handfast.core.routing.handshake import HandshakeRouting
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.hypercube import HypercubeRouting
from handfast.core.routing.meet import MeetRouting
from handfast.core.routing.one import OneRouting
from handfast.core.routing.range import RangeRouting
from handfast.core.routing.routing import Routing
from handfast.core.routing.split_hash import SplitHashRouting
from handfast.core.routing.split_range import SplitRangeRouting
from handfast.core.routing.spread import SpreadRouting
from handfast.plan import Offer

ROUTINGS: tuple[Routing, ...] = (
    HandshakeRouting(),
    SplitHashRouting(),
    HypercubeRouting(),
    HashRouting(),
    OneRouting(),
    SplitRangeRouting(),
    RangeRouting(),
    MeetRouting(),
    SpreadRouting(),  # takes every join
)


def routing_for(offer: Offer) -> Routing:
    """The first routing that takes the join."""
    return next(routing for routing in ROUTINGS if routing.takes(offer))
