"""Hot keys and hot ranges split over the cores: every match is still found, at one core, and no core takes all.

And deliberate bugs in it, each of which the same joins must show.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.bounded import run_bounded
from handfast.core.planner import make_plan
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.hot import hot_buckets, hot_groups
from handfast.core.routing.outgoing import Outgoing
from handfast.core.routing.range import RangeRouting
from handfast.core.routing.router import Router
from handfast.core.routing.split_hash import SplitHashRouting
from handfast.core.routing.split_range import SplitRangeRouting
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.pieces import Limit
from handfast.judge import oracle
from handfast.plan import Plan
from handfast.spec.join import JoinSpec
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

HOW = ("inner", "left", "right", "semi", "anti")
JOINS = 60
ROWS = 40

KEYS: dict[str, tuple[pa.DataType, pa.DataType, list[Any], list[Any]]] = {  # types, values, hot ones among them
    "integers": (pa.int32(), pa.int64(), [7, 7, 7, 7, 1, 2, -3, None], [7]),
    "floats": (pa.float32(), pa.float64(), [0.0, -0.0, math.nan, math.nan, math.nan, 1.5, None], [math.nan, 0.0]),
    "strings": (pa.string(), pa.string(), ["é", "é", "é", "", "b", None], ["é"]),
}
BANDS: tuple[tuple[str, pa.DataType, list[Any], list[Any]], ...] = (
    ("r.k BETWEEN s.k - 2 AND s.k + 2", pa.int64(), [*range(100, 130), 5, -70, 2**62, None], [(100, 110)]),
    ("ABS(r.k - s.k) <= 0.5", pa.float64(), [x / 4 for x in range(60)] + [math.nan, math.inf, None], [(0.0, 3.0)]),
    ("r.k + s.k BETWEEN 0 AND 3", pa.int64(), [*range(-40, 40), None], [(-40, -20), (30, 40)]),
)


class Joined:
    """A random join of two streams most of whose tuples have few keys, and how it is laid out with these split."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        how = HOW[seed % len(HOW)]
        if seed % 2:
            self.on, *types, values, self.hot = _by_equality(chance)
        else:
            self.on, own, values, self.hot = chance.choice(BANDS)
            types = [own, own]
        if chance.random() < 0.5:  # so that many tuples match nothing
            self.on += " AND r.x + s.x > 15"
        self.tables = {
            name: pa.table(
                {
                    "ts": pa.array([chance.randrange(12) for _ in range(ROWS)], pa.timestamp("us")),
                    "k": pa.array([chance.choice(values) for _ in range(ROWS)], type_),
                    "j": pa.array([chance.choice("ab") for _ in range(ROWS)]),
                    "x": pa.array([chance.randrange(10) for _ in range(ROWS)], pa.int64()),
                }
            )
            for name, type_ in zip("rs", types, strict=True)
        }
        window = {"r": f"{chance.randint(1, 9)} us", "s": f"{chance.randint(1, 9)} us"}
        self.spec = JoinSpec(("r", "s"), self.on, window=window, time="ts", how=how)
        self.cores = chance.choice((2, 3, 5))
        self.slice = Limit(rows=chance.choice((7, 1000)))

    @property
    def plan(self) -> Plan:
        join = self.spec.bind(schemas_of(self.tables))
        return make_plan(join, self.cores, [own.schema for own in self.tables.values()], hot=tuple(self.hot))

    def routed(self) -> list[list[list[Block]]]:
        """By core and stream, the blocks that come there."""
        plan = self.plan
        blocks: list[list[list[Block]]] = [[[], []] for _ in range(plan.cores)]
        for stream, table in enumerate(self.tables.values()):
            block, _ = split(plan.join, stream, as_batch(table))
            assert block is not None
            for core, own in Router(plan, stream).route(block).items():
                blocks[core][stream].append(own)
        return blocks

    def found(self) -> Counter[tuple[Any, ...]]:
        """What all cores give together."""
        batches = (batch for own in self.routed() for batch in run_bounded(self.plan, own, self.slice))
        return multiset(row for batch in batches for row in result_of(batch))

    def expected(self) -> Counter[tuple[Any, ...]]:
        return multiset(oracle.result(self.plan.join, tables_of(self.tables)))


def _by_equality(chance: random.Random) -> tuple[Any, ...]:
    r, s, values, hot = chance.choice(list(KEYS.values()))
    if chance.random() < 0.3:
        return "r.k = s.k AND r.j = s.j", r, s, values, [(key, "a") for key in hot]
    return "r.k = s.k", r, s, values, hot


def _wrong() -> Iterator[int]:
    for seed in range(JOINS):
        joined = Joined(seed)
        if joined.expected() != joined.found():
            yield seed


