"""The hypercube: the tuples of a match are together at one core and no other, whatever keys join the streams.

And deliberate bugs in it, each of which the same joins must show.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.core.planner import make_plan
from handfast.core.routing import hypercube
from handfast.core.routing.grid import grid_of
from handfast.core.routing.hypercube import HypercubeRouting
from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.router import Router
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import HOME
from handfast.spec.expression import Column, walk
from handfast.spec.join import JoinSpec
from tests.judges.rows import schemas_of

Edge = tuple[int, str, int, str]  # a stream and its column, equal to another's
Places = list[dict[int, set[int]]]  # by stream and row, the cores that it was sent to

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
ROWS = 12  # of each stream
JOINS = 150


class Joined:
    """A random join of three to eight streams by equalities, with its rows and the cores they are sent to."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._chance = chance
        streams = chance.choice((3, 3, 4, 4, 5, 8))
        self.names = ("r", "s", "t", "u", "v", "w", "x", "y")[:streams]
        self.edges = self._edges(chance.choice(["chain", "ring", "star", "any"]), streams)
        self._columns: list[dict[str, pa.Array]] = [{} for _ in self.names]
        for stream, column in sorted({end for a, x, b, y in self.edges for end in ((a, x), (b, y))}):
            self._columns[stream][column] = self._values(column)
        self.tables = {name: self._table(own) for name, own in zip(self.names, self._columns, strict=True)}
        on = " AND ".join(f"{self.names[a]}.{x} = {self.names[b]}.{y}" for a, x, b, y in self.edges)
        self.spec = JoinSpec(self.names, on, window="1 hour", time="ts", lateness="0 seconds")
        self.plan = make_plan(
            self.spec.bind(schemas_of(self.tables)), chance.choice((chance.randint(4, 16), chance.randint(17, 60)))
        )

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

    def is_keyless(self, stream: int, row: int) -> bool:
        """Whether a row lacks one of the keys by which its stream is divided."""
        keys = (own.keys[stream] for own in grid_of(self.plan.classes, self.plan.cores).dimensions)
        read = {part.name for key in keys for expr in key for part in walk(expr) if isinstance(part, Column)}
        return any(not self._columns[stream][name][row].is_valid for name in read)

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


@cache
def joins(count: int) -> tuple[Joined, ...]:
    """Random joins that a hypercube takes."""
    drawn = (Joined(seed) for seed in range(100 * count))
    taken = (join for join in drawn if join.plan.routing == HypercubeRouting())
    return tuple(next(taken) for _ in range(count))


def test_the_joins_are_of_many_grids() -> None:
    taken = joins(JOINS)
    grids = {str(grid_of(join.plan.classes, join.plan.cores)) for join in taken}
    assert {3, 4, 5, 8} == {len(join.names) for join in taken}
    assert len(grids) > 40
    assert {2, 3} <= {grid.count("x") + 1 for grid in grids}
    assert sum(1 for join in taken for _ in join.matches()) > 10_000


def wrong_cores(join: Joined) -> Iterator[str]:
    """What is wrong with the cores that the tuples of matches are sent to."""
    sent, _ = join.places()
    for match in join.matches():
        together = set.intersection(*(sent[stream][row] for stream, row in enumerate(match)))
        if len(together) != 1:
            yield f"rows {match} meet at cores {together}, {join.spec.on}, {join.plan.cores} cores"


def wrong_copies(join: Joined) -> Iterator[str]:
    """What is wrong with the homes of tuples, and with their copies: as many as `explain` says; one without a key."""
    sent, homes = join.places()
    for stream, copies in enumerate(join.plan.routing.copies(join.plan.offer)):
        for row, cores in sent[stream].items():
            wanted = 1 if join.is_keyless(stream, row) else copies
            if len(cores) != wanted or len(homes[stream][row]) != 1:
                at_home = homes[stream][row]
                yield f"row {row} of {join.names[stream]} goes to {cores}, at home at {at_home}, {join.spec.on}"


@pytest.mark.parametrize("wrong", [wrong_cores, wrong_copies])
def test_every_match_is_found_at_one_core_and_every_tuple_has_one_home(
    wrong: Callable[[Joined], Iterator[str]],
) -> None:
    assert [] == [fault for join in joins(JOINS) for fault in wrong(join)]


def test_some_tuples_have_no_key() -> None:
    keyless = [join.is_keyless(k, row) for join in joins(JOINS) for k in range(len(join.names)) for row in range(ROWS)]
    assert 0.1 < sum(keyless) / len(keyless) < 0.9


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


# -- deliberate bugs -------------------------------------------------------------------------------------------------

FEW = 30  # joins, which show every bug

Change = Callable[[int, Any, Any], tuple[Any, Any]]  # of the rows that a core gets and their flags


def _sent_otherwise(change: Change) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(patch: pytest.MonkeyPatch) -> None:
        destinations = HypercubeRouting.destinations

        def otherwise(self: HypercubeRouting, tuples: Outgoing) -> Iterator[Sent]:
            for core, rows, flags in destinations(self, tuples):
                yield core, *change(core, np.asarray(rows), flags)

        patch.setattr(HypercubeRouting, "destinations", otherwise)

    return patch


def _with_places(change: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(patch: pytest.MonkeyPatch) -> None:
        places = hypercube._places
        patch.setattr(hypercube, "_places", lambda tuples, grid, number: change(places, tuples, grid, number))

    return patch


def _along_too_many_sides(patch: pytest.MonkeyPatch) -> None:
    first_cells = hypercube._first_cells
    patch.setattr(hypercube, "_first_cells", lambda grid, places, keyed: first_cells(grid, places, keyed[1:]))


def _places_by_stream(places: Any, tuples: Outgoing, grid: Any, number: int) -> Any:
    found, keyless = places(tuples, grid, number)
    return (found + tuples.stream) % grid.dimensions[number].size, keyless


def _what_lies_under_null(places: Any, tuples: Outgoing, grid: Any, number: int) -> Any:
    found, keyless = places(tuples, grid, number)
    return found, np.zeros_like(keyless)


def _null_at_the_first_place(places: Any, tuples: Outgoing, grid: Any, number: int) -> Any:
    found, keyless = places(tuples, grid, number)
    return np.where(keyless, 0, found), np.zeros_like(keyless)


BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a stream sent to its homes only": _sent_otherwise(
        lambda core, rows, flags: (rows[(flags & HOME) != 0], flags[(flags & HOME) != 0])
    ),
    "no copies for the last cores": _sent_otherwise(
        lambda core, rows, flags: (rows[((flags & HOME) != 0) | (core < 3)], flags[((flags & HOME) != 0) | (core < 3)])
    ),
    "a match given at two cores": _along_too_many_sides,
    "a tuple at home wherever it goes": _sent_otherwise(lambda core, rows, flags: (rows, flags | HOME)),
    "a tuple at home nowhere": _sent_otherwise(lambda core, rows, flags: (rows, np.zeros_like(flags))),
    "a place that differs by stream": _with_places(_places_by_stream),
    "what lies under a NULL taken for a key": _with_places(_what_lies_under_null),
    "tuples without a key copied as others are": _with_places(_null_at_the_first_place),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_joins_show_a_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    shown = (fault for join in joins(FEW) for wrong in (wrong_cores, wrong_copies) for fault in wrong(join))
    assert next(shown, None), f"{FEW} joins do not show {bug}"
