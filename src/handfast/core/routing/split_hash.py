"""Hash routing with hot keys split: a key that most tuples have is shared by all cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from handfast.core.routing.hash import HashRouting
from handfast.core.routing.hot import hot_groups
from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.flow.block import HOME
from handfast.kernels.index.keys import equal_keys
from handfast.plan import Offer, Plan


class SplitHashRouting(HashRouting):
    """A tuple goes to the core of its keys. If they are hot: the anchor's to any one core, the other's to every core.

    A match has one tuple of the anchor, which is at one core only: each core emits what it finds.
    """

    name = "hash, hot keys split"

    def takes(self, offer: Offer) -> bool:
        """Two streams that share keys, some of them named as hot; not a full join, which has two anchors."""
        return bool(offer.hot) and len(offer.pairs) == 1 and any(offer.keys) and len(offer.join.preserved) < 2

    def anchor(self, offer: Offer) -> int:
        return Routing.anchor(self, offer)

    def copies(self, offer: Offer) -> tuple[int, ...]:
        """It is no way for three streams or more."""
        return ()

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        bits, keyless = equal_keys(tuples.columns, tuples.recipe.keys[tuples.stream])
        hot = np.isin(bits, hot_groups(tuples.plan)) & ~keyless
        homes = np.where(hot | keyless, tuples.core_by_content(), tuples.core_of(bits))
        if tuples.is_anchor:
            yield from tuples.to_homes(homes)
            return
        for core in range(tuples.plan.cores):
            rows = np.flatnonzero((homes == core) | hot)
            yield core, rows, np.where(homes[rows] == core, HOME, 0).astype(np.uint8)

    def words(self, plan: Plan) -> tuple[str, str]:
        anchor, other = plan.name_of(plan.anchor), plan.name_of(1 - plan.anchor)
        count = len(plan.hot)
        return (
            f"hash, {count} hot key{'s' if count > 1 else ''} split",
            f"equal keys are sent to the same core; of the hot ones the tuples of {anchor!r} are divided, each stored "
            f"once, and meet those of {other!r}, which are sent to every core",
        )
