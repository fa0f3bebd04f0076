"""How a join is laid out: routing, indexes, cores, and the reason for each choice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING

from handfast.errors import UnsupportedError
from handfast.spec.classify import Band, Equality
from handfast.spec.expression import Expr
from handfast.spec.fingerprint import Fingerprint
from handfast.spec.join import BoundJoin

if TYPE_CHECKING:
    import pyarrow as pa

MAX_INDEXED_BANDS = 2
_LARGEST_BOUND = 1 << 60

INDEX, MERGE, SCAN = LOCAL_JOINS = ("index", "merge", "scan")  # what a core does with its segments

FIRST = 1  # the number of a rule that was never changed
LAYOUT = FIRST  # how a core's state is written, its manifest and its blocks: another number for another way

Pair = tuple[int, int]  # two streams, the lower first


class Routing(Enum):
    """Which cores a tuple is sent to."""

    HASH = "hash"  # the one core of its keys; tuples of streams without them go everywhere
    RANGE = "range"  # the core of its stripe; copies of the other stream's where its partners' stripes begin
    MEET = "meet"  # every core: stored at one of them, it meets the tuples stored at the others
    SPREAD = "spread"  # one stream's tuples to one core each, those of all others to every core
    ONE = "one"  # one core for all
    WALK = "walk"  # from core to core along a chain, the two streams from opposite ends


# The rule by which each routing finds a tuple's cores: another number wherever it may find others than before.
_RULES = {
    Routing.HASH: FIRST,
    Routing.RANGE: FIRST,
    Routing.MEET: FIRST,
    Routing.SPREAD: FIRST,
    Routing.ONE: FIRST,
    Routing.WALK: FIRST,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision of the plan, for people."""

    what: str
    choice: str
    reason: str


@dataclass(frozen=True, slots=True)
class PairPlan:
    """How the partners of a tuple are found among those of one other stream."""

    streams: Pair
    equalities: tuple[Equality, ...]
    bands: tuple[Band, ...]

    @property
    def indexed(self) -> bool:
        """Whether an index proposes candidates; otherwise every pair in the windows is tried."""
        return bool(self.equalities or self.bands)


