"""The hypercube: the tuples of a match are together at one core and no other, whatever keys join the streams."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.core.planner import make_plan
from handfast.core.routing.grid import grid_of
from handfast.core.routing.hypercube import HypercubeRouting
from handfast.core.routing.router import Router
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import HOME
from handfast.spec.join import JoinSpec
from tests.judges.rows import schemas_of

Edge = tuple[int, str, int, str]  # a stream and its column, equal to another's
Places = list[dict[int, set[int]]]  # by stream and row, the cores that it was sent to

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
ROWS = 12  # of each stream


class Joined:
    """A random join of three to five streams by equalities, with its rows and the cores they were sent to."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._chance = chance
        streams = chance.randint(3, 5)
        self.names = ("r", "s", "t", "u", "v")[:streams]
        self.edges = self._edges(chance.choice(["chain", "ring", "star", "any"]), streams)
        self._columns: list[dict[str, pa.Array]] = [{} for _ in self.names]
        for stream, column in sorted({end for a, x, b, y in self.edges for end in ((a, x), (b, y))}):
            self._columns[stream][column] = self._values(column)
        self.tables = {name: self._table(own) for name, own in zip(self.names, self._columns, strict=True)}
        on = " AND ".join(f"{self.names[a]}.{x} = {self.names[b]}.{y}" for a, x, b, y in self.edges)
        self.spec = JoinSpec(self.names, on, window="1 hour", time="ts", lateness="0 seconds")
        self.plan = make_plan(self.spec.bind(schemas_of(self.tables)), chance.randint(1, 16))

    def _edges(self, kind: str, streams: int) -> list[Edge]:
        """The equalities: a letter names the type of a key, so that any two columns of a letter can be compared."""
        pairs = {
            "chain": list(pairwise(range(streams))),
            "ring": [(k, (k + 1) % streams) for k in range(streams)],
            "star": [(0, k) for k in range(1, streams)],
            "any": [tuple(self._chance.sample(range(streams), 2)) for _ in range(self._chance.randint(2, 6))],
        }[kind]
        edges = []
        for a, b in pairs:
            letter = self._chance.choice("ifs")
            edges.append((a, f"{letter}{self._chance.randrange(3)}", b, f"{letter}{self._chance.randrange(3)}"))
        return edges

    def _values(self, column: str) -> pa.Array:
        pick = self._chance.choice
        if column[0] == "s":
            return pa.array([pick(["", "a", "é", "long " * 9, None]) for _ in range(ROWS)])
        if column[0] == "i":
            return pa.array([pick([-1, 0, 7, None]) for _ in range(ROWS)], pick(INTEGERS))
        return pa.array([pick([-0.0, 0.0, math.nan, 1.5, math.inf, None]) for _ in range(ROWS)], pick(FLOATS))

    def _table(self, columns: dict[str, pa.Array]) -> pa.Table:
        times = pa.array([self._chance.randrange(5) for _ in range(ROWS)], pa.timestamp("us"))
        return pa.table({"ts": times, **columns, "#": pa.array(range(ROWS), pa.int64())})

    def matches(self) -> Iterator[tuple[int, ...]]:
        """The rows of every match, of each stream one, by trying them all."""
        rows = [table.to_pylist() for table in self.tables.values()]

        def further(found: list[tuple[int, ...]], stream: int) -> list[tuple[int, ...]]:
            mine = [edge for edge in self.edges if max(edge[0], edge[2]) == stream]
            wider = [(*before, row) for before in found for row in range(ROWS)]
            return [w for w in wider if all(_same(rows[a][w[a]][x], rows[b][w[b]][y]) for a, x, b, y in mine)][:4000]

        return iter(reduce(further, range(len(rows)), [()]))

    def places(self) -> tuple[Places, Places]:
        """Where every row was sent, and where it is at home."""
        sent: Places = []
        homes: Places = []
        for stream, table in enumerate(self.tables.values()):
            block = split(self.plan.join, stream, as_batch(table))[0]
            assert block is not None
            sent.append({row: set() for row in range(ROWS)})
            homes.append({row: set() for row in range(ROWS)})
            for core, own in Router(self.plan, stream).route(block).items():
                for row, flags in zip(own.batch.column("#").to_pylist(), own.flags, strict=True):
                    sent[-1][row].add(core)
                    if flags & HOME:
                        homes[-1][row].add(core)
        return sent, homes


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal as Spark has it: NaN is equal to itself, NULL to nothing."""
    return a is not None and b is not None and (a == b or (a != a and b != b))


def joins(count: int) -> Iterator[Joined]:
    """Random joins that a hypercube takes."""
    drawn = (Joined(seed) for seed in range(100 * count))
    taken = (join for join in drawn if join.plan.routing == HypercubeRouting())
    return (next(taken) for _ in range(count))


def test_the_tuples_of_a_match_are_together_at_one_core_and_no_other() -> None:
    found = 0
    for join in joins(150):
        sent, _ = join.places()
        for match in join.matches():
            together = set.intersection(*(sent[stream][row] for stream, row in enumerate(match)))
            assert 1 == len(together), f"{join.spec.on}, {join.plan.cores} cores, rows {match}"
            found += 1
    assert found > 10_000


def test_a_tuple_has_one_home_and_as_many_copies_as_explain_says() -> None:
    keyless = 0
    for join in joins(60):
        sent, homes = join.places()
        copies = join.plan.routing.copies(join.plan.offer)
        for stream, own in enumerate(sent):
            for row, cores in own.items():
                assert 1 == len(homes[stream][row] & cores) == len(homes[stream][row])
                keyless += len(cores) < copies[stream]
                assert len(cores) in (1, copies[stream])
    assert keyless > 0, "tuples with NULL for a key"


def test_a_tuple_without_a_key_goes_to_one_core_only_and_not_always_the_same() -> None:
    table = pa.table({"ts": pa.array(range(500), pa.timestamp("us")), "a": pa.nulls(500, pa.int64()), "b": range(500)})
    tables = dict.fromkeys(("r", "s", "t"), table)
    spec = JoinSpec(tuple(tables), "r.a = s.a AND s.b = t.b", window="1 hour", time="ts")
    plan = make_plan(spec.bind(schemas_of(tables)), 9)
    assert HypercubeRouting() == plan.routing
    block = split(plan.join, 1, as_batch(table))[0]
    assert block is not None
    sizes = [len(own) for own in Router(plan, 1).route(block).values()]
    assert (9, 500) == (len(sizes), sum(sizes))
    assert max(sizes) < 100


@pytest.mark.parametrize("same", [False, True])
def test_every_cell_of_the_grid_gets_about_as_much(same: bool) -> None:
    """Where a stream has the same values in two columns too: each dimension has digits of its own of their hash."""
    numbers = np.random.default_rng(1).integers(0, 1 << 40, (2, 20_000))
    columns = {"a": numbers[0], "b": numbers[0] if same else numbers[1]}
    table = pa.table({"ts": pa.array(np.arange(20_000), pa.timestamp("us")), **columns})
    tables = dict.fromkeys(("r", "s", "t"), table)
    spec = JoinSpec(tuple(tables), "r.a = s.a AND s.b = t.b", window="1 hour", time="ts")
    plan = make_plan(spec.bind(schemas_of(tables)), 16)
    assert "4 x 4" == str(grid_of(plan.classes, 16))
    for stream, copies in enumerate((4, 1, 4)):
        block = split(plan.join, stream, as_batch(table))[0]
        assert block is not None
        sent = Router(plan, stream).route(block)
        sizes, homes = ([len(own) for own in sent.values()], [own.at_home for own in sent.values()])
        assert (16, copies * 20_000, 20_000) == (len(sizes), sum(sizes), sum(homes))
        assert max(sizes) < 1.2 * copies * 20_000 / 16
        assert max(homes) < 1.2 * 20_000 / 16
