"""A plan and what it is made of: values without behaviour of their own, that every layer above reads."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from handfast.spec.classify import Band, Equality
from handfast.spec.expression import Expr
from handfast.spec.fingerprint import Fingerprint
from handfast.spec.join import BoundJoin

if TYPE_CHECKING:
    import pyarrow as pa

    from handfast.core.routing.routing import Routing

INDEX, MERGE, SCAN = LOCAL_JOINS = ("index", "merge", "scan")  # how a core finds candidates in its segments
PLAIN, CIRCULAR, STASHED = ALGORITHMS = ("plain", "circular", "stashed")  # how three and more streams are joined

FIRST = 1  # the number of a rule that was never changed
LAYOUT = FIRST  # of how a core's state is written, its manifest and its blocks: change it with the format

Hot = tuple[Any, ...]  # keys, each a value or a tuple of values; or ranges, each a tuple of two values
Pair = tuple[int, int]  # two streams, the lower first
Keys = tuple[tuple[Expr, ...], ...]  # by stream, the expressions that equal tuples have in common


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
class Offer:
    """What a join offers the routings: by this each of them says whether it takes the join.

    Attributes:
        pairs: What every two of the streams offer an index.
        classes: The keys that are equal in every match, in one entry for each set of streams that have such keys.
        keys: The entry of most streams: the keys that they share; empty for a stream that does not share them.
        cores: Over how many cores the join is to be laid out.
        handshake: Whether the user asked for the handshake.
        hot: The keys, or the ranges of a band's keys, that most tuples have, as the user named them.
    """

    join: BoundJoin
    pairs: tuple[PairPlan, ...]
    classes: tuple[Keys, ...]
    keys: Keys
    cores: int
    handshake: bool
    hot: Hot = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The layout of one join over a number of cores.

    Attributes:
        routing: How tuples are divided among the cores: one of `core/routing/`.
        pairs: What every two of the streams offer an index.
        classes: The keys that are equal in every match, in one entry for each set of streams that have such keys.
        keys: The entry of most streams: the keys that they share; empty for a stream that does not share them.
        anchor: The stream of which each tuple is at one core, where it meets all its partners; without meaning where
            the routing has no such stream.
        local_join: How a core finds candidates: by an index, by merging sorted blocks, or by trying every pair.
        arrow: The streams' columns in Arrow, where they are known.
        hot: The keys, or the ranges of a band's keys, that are shared by all cores; known by the routing that splits.
    """

    join: BoundJoin
    cores: int
    routing: Routing
    pairs: tuple[PairPlan, ...]
    classes: tuple[Keys, ...]
    keys: Keys
    anchor: int
    local_join: str = INDEX
    arrow: tuple[pa.Schema, ...] = field(default=(), compare=False)
    hot: Hot = ()

    @property
    def offer(self) -> Offer:
        """What the routings were asked about."""
        return Offer(self.join, self.pairs, self.classes, self.keys, self.cores, self.routing.is_handshake, self.hot)

    @property
    def fingerprint(self) -> Fingerprint:
        """What must agree for state to be taken over: the join, and how it is laid out."""
        laid_out: dict[str, object] = {
            "layout": LAYOUT,
            "cores": self.cores,
            "routing": f"{self.routing.name}, anchored at {self.name_of(self.anchor)}",
            "routing rule": self.routing.rule,
        }
        if self.hot:
            laid_out["hot"] = repr(self.hot)
        return {what: str(value) for what, value in laid_out.items()} | self.join.fingerprint

    @property
    def digest(self) -> str:
        """The fingerprint in short."""
        return hashlib.blake2b(json.dumps(self.fingerprint).encode(), digest_size=16).hexdigest()

    def name_of(self, stream: int) -> str:
        """The name of the stream of this number."""
        return self.join.spec.names[stream]
