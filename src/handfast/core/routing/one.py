"""One core for all tuples, where no way to divide them would do."""

from __future__ import annotations

from collections.abc import Iterator

from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.plan import Offer, Plan


class OneRouting(Routing):
    """All tuples go to core 0, which emits all matches; the other cores have nothing to do."""

    name = "one"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        """A full join without shared keys: tuples of both streams would have to meet all their partners at one core."""
        return len(offer.join.preserved) > 1

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_one_core(0)

    def words(self, plan: Plan) -> tuple[str, str]:
        return (
            "one core for all",
            "a full join asks of both streams what matches nothing, which without an equality one core must see",
        )
