"""Meet: every tuple is stored at one core and meets the tuples stored at all others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.flow.block import HOME, Block
from handfast.plan import SCAN, Offer, Plan


class MeetRouting(Routing):
    """A tuple goes to every core and is stored at its home alone.

    So a pair meets where the one that came first is stored, and only there: each core emits what it finds.
    """

    name = "meet"
    rule = 1
    any_core_may_store = True

    def takes(self, offer: Offer) -> bool:
        """Two streams and an inner join, where neither keys nor a band divide the tuples."""
        return len(offer.pairs) == 1 and not offer.join.preserved

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_every_core()

    def kept(self, block: Block) -> NDArray[np.bool_]:
        """Only the tuples at home here: the others just meet what is stored, and go."""
        at_home: NDArray[np.bool_] = (block.flags & HOME) != 0
        return at_home

    def words(self, plan: Plan) -> tuple[str, str]:
        why = "a scan was asked for" if plan.local_join == SCAN else "neither equality nor band joins the streams"
        return "store once, meet everywhere", f"{why}: every core sees every new tuple and stores its share"
