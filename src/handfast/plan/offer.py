"""What a join offers those who lay it out: pairs of streams that an index can serve, keys that streams share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from handfast.plan.values import SCAN, Hot, Keys, Offer, Pair, PairPlan
from handfast.spec.classify import Band, Equality
from handfast.spec.expression import Expr
from handfast.spec.join import BoundJoin

MAX_INDEXED_BANDS = 2
_LARGEST_BOUND = 1 << 60


def offer_of(join: BoundJoin, cores: int, local_join: str, *, handshake: bool, hot: Hot = ()) -> Offer:
    """What the join offers; a scan uses neither keys nor indexes."""
    streams = range(len(join.schemas))
    classes = () if local_join == SCAN else _classes(join)
    pairs = tuple(
        PairPlan(pair, (), ()) if local_join == SCAN else _pair_plan(join, pair, classes)
        for pair in combinations(streams, 2)
    )
    most = max(map(_streams_of, classes), key=lambda own: (len(own), [-stream for stream in own]), default=())
    keys = next((own for own in classes if _streams_of(own) == most), ((),) * len(streams))
    return Offer(join, pairs, classes, keys, cores, handshake, hot)


def _pair_plan(join: BoundJoin, pair: Pair, classes: Sequence[Keys]) -> PairPlan:
    """What two streams offer: what the predicate says of them, and the equalities that follow from others."""
    conditions = join.conditions
    said = [equality for equality in conditions.equalities if equality.streams == pair]
    own = ((keys[pair[0]], keys[pair[1]]) for keys in classes)
    follow = (Equality(sides) for keys in own if all(keys) for sides in zip(*keys, strict=True))
    equalities = tuple(said or follow)
    bands = tuple(band for band in conditions.bands if band.streams == pair and _has_room(band))
    return PairPlan(pair, equalities, bands[:MAX_INDEXED_BANDS])


def _classes(join: BoundJoin) -> tuple[Keys, ...]:
    """The keys that tuples of a match have in common, in one entry for each set of streams that have such keys.

    Equalities chain: with r.k = s.k and s.k = t.k all three are equal.
    """
    classes: list[list[tuple[int, Expr]]] = []
    for equality in join.conditions.equalities:
        members = list(zip(equality.streams, equality.sides, strict=True))
        touching = [own for own in classes if any(member in own for member in members)]
        classes = [own for own in classes if own not in touching]
        classes.append(list(dict.fromkeys([*(member for own in touching for member in own), *members])))
    reach = [frozenset(stream for stream, _ in own) for own in classes]
    return tuple(
        tuple(
            tuple(next(expr for member, expr in own if member == stream) for own in alike) if stream in streams else ()
            for stream in range(len(join.schemas))
        )
        for streams in dict.fromkeys(reach)
        if (alike := [own for own, reached in zip(classes, reach, strict=True) if reached == streams])
    )


def _streams_of(keys: Keys) -> tuple[int, ...]:
    return tuple(stream for stream, own in enumerate(keys) if own)


def _has_room(band: Band) -> bool:
    """Whether the band's bounds are small enough for sums of keys and bounds to stay inside int64."""
    return max(abs(band.low), abs(band.high), band.constants) < _LARGEST_BOUND
