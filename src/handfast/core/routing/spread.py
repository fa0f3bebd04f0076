"""Spread: one stream's tuples are divided, those of all others go to every core."""

from __future__ import annotations

from collections.abc import Iterator

from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.plan import Offer, Plan


class SpreadRouting(Routing):
    """A tuple of the anchor goes to one core, by its content, and meets there the tuples of all other streams.

    A match has one tuple of the anchor, which is at one core only: each core emits what it finds.
    """

    name = "spread"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        """Every join: it needs neither keys nor bands, but stores most tuples at every core."""
        return True

    def title(self, offer: Offer) -> str:
        return f"only {offer.join.spec.names[self.anchor(offer)]} divided"

    def copies(self, offer: Offer) -> tuple[int, ...]:
        anchor = self.anchor(offer)
        return tuple(1 if stream == anchor else offer.cores for stream in range(len(offer.join.schemas)))

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_homes(tuples.core_by_content()) if tuples.is_anchor else tuples.to_every_core()

    def words(self, plan: Plan) -> tuple[str, str]:
        anchor = plan.name_of(plan.anchor)
        others = " and ".join(repr(name) for k, name in enumerate(plan.join.spec.names) if k != plan.anchor)
        why = (
            f"whether a tuple of {anchor!r} matches anything is decided where it meets all of {others}"
            if plan.join.preserved
            else "no key is common to the streams"
        )
        return f"tuples of {anchor!r} divided, those of {others} on every core", why
