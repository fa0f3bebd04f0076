"""What a join offers those who lay it out: pairs of streams that an index can serve, keys that streams share."""

from __future__ import annotations

from itertools import combinations

from handfast.plan.values import SCAN, Keys, Offer, Pair, PairPlan
from handfast.spec.classify import Band
from handfast.spec.expression import Expr
from handfast.spec.join import BoundJoin

MAX_INDEXED_BANDS = 2
_LARGEST_BOUND = 1 << 60


def offer_of(join: BoundJoin, local_join: str, *, handshake: bool) -> Offer:
    """What the join offers; a scan uses neither keys nor indexes."""
    streams = range(len(join.schemas))
    pairs = tuple(
        PairPlan(pair, (), ()) if local_join == SCAN else _pair_plan(join, pair) for pair in combinations(streams, 2)
    )
    keys = ((),) * len(streams) if local_join == SCAN else _common_keys(join)
    return Offer(join, pairs, keys, handshake)


def _pair_plan(join: BoundJoin, pair: Pair) -> PairPlan:
    conditions = join.conditions
    equalities = tuple(equality for equality in conditions.equalities if equality.streams == pair)
    bands = tuple(band for band in conditions.bands if band.streams == pair and _has_room(band))
    return PairPlan(pair, equalities, bands[:MAX_INDEXED_BANDS])


def _common_keys(join: BoundJoin) -> Keys:
    """By stream, the keys that tuples of a match have in common: of as many streams as there can be.

    Equalities chain: with r.k = s.k and s.k = t.k all three are equal.
    """
    classes: list[list[tuple[int, Expr]]] = []
    for equality in join.conditions.equalities:
        members = list(zip(equality.streams, equality.sides, strict=True))
        touching = [own for own in classes if any(member in own for member in members)]
        classes = [own for own in classes if own not in touching]
        classes.append(list(dict.fromkeys([*(member for own in touching for member in own), *members])))
    reach = [frozenset(stream for stream, _ in own) for own in classes]
    most = max(reach, key=lambda streams: (len(streams), [-s for s in sorted(streams)]), default=frozenset())
    chosen = [own for own, streams in zip(classes, reach, strict=True) if streams == most]
    return tuple(
        tuple(next(expr for member, expr in own if member == stream) for own in chosen) if stream in most else ()
        for stream in range(len(join.schemas))
    )


def _has_room(band: Band) -> bool:
    """Whether the band's bounds are small enough for sums of keys and bounds to stay inside int64."""
    return max(abs(band.low), abs(band.high), band.constants) < _LARGEST_BOUND
