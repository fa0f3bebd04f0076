"""Range routing with hot ranges split: a part of the key space where most tuples lie is shared by all cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handfast.core.routing.hot import hot_buckets
from handfast.core.routing.outgoing import Outgoing
from handfast.core.routing.range import STRIPE_BITS, RangeRouting
from handfast.plan import Offer, Plan


class SplitRangeRouting(RangeRouting):
    """A tuple of a hot stripe goes to any one core, if it is of the anchor; the other stream's that can meet it to all.

    Only wild tuples are flagged as being everywhere: any other pair meets where the anchor's tuple is, and only there.
    """

    name = "range, hot ranges split"

    def takes(self, offer: Offer) -> bool:
        """What range routing takes, where ranges are named as hot."""
        return bool(offer.hot) and super().takes(offer)

    def hot(self, tuples: Outgoing, stripes: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = np.zeros(len(stripes), np.bool_)
        for low, high in hot_buckets(tuples.plan):
            found |= (stripes >= low >> STRIPE_BITS) & (stripes <= high >> STRIPE_BITS)
        return found

    def words(self, plan: Plan) -> tuple[str, str]:
        choice, why = super().words(plan)
        count = len(plan.hot)
        return (
            f"{choice}, {count} hot range{'s' if count > 1 else ''} split",
            f"{why}; of the stripes that hold a hot range the tuples of {plan.name_of(plan.anchor)!r} are divided, "
            "each stored once, and what can meet them is sent to every core",
        )
