"""Range routing: the keys of a band are cut into stripes, and each stripe belongs to a core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.core.probe import Members, NewTuples
from handfast.core.routing.outgoing import CoreNumbers, Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.core.segment import Segment
from handfast.flow.block import EVERYWHERE, HOME
from handfast.kernels.index.bands import BandScale
from handfast.kernels.index.keys import mix
from handfast.plan import Offer, Plan

STRIPE_BITS = 4  # a stripe is 16 buckets wide: few tuples lie near its borders

_WILD_CORE = 0  # where an outer join's wild tuples are, and all they may meet


class RangeRouting(Routing):
    """A tuple of the anchor goes to the core of its stripe; one of the other stream wherever its partners can lie.

    A *wild* tuple, whose partners can lie anywhere, goes to every core. Where rows that match something or nothing are
    asked for, the anchor's wild tuples are all at one core instead, and so is every tuple of the other stream.
    """

    name = "range"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        """Two streams that a band joins."""
        return len(offer.pairs) == 1 and bool(offer.pairs[0].bands)

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        scale = BandScale(tuples.plan.pairs[0].bands[0], tuples.recipe.program)
        keys = scale.keys(tuples.stream, tuples.columns)
        if tuples.is_anchor:
            first = last = scale.buckets(keys) >> STRIPE_BITS
        else:
            first, last = (buckets >> STRIPE_BITS for buckets in scale.partners(tuples.stream, keys))
        homes, visits = _core_of_stripe(tuples, first), _core_of_stripe(tuples, last)
        hot = (self.hot(tuples, first) | self.hot(tuples, last)) & ~keys.dead & ~keys.wild
        if hot.any():
            homes = np.where(hot, tuples.core_by_content(), homes)
            visits = np.where(hot, homes, visits)
        everywhere = keys.wild if tuples.is_anchor else keys.wild | hot
        if keys.dead.any():
            homes = np.where(keys.dead, tuples.core_by_content(), homes)
            visits = np.where(keys.dead, homes, visits)
        asked = bool(tuples.plan.join.preserved)
        if asked and tuples.is_anchor:
            yield from tuples.to_homes(np.where(keys.wild, _WILD_CORE, homes))
            return
        # the buckets of a tuple's partners are fewer than a stripe has, so they touch at most two stripes
        for core in range(tuples.plan.cores):
            all_here = asked and not scale.tame and core == _WILD_CORE
            here = (homes == core) | (visits == core) | everywhere | (all_here & ~keys.dead)
            rows = np.flatnonzero(here)
            flags = np.where(homes[rows] == core, HOME, 0) | np.where(keys.wild[rows], EVERYWHERE, 0)
            yield core, rows, flags.astype(np.uint8)

    def hot(self, tuples: Outgoing, stripes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these stripes are shared by all cores; none, unless ranges are split."""
        return np.zeros(len(stripes), np.bool_)

    def emitted(self, plan: Plan, new: NewTuples, stored: Sequence[Segment], members: Members) -> Members:
        """Leave out the pairs that another core emits: those of wild tuples meet on several.

        Two tuples neither of which went everywhere meet on one core only, and that core emits the pair. Otherwise the
        pair is emitted at the home of the one that did not go everywhere, and at the first stream's home where both
        did.
        """
        if plan.join.preserved:  # then no tuple of the anchor is at several cores
            return members
        if not stored[1 - new.stream].everywhere and not (new.block.flags & EVERYWHERE).any():
            return members
        r, s = (
            (new.block.flags if stream == new.stream else stored[stream].flags)[members[stream]] for stream in (0, 1)
        )
        r_everywhere, s_everywhere = (r & EVERYWHERE) != 0, (s & EVERYWHERE) != 0
        decider = np.where(s_everywhere, r, s)
        own = ~(r_everywhere | s_everywhere) | ((decider & HOME) != 0)
        return {stream: positions[own] for stream, positions in members.items()}

    def words(self, plan: Plan) -> tuple[str, str]:
        return (
            "range, with copies at the borders",
            f"no equality, but a band: tuples of {plan.name_of(plan.anchor)!r} go to the core of their stripe, "
            f"those of {plan.name_of(int(plan.anchor == 0))!r} also to the stripes next to a border",
        )


def _core_of_stripe(tuples: Outgoing, stripes: NDArray[np.int64]) -> CoreNumbers:
    """The core of each stripe: by a hash, or dealt out in turn, so that each core has as many even of a few.

    Every round of turns begins with another core, for keys may lie a whole number of rounds apart.
    """
    if not tuples.in_turn:
        return tuples.core_of(mix(stripes.view(np.uint64)))
    rounds, turns = np.divmod(stripes, tuples.plan.cores)
    return (turns + tuples.core_of(mix(rounds.view(np.uint64)))) % tuples.plan.cores