@dataclass(frozen=True, slots=True)
class Plan:
    """The layout of one join over a number of cores.

    Attributes:
        pairs: What every two of the streams offer an index.
        keys: Where routing is by hash, the keys of every stream; empty for one that goes everywhere.
        anchor: The stream of which each tuple is at one core, where it meets all its partners. With `MEET` there is
            none.
        local_join: How a core finds candidates: by an index, by merging sorted blocks, or by trying every pair.
        arrow: The streams' columns in Arrow, where they are known.
    """

    join: BoundJoin
    cores: int
    routing: Routing
    pairs: tuple[PairPlan, ...]
    keys: tuple[tuple[Expr, ...], ...]
    anchor: int
    local_join: str = INDEX
    arrow: tuple[pa.Schema, ...] = field(default=(), compare=False)

    @property
    def fingerprint(self) -> Fingerprint:
        """What must agree for state to be taken over: the join, and how it is laid out."""
        laid_out = {
            "layout": LAYOUT,
            "cores": self.cores,
            "routing": f"{self.routing.value}, anchored at {self._name(self.anchor)}",
            "routing rule": _RULES[self.routing],
        }
        return {what: str(value) for what, value in laid_out.items()} | self.join.fingerprint

    @property
    def digest(self) -> str:
        """The fingerprint in short."""
        return hashlib.blake2b(json.dumps(self.fingerprint).encode(), digest_size=16).hexdigest()

    def choices(self) -> tuple[Choice, ...]:
        """Every decision with its reason."""
        return (self._routing_choice(), *map(self._index_choice, self._shown_pairs()), self._window_choice())

    def _routing_choice(self) -> Choice:
        if self.cores == 1 and self.routing is not Routing.WALK:
            return Choice("routing", "one core", "there is nothing to divide")
        choice, reason = {
            Routing.HASH: self._hash_choice(),
            Routing.RANGE: self._range_choice(),
            Routing.MEET: (
                "store once, meet everywhere",
                ("a scan was asked for" if self.local_join == SCAN else "neither equality nor band joins the streams")
                + ": every core sees every new tuple and stores its share",
            ),
            Routing.SPREAD: self._spread_choice(),
            Routing.ONE: (
                "one core for all",
                "a full join asks of both streams what matches nothing, which without an equality one core must see",
            ),
            Routing.WALK: (
                "a handshake chain",
                "it was asked for: the streams walk past each other, every core holds a segment of both windows",
            ),
        }[self.routing]
        return Choice("routing", f"{choice}, over {self.cores} cores", reason)

    def _hash_choice(self) -> tuple[str, str]:
        everywhere = [name for name, keys in zip(self.join.spec.names, self.keys, strict=True) if not keys]
        if not everywhere:
            return "hash", "equal keys are sent to the same core, each tuple to one"
        keyed = [name for name in self.join.spec.names if name not in everywhere]
        return (
            f"hash of {' and '.join(keyed)}",
            f"they share keys, {' and '.join(everywhere)} does not: its tuples are sent to every core",
        )

    def _range_choice(self) -> tuple[str, str]:
        return (
            "range, with copies at the borders",
            f"no equality, but a band: tuples of {self._name(self.anchor)!r} go to the core of their stripe, "
            f"those of {self._name(int(self.anchor == 0))!r} also to the stripes next to a border",
        )

    def _spread_choice(self) -> tuple[str, str]:
        others = " and ".join(repr(name) for k, name in enumerate(self.join.spec.names) if k != self.anchor)
        why = (
            f"whether a tuple of {self._name(self.anchor)!r} matches anything is decided where it meets all of {others}"
            if self.join.preserved
            else "no key is common to the streams"
        )
        return (
            f"tuples of {self._name(self.anchor)!r} divided, those of {others} on every core",
            why,
        )

    def _shown_pairs(self) -> Sequence[PairPlan]:
        """The pairs that have something to tell: with two streams the one there is."""
        return self.pairs if len(self.pairs) == 1 else [pair for pair in self.pairs if pair.indexed] or self.pairs[:1]

    def _index_choice(self, pair: PairPlan) -> Choice:
        what = "index" if len(self.pairs) == 1 else f"{self._name(pair.streams[0])}, {self._name(pair.streams[1])}"
        if self.local_join == SCAN:
            return Choice(what, "none: SIMD scan", "it was asked for")
        if self.local_join == MERGE and pair.bands:
            sorted_by = "the equalities and the first band" if pair.equalities else "the first band"
            return Choice(what, f"merge of blocks sorted by {sorted_by}", "it was asked for")
        if not pair.indexed:
            return Choice(what, "none: SIMD scan", "no equality and no band of constant width to find candidates by")
        parts = []
        if pair.equalities:
            parts.append(f"hash on {len(pair.equalities)} equalit{'y' if len(pair.equalities) == 1 else 'ies'}")
        if pair.bands:
            parts.append(f"buckets on {len(pair.bands)} band{'' if len(pair.bands) == 1 else 's'}")
        return Choice(
            what, " and ".join(parts), "it proposes candidates; the whole predicate is checked on each, as written"
        )

    def _window_choice(self) -> Choice:
        windows = ", ".join(f"{s.name}: {s.window}" for s in self.join.spec.streams)
        return Choice("windows", windows, self.join.interval())

    def _name(self, stream: int) -> str:
        return self.join.spec.names[stream]


def make_plan(
    join: BoundJoin, cores: int, arrow: Sequence[pa.Schema] = (), local_join: str = INDEX, *, walks: bool = False
) -> Plan:
    """Lay a join out over so many cores; in a handshake chain if it `walks`."""
    pairs = tuple(_pair_plan(join, pair, local_join) for pair in combinations(range(len(join.schemas)), 2))
    keys = _common_keys(join) if local_join != SCAN else ((),) * len(join.schemas)
    anchor = join.preserved[0] if join.preserved else 0
    if walks:
        _check_walk(join)
        routing = Routing.WALK
    elif any(keys):
        routing = Routing.HASH
        anchor = next(stream for stream, own in enumerate(keys) if own)
    elif len(join.preserved) > 1:
        routing = Routing.ONE
    elif len(pairs) == 1 and pairs[0].bands:
        routing = Routing.RANGE
    elif len(pairs) == 1 and not join.preserved:
        routing = Routing.MEET
    else:
        routing = Routing.SPREAD
    return Plan(join, cores, routing, pairs, keys, anchor, local_join, tuple(arrow))


def _check_walk(join: BoundJoin) -> None:
    """Refuse a join that cannot walk: what matches nothing, a core of a chain cannot know."""
    streams, how = len(join.schemas), join.spec.how
    if streams != 2 or how != "inner":
        raise UnsupportedError(
            "LocalOptions(forwarding='handshake') joins two streams with how='inner', not "
            f"{f'{streams} streams' if streams != 2 else f'how={how!r}'}; leave forwarding out"
        )


def _pair_plan(join: BoundJoin, pair: Pair, local_join: str) -> PairPlan:
    conditions = join.conditions
    if local_join == SCAN:
        return PairPlan(pair, (), ())
    bands = [band for band in conditions.bands if band.streams == pair and _has_room(band)]
    return PairPlan(
        pair, tuple(e for e in conditions.equalities if e.streams == pair), tuple(bands[:MAX_INDEXED_BANDS])
    )


def _common_keys(join: BoundJoin) -> tuple[tuple[Expr, ...], ...]:
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
