"""Joins of three to 16 streams whose conditions are the edges of a random graph."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa

from tests.strategies.cases import Case
from tests.strategies.maker import Maker
from tests.strategies.shapes import Shape
from tests.strategies.values import TICKS, Draw

GRAPHS = ("chain", "star", "cycle", "tree", "all", "some", "one key")
STREAMS = (3, 3, 4, 5, 3, 4, 8, 3, 4, 5, 3, 6, 3, 4, 5, 8, 3, 3, 4, 9)  # by turns
MOST_ROWS = {3: 14, 4: 7, 5: 5, 6: 4, 8: 3}  # by the number of streams: the oracle tries every combination
_TRIED = 2_000  # combinations of the rows of more streams
WINDOWS = ("time", "count", "time", "mixed", "arrival")

_COLUMNS = "i{0}:int j{0}:bigint d{0}:double w{0}:string p{0}:pattern"  # of every stream

Edge = tuple[int, int]

# what an edge between streams a and b can ask: (by which index it is found, the condition)
_EQUAL = (
    "{{i{a}}} = {{i{b}}}",
    "{{w{a}}} = {{w{b}}}",
    "{{i{a}}} = {{d{b}}}",
    "{{j{b}}} = {{i{a}}} AND {{w{a}}} = {{w{b}}}",
    "{{i{a}}} <=> {{j{b}}}",
)
_BAND = (
    "ABS({{i{a}}} - {{j{b}}}) <= {{d}}",
    "{{j{a}}} BETWEEN {{i{b}}} - {{d}} AND {{i{b}}} + {{d}}",
    "ABS({{d{a}}} - {{d{b}}}) < 2.5D",
    "{{w{a}}} = {{w{b}}} AND ABS({{i{a}}} - {{i{b}}}) <= {{d}}",
)
_THETA = (
    "{{i{a}}} <= {{j{b}}}",
    "{{i{a}}} <> {{i{b}}}",
    "{{w{a}}} <= {{w{b}}}",
    "{{w{a}}} LIKE {{p{b}}}",
    "({{i{a}}} = {{i{b}}} OR {{w{a}}} = {{w{b}}})",
    "{{i{a}}} + {{j{b}}} < {{d}}",
    "({{i{a}}} IS NULL OR {{d{b}}} >= {{i{a}}})",
)


def graph(rng: random.Random, streams: int) -> tuple[str, list[Edge]]:
    """A random graph over so many streams, by name."""
    kind = rng.choice(GRAPHS if streams < 9 else ("chain", "star", "cycle", "tree", "one key"))
    order = rng.sample(range(streams), streams)
    line = list(pairwise(order))
    every = {
        "chain": line,
        "star": [(order[0], other) for other in order[1:]],
        "cycle": [*line, (order[-1], order[0])],
        "tree": [(rng.choice(order[:k]), order[k]) for k in range(1, streams)],
        "all": list(combinations(range(streams), 2)),
        "some": rng.sample(line, rng.randint(1, streams - 1)),
        "one key": line,
    }
    return kind, every[kind]


def graph_shape(rng: random.Random, streams: int) -> Shape:
    """A predicate with holes, made of conditions along the edges of a random graph."""
    kind, edges = graph(rng, streams)
    conditions = []
    for number, (a, b) in enumerate(edges):
        kinds = [_EQUAL, _EQUAL, _BAND, _THETA] if streams < 6 else [_EQUAL, _BAND, _BAND, _THETA, _THETA]
        pool = (_EQUAL[0],) if kind == "one key" else rng.choice(kinds if kind != "all" or number < 2 else [_THETA])
        conditions.append(rng.choice(pool).format(a=a, b=b))
    if rng.random() < 0.25:
        some = rng.sample(range(streams), 3)
        a, b, c = some
        conditions.append(
            rng.choice(
                (
                    f"{{i{a}}} + {{j{b}}} >= {{i{c}}} - {{d}}",
                    f"GREATEST({{w{a}}}, {{w{b}}}) >= {{w{c}}}",
                    f"({{i{a}}} = {{i{c}}} OR {{i{b}}} < {{j{c}}} + {{d}})",
                    f"GREATEST({{w{a}}}, {{w{b}}}) LIKE {{p{c}}}",
                )
            )
        )
    columns = [_COLUMNS.format(number) for number in range(streams)]
    holes = "d:width" if any("{d}" in text for text in conditions) else ""
    return Shape(
        f"{kind} of {streams}", " AND ".join(conditions), columns[0], columns[1], holes, more=tuple(columns[2:])
    )


@dataclass
class _Usual(Draw):
    """Values most of which are the same, so that many streams meet."""

    usual: float = 0.0

    def _integer(self) -> int:
        return 0 if self.rng.random() < self.usual else super()._integer()

    def _double(self) -> float:
        return 0.0 if self.rng.random() < self.usual else super()._double()

    def _string(self) -> str:
        return self.words[0] if self.rng.random() < self.usual else super()._string()

    def _pattern(self) -> str:
        return "%" if self.rng.random() < 0.5 + self.usual / 2 else super()._pattern()


class _GraphMaker(Maker):
    """Draws one case over a graph."""

    def __init__(self, rng: random.Random, for_spark: bool, shape: Shape) -> None:
        super().__init__(rng, for_spark, shape)
        drawn = self.draw
        many = shape.streams > 4
        self._is_thin = rng.random() < 0.08  # a stream has a single row or none
        self.draw = _Usual(**{name: getattr(drawn, name) for name in drawn.__dataclass_fields__})
        self.draw.usual = rng.choice((0.85, 0.95, 1.0)) if many else rng.choice((0.0, 0.3, 0.6, 1.0))
        self.draw.nulls = min(drawn.nulls, 0.03 if many else 0.1)
        self.draw.specials = min(drawn.specials, 0.01 if many else 0.05)

    def _size(self) -> int:
        count = len(self.streams)
        most = MOST_ROWS.get(count)
        if most is None:
            return 1 + (self.rng.random() < math.log2(_TRIED) / count)
        if self._is_thin:
            self._is_thin = False
            return self.rng.randrange(2)
        return self.rng.randrange((most + 1) // 2, most + 1)

    def _windows(self, streams: tuple[str, ...]) -> Any:
        if self.rng.random() < 0.6 or len(streams) < 5:
            return super()._windows(streams)
        return f"{self.draw.span} {TICKS[self.draw.tick]}"  # many streams are seldom in short windows together


def graph_case(seed: int, *, for_spark: bool = False) -> Case:
    """The case with this number: of 3 to 16 streams, with windows of time, of counts, of both, or by arrival."""
    rng = random.Random(seed)
    shape = graph_shape(rng, 16 if seed % 100 == 99 else STREAMS[seed % len(STREAMS)])
    case = Case(**_GraphMaker(rng, for_spark, shape).parts())
    case = replace(case, cores=rng.choice((1, 1, 2, 3)), origin=f"graph_case({seed}, for_spark={for_spark})")
    kind = rng.choice(WINDOWS)
    if kind == "arrival":
        return case.arriving(rng)
    if kind != "time":
        case = case.counted(rng)
    if kind == "count":
        windows = {name: f"{rng.randint(1, 12)} rows" for name in case.streams}
        case = replace(case, kwargs={**case.kwargs, "window": windows})
    return case.asked(in_order=True) if rng.random() < 0.15 else case


def drifting_case(seed: int, streams: int) -> Case:
    """A case whose match rates change as time goes by: now one pair of streams matches often, now another."""
    chance = random.Random(seed)
    names = tuple(f"s{number}" for number in range(streams))
    phases, rows = 4, {3: 10, 4: 6, 5: 4}[streams]
    often = [chance.sample(range(streams), 2) for _ in range(phases)]
    made: dict[str, list[tuple[int, int, int]]] = {name: [] for name in names}
    for phase, pair in enumerate(often):
        for k, name in enumerate(names):
            for _ in range(rows):
                common = k in pair or chance.random() < 0.4
                time = phase * 1_000_000 + chance.randrange(1_000_000)
                made[name].append((time, 0 if common else chance.randrange(3), chance.randrange(4)))
    arrived = {name: sorted(own, key=lambda row: row[0] + chance.randrange(900_000)) for name, own in made.items()}
    tables = {
        name: pa.table(
            {
                "at": pa.array([time for time, _, _ in own], pa.timestamp("us")),
                "x": [x for _, x, _ in own],
                "y": [y for _, _, y in own],
            }
        )
        for name, own in arrived.items()
    }
    steps = [{name: table.slice(start, 2) for name, table in tables.items()} for start in range(0, phases * rows, 2)]
    conditions = [
        f"{one}.x = {other}.x" if k % 2 else f"{one}.y <= {other}.y + 2"
        for k, (one, other) in enumerate(pairwise(names))
    ]
    asked = {"on": " AND ".join(conditions), "window": "300 milliseconds", "time": "at"}
    base = graph_case(0)
    case = replace(base, streams=names, kwargs=asked, lateness="1 second", tables=tables, steps=steps, clock=None)
    case = replace(case, cores=1 + seed % 2, origin=f"drifting_case({seed}, {streams})")
    return case.counted(chance) if seed % 3 == 2 else case
