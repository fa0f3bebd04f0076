"""The handshake: two streams pass each other along a chain of cores, entering it at opposite ends [HSJ §3]."""

from __future__ import annotations

from collections.abc import Iterator

from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.errors import UnsupportedError
from handfast.plan import Offer, Plan


class HandshakeRouting(Routing):
    """A tuple goes to its stream's end of the chain; from there the cores hand it on, until its window is over.

    Two tuples meet at exactly one core, where they cross: each core emits what it finds. How a tuple is handed on, and
    what a core holds meanwhile, is the business of the engine that runs the chain.
    """

    name = "handshake"
    rule = 1
    is_handshake = True
    given = "when its tuples have come to the same core, at the latest when the streams end"

    def takes(self, offer: Offer) -> bool:
        """A join that the user wants it for.

        One that it cannot run is refused: no core of a chain knows whether a tuple matches nothing.
        """
        streams, how = len(offer.join.schemas), offer.join.spec.how
        if offer.handshake and (streams != 2 or how != "inner"):
            raise UnsupportedError(
                "LocalOptions(forwarding='handshake') joins two streams with how='inner', not "
                f"{f'{streams} streams' if streams != 2 else f'how={how!r}'}; leave forwarding out"
            )
        return offer.handshake

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_one_core(0 if tuples.stream == 0 else tuples.plan.cores - 1)

    def words(self, plan: Plan) -> tuple[str, str]:
        return (
            "a handshake chain",
            "it was asked for: the streams pass each other, and every core holds a segment of both windows",
        )