def test_split_keys_and_ranges_give_what_the_oracle_gives() -> None:
    names = {Joined(seed).plan.routing.name for seed in range(JOINS)}
    assert {"hash, hot keys split", "range, hot ranges split"} == names
    assert [] == list(_wrong())


@pytest.mark.parametrize("on, hot", [("r.k = s.k", 7), ("r.k BETWEEN s.k - 5 AND s.k + 5", (0, 20))])
def test_a_hot_key_is_shared_by_all_cores(on: str, hot: Any) -> None:
    times = pa.array(range(1000), pa.timestamp("us"))
    table = pa.table({"ts": times, "k": np.full(1000, 7)})
    spec = JoinSpec(("r", "s"), on, window="1 second", time="ts")
    join = spec.bind(schemas_of({"r": table, "s": table}))
    block, _ = split(join, 0, as_batch(table))
    assert block is not None
    homes = {}
    for hot_ones in ((), (hot,)):
        plan = make_plan(join, 4, [table.schema, table.schema], hot=hot_ones)
        homes[bool(hot_ones)] = [len(own) for own in Router(plan, 0).route(block).values()]
        others = [len(own) for own in Router(plan, 1).route(block).values()]
        assert others == ([1000] * 4 if hot_ones else [1000])
    assert homes[False] == [1000]
    assert sum(homes[True]) == 1000 and max(homes[True]) < 400


def test_where_nothing_is_hot_the_fingerprint_is_what_it_was() -> None:
    joined = Joined(1)
    plain = make_plan(joined.plan.join, 3)
    assert "hot" not in plain.fingerprint
    assert plain.fingerprint["routing"] == "hash, anchored at r"
    assert joined.plan.fingerprint["routing"].startswith("hash, hot keys split, anchored at ")
    assert joined.plan.fingerprint["hot"] == repr(tuple(joined.hot))


@pytest.mark.parametrize(
    "on, hot, why",
    [
        ("r.k = s.k", ("seven",), r"hot_keys=…\): \('seven',\) do not fit k"),
        ("r.k = s.k AND r.j = s.j", (7,), "a key is a tuple of values of k, j, not 7"),
        ("r.k % 3 = s.k", (7,), r"the key of 'r' is r\.k % 3; make it a column of the input"),
        ("r.day = s.day", (math.nan,), r"hot_keys=…\): \(nan,\) do not fit day: cannot convert float NaN"),
        ("r.k BETWEEN s.k - 1 AND s.k + 1", ((5, 1),), r"lowest and its highest k, not \(5, 1\)"),
        ("r.k BETWEEN s.k - 1 AND s.k + 1", ((1, "5"),), r"lowest and its highest k, not \(1, '5'\)"),
        ("r.k BETWEEN s.k - 1 AND s.k + 1", ((None, None),), r"lowest and its highest k, not \(None, None\)"),
    ],
)
def test_a_hot_key_that_is_none_is_refused(on: str, hot: Any, why: str) -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1], "j": ["a"], "day": [date(2026, 1, 31)]})
    spec = JoinSpec(("r", "s"), on, window="1 second", time="ts")
    plan = make_plan(spec.bind(schemas_of({"r": table, "s": table})), 2, [table.schema] * 2, hot=hot)
    with pytest.raises(hf.SpecError, match=why):
        (hot_groups if plan.pairs[0].equalities else hot_buckets)(plan)


# -- deliberate bugs -------------------------------------------------------------------------------------------------

Bug = Callable[[pytest.MonkeyPatch], None]


def hot_tuples_of_both_streams_divided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outgoing, "is_anchor", property(lambda self: True))


def hot_tuples_of_both_streams_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outgoing, "is_anchor", property(lambda self: False))


def the_first_stream_divided_though_the_second_is_preserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SplitHashRouting, "anchor", lambda self, offer: 0)


def hot_ranges_that_the_streams_do_not_agree_on(patch: pytest.MonkeyPatch) -> None:
    hot = SplitRangeRouting.hot

    def only_of_the_anchor(self: Any, tuples: Any, stripes: Any) -> Any:
        return hot(self, tuples, stripes) & tuples.is_anchor

    patch.setattr(SplitRangeRouting, "hot", only_of_the_anchor)


@pytest.mark.parametrize(
    "bug",
    [
        hot_tuples_of_both_streams_divided,
        hot_tuples_of_both_streams_everywhere,
        the_first_stream_divided_though_the_second_is_preserved,
        hot_ranges_that_the_streams_do_not_agree_on,
    ],
    ids=lambda bug: bug.__name__,
)
def test_the_joins_show(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert next(_wrong(), None) is not None, f"{JOINS} joins do not show {bug.__name__.replace('_', ' ')}"


def test_streams_that_are_not_split_go_as_before() -> None:
    plan = make_plan(Joined(1).plan.join, 3)
    assert HashRouting() == plan.routing
    assert RangeRouting() == make_plan(Joined(0).plan.join, 3).routing
