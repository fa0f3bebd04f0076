"""Hash routing: equal keys go to the same core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.kernels.index.keys import equal_keys
from handfast.plan import Keys, Offer, Plan


class HashRouting(Routing):
    """A tuple goes to the one core of its keys; tuples of streams that do not share the keys go to every core.

    All members of a match that have keys are at one core, and only there: each core emits what it finds.
    """

    name = "hash"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        """Streams that share keys."""
        return any(offer.keys)

    def anchor(self, offer: Offer) -> int:
        return next(stream for stream, own in enumerate(offer.keys) if own)

    def title(self, offer: Offer) -> str:
        return _title(offer.join.spec.names, offer.keys)

    def copies(self, offer: Offer) -> tuple[int, ...]:
        return tuple(1 if own else offer.cores for own in offer.keys) if any(offer.keys) else ()

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        if not tuples.plan.keys[tuples.stream]:
            yield from tuples.to_every_core()
            return
        bits, keyless = equal_keys(tuples.columns, tuples.recipe.keys[tuples.stream])
        homes = tuples.core_of(bits)
        if keyless.any():  # without a key a tuple meets nobody: any core will do
            homes = np.where(keyless, tuples.core_by_content(), homes)
        yield from tuples.to_homes(homes)

    def words(self, plan: Plan) -> tuple[str, str]:
        everywhere = [name for name, keys in zip(plan.join.spec.names, plan.keys, strict=True) if not keys]
        if not everywhere:
            return "hash", "equal keys are sent to the same core, each tuple to one"
        return (
            _title(plan.join.spec.names, plan.keys),
            f"they share keys, {' and '.join(everywhere)} does not: its tuples are sent to every core",
        )


def _title(names: Sequence[str], keys: Keys) -> str:
    keyed = [name for name, own in zip(names, keys, strict=True) if own]
    return "hash" if len(keyed) == len(names) else f"hash of {' and '.join(keyed)}"
