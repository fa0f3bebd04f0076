"""Joins of three streams and more that differ in the keys the streams share, and so in how cores divide them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from handfast.core.planner import make_plan
from tests.strategies.cases import Case
from tests.strategies.maker import MAX_ROWS, Maker
from tests.strategies.shapes import Shape
from tests.strategies.values import TICKS

Edge = tuple[int, int]

STREAMS = (3, 4, 5, 8)
KINDS = ("common key", "partial keys", "chain", "star", "cycle", "theta", "any")
_MOST_ROWS = MAX_ROWS | {5: 11, 8: 6}
_KEYS = ("int", "bigint", "string", "double", "bool", "smallint")
_TWO_VALUES = ("bool",)  # so that eight are equal
_NUMBERS = ("int", "bigint", "smallint", "tinyint")


@dataclass
class _Conditions:
    """Conditions over columns that are made for them, a few for each stream."""

    rng: random.Random
    streams: int
    said: list[str] = field(default_factory=list)
    columns: list[list[tuple[str, str]]] = field(default_factory=list)  # by stream, role and kind
    holes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in range(self.streams)]

    def equal(self, members: Sequence[int]) -> None:
        """One key that all these streams share, in types that compare."""
        numbers = ("int", "bigint", "double", "smallint")
        kinds = self.rng.choice((numbers, (self.rng.choice(_KEYS),))) if self.streams < 8 else _TWO_VALUES
        roles = [self._column(stream, self.rng.choice(kinds)) for stream in members]
        self.said += [f"{{{a}}} = {{{b}}}" for a, b in pairwise(roles)]

    def either(self, edge: Edge) -> None:
        """An equality, a band, or what no index can serve."""
        self.rng.choice((self.equal, self.band, self.theta))(edge)

    def band(self, edge: Edge) -> None:
        a, b = (self._column(stream, self.rng.choice((*_NUMBERS, "double"))) for stream in edge)
        self.said.append(f"ABS({{{a}}} - {{{b}}}) <= {{{self._hole('wide')}}}")

    def theta(self, edge: Edge) -> None:
        a, b = (self._column(stream, self.rng.choice(_NUMBERS)) for stream in edge)
        self.said.append(self.rng.choice(("{{{}}} <= {{{}}}", "{{{}}} <> {{{}}}", "{{{}}} + {{{}}} < 2")).format(a, b))

    def at_once(self, members: Sequence[int]) -> None:
        """A condition that is one over all of these streams."""
        roles = [self._column(stream, self.rng.choice(_NUMBERS)) for stream in members]
        self.said.append(" + ".join(f"{{{role}}}" for role in roles) + f" <= {{{self._hole('width')}}}")

    def shape(self, name: str) -> Shape:
        own = [" ".join(f"{role}:{kind}" for role, kind in columns) for columns in self.columns]
        holes = " ".join(f"{hole}:{kind}" for hole, kind in self.holes.items())
        return Shape(f"{self.streams} streams, {name}", " AND ".join(self.said), own[0], own[1], holes, tuple(own[2:]))

    def _column(self, stream: int, kind: str) -> str:
        """A column of a stream: a new one, or one of this kind that it has."""
        alike = [role for role, own in self.columns[stream] if own == kind]
        if alike and self.rng.random() < 0.5:
            return self.rng.choice(alike)
        role = f"{'abcdefgh'[stream]}{len(self.columns[stream])}"
        self.columns[stream].append((role, kind))
        return role

    def _hole(self, kind: str) -> str:
        self.holes[name := f"hole{len(self.holes)}"] = kind
        return name


def _common_key(made: _Conditions) -> None:
    made.equal(range(made.streams))
    if made.rng.random() < 0.5:
        made.rng.choice((made.band, made.theta))(_edge(made))


def _partial_keys(made: _Conditions) -> None:
    """Keys each of which only some of the streams have, so that no core can have all of a match by one of them."""
    members = [set(range(made.streams)) for _ in range(made.rng.choice((2, 2, 3)))]
    for number, own in enumerate(members):
        own.discard(made.rng.randrange(made.streams))
        own.discard(number)
        if made.streams > 3 and made.rng.random() < 0.5:
            own.discard(made.rng.choice(sorted(own)))
    for own in members:
        made.equal(made.rng.sample(sorted(own), len(own)) if len(own) > 1 else [*own, (max(own) + 1) % made.streams])


def _chain(made: _Conditions) -> None:
    order = made.rng.sample(range(made.streams), made.streams)
    for edge in pairwise(order):
        made.either(edge)


def _star(made: _Conditions) -> None:
    middle, *others = made.rng.sample(range(made.streams), made.streams)
    for other in others:
        made.either((middle, other))


def _cycle(made: _Conditions) -> None:
    for stream in range(made.streams):
        made.either((stream, (stream + 1) % made.streams))


def _theta(made: _Conditions) -> None:
    for edge in pairwise(made.rng.sample(range(made.streams), made.streams)):
        made.theta(edge)
    made.at_once(made.rng.sample(range(made.streams), 3))


def _any(made: _Conditions) -> None:
    """Edges between any two; a stream may have none."""
    for _ in range(made.rng.randint(1, made.streams)):
        made.either(_edge(made))
    if made.rng.random() < 0.3:
        made.at_once(made.rng.sample(range(made.streams), 3))


def _edge(made: _Conditions) -> Edge:
    a, b = made.rng.sample(range(made.streams), 2)
    return a, b


_MADE: dict[str, Callable[[_Conditions], None]] = dict(
    zip(KINDS, (_common_key, _partial_keys, _chain, _star, _cycle, _theta, _any), strict=True)
)


class _Maker(Maker):
    """Draws one case; five streams and more meet only where next to nothing keeps them apart."""

    def __init__(self, rng: random.Random, for_spark: bool, shape: Shape) -> None:
        super().__init__(rng, for_spark, shape)
        self._many = shape.streams > 4
        if self._many:
            self.draw.reach, self.draw.specials, self.draw.nulls = 1, 0.0, min(self.draw.nulls, 0.05)

    def _size(self) -> int:
        most = _MOST_ROWS[len(self.streams)]
        return self.rng.randrange(most // 2, most + 1) if self._many else super()._size()

    def _windows(self, streams: tuple[str, ...]) -> Any:
        if not self._many:
            return super()._windows(streams)
        ticks = [self.rng.randint(self.draw.span // 2, self.draw.span) for _ in streams]
        one, tick = self.rng.random() < 0.4, self.draw.tick
        if one:
            return timedelta(microseconds=ticks[0] * tick)
        return {name: f"{own} {TICKS[tick]}" for name, own in zip(streams, ticks, strict=True)}


def keyed_shape(rng: random.Random, streams: int, kind: str) -> Shape:
    """A random condition over so many streams, of one kind."""
    made = _Conditions(rng, streams)
    _MADE[kind](made)
    return made.shape(kind)


def keyed_case(seed: int, *, for_spark: bool = False) -> Case:
    """The join of many streams with this number: all kinds of conditions and numbers of streams by turns, windows too.

    Windows are by time, by count for all or for some; more cores than in other cases, so that grids have sides.
    """
    rng = random.Random(seed)
    streams, kind = STREAMS[seed % len(STREAMS)], KINDS[seed // len(STREAMS) % len(KINDS)]
    case = Case(**_Maker(rng, for_spark, keyed_shape(rng, streams, kind)).parts())
    if seed % 3 == 1:
        case = case.counted(rng)
    return replace(case, cores=rng.choice((1, 2, 3, 4, 6, 8)), origin=f"keyed_case({seed}, for_spark={for_spark})")


def routing_of(case: Case) -> str:
    """How the case's tuples are divided among its cores."""
    return make_plan(case.join, case.cores).routing.name
