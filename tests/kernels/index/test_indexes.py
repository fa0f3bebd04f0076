"""Every index finds what the definition finds, within any ranges, while tuples come, expire and are dropped."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.planner import make_plan
from handfast.core.recipe import Pairing, Recipe
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.judge.evaluation import evaluate
from handfast.kernels.columns import ColumnReader
from handfast.kernels.course import Ranges
from handfast.kernels.index import hashed, pane, panes
from handfast.kernels.sizes import KernelSizes
from handfast.kernels.strings import StringTable
from handfast.plan import INDEX, MERGE
from tests.sampling import sampled

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("k", pa.int64()),
        ("x", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("t", pa.string()),
        ("d", pa.decimal128(20, 2)),
    ]
)
PREDICATES = [
    "r.k = s.k",
    "r.t = s.t",
    "r.k = s.k AND r.t = s.t",
    "r.f = s.f",
    "r.k = s.k AND r.x < s.x",
    "r.x = s.k",
    "r.x BETWEEN s.x - 3 AND s.x + 3",
    "r.f BETWEEN s.f - 1.5 AND s.f + 1.5",
    "r.x BETWEEN s.x - 3 AND s.x + 3 AND r.g BETWEEN s.g - 2 AND s.g + 2",
    "r.k = s.k AND r.x BETWEEN s.x - 3 AND s.x + 3",
    "r.t = s.t AND r.x BETWEEN s.x - 3 AND s.x + 3 AND r.f BETWEEN s.f - 2 AND s.f + 2",
    "r.x BETWEEN s.x - 3 AND s.x + 3 AND r.t < s.t",
    "r.k BETWEEN s.k - 2 AND s.k + 2 AND r.t LIKE concat(s.t, '%')",
    "abs(r.x - s.x) <= 2 AND r.f BETWEEN s.f - 2 AND s.f + 2 AND r.k BETWEEN s.k - 9 AND s.k + 9",
    "r.d BETWEEN s.d - 1 AND s.d + 1 AND r.x <> s.x",
]
EXTREMES: dict[str, list[Any]] = {
    "k": [None, 2**63 - 1, -(2**63), 0],
    "x": [None, 2**31 - 1, -(2**31)],
    "f": [None, float("nan"), float("inf"), -float("inf"), 1e300, -0.0, 1e16],
    "g": [None, float("nan"), float("inf"), 3e38, -0.0],
    "t": [None, "", "aé", "z" * 30],
    "d": [None],
}


def value(rng: random.Random, column: str, spread: int) -> Any:
    if rng.random() < 0.08:
        return rng.choice(EXTREMES[column])
    number = rng.randrange(-spread, spread)
    if column == "t":
        return "abc"[: number % 4]
    if column == "d":
        return Decimal(number) / 4
    return number + rng.choice([0, 0.25, 0.5]) if column in "fg" else number


class Fed:
    """One side's tuples as rows and as an index has them."""

    def __init__(self, rng: random.Random, pairing: Pairing, reader: ColumnReader, side: int, capacity: int) -> None:
        self._rng, self._reader, self._side = rng, reader, side
        assert pairing.index is not None
        self.index = pairing.index(pairing.conditions, side, capacity)
        self.rows: list[dict[str, Any]] = []
        self.blocks: list[Block] = []

    def batch(self, count: int, spread: int) -> tuple[list[dict[str, Any]], Block]:
        rows = [{"ts": 0} | {name: value(self._rng, name, spread) for name in EXTREMES} for _ in range(count)]
        columns = [pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in SCHEMA.names]
        batch = as_batch(pa.Table.from_arrays(columns, schema=SCHEMA))
        rows = [
            row | {"g": exact, "d": unscaled(row["d"])} for row, exact in zip(rows, columns[4].to_pylist(), strict=True)
        ]
        return rows, Block(batch, np.zeros(count, np.int64), np.zeros(count, np.uint8))

    def insert(self, count: int, spread: int) -> None:
        rows, block = self.batch(count, spread)
        self.rows += rows
        self.blocks.append(block)
        self.index.insert(self.index.keys(self._reader.read(self._side, block)))


def unscaled(number: Decimal | None) -> int | None:
    """A decimal as the definition takes it."""
    return None if number is None else int(number * 100)


@pytest.mark.parametrize(("seed", "local_join"), sampled([(k, way) for k in range(60) for way in (INDEX, MERGE)], 4))
def test_an_index_finds_what_the_definition_finds(seed: int, local_join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    on = PREDICATES[seed % len(PREDICATES)]
    for module, name, size in (
        *((pane, "_SMALLEST", 4), (panes, "_BASIC", rng.choice([4, 30])), (panes, "_LEAST", 7), (panes, "_RUNS", 40)),
        *(
            (panes, "_FEW", 3),
            (panes, "_FEW_RUNS", rng.choice([0, 1 << 12])),
            (panes, "_IN_CACHE", 3),
            (pane, "CHUNK", 5),
            (hashed, "_FAR", 200),
            (hashed, "_TOGETHER", 4),
            (hashed, "_ROOM", 8),
        ),
    ):
        monkeypatch.setattr(module, name, size)
    join = hf.JoinSpec(("r", "s"), on, window="1 hour", time="ts").bind(dict.fromkeys("rs", schema_of(SCHEMA)))
    recipe = Recipe(make_plan(join, 1, local_join=local_join), KernelSizes(candidates=rng.choice([9, 1000])))
    pairing, reader = recipe.pairing(0, 1), recipe.reader(StringTable())
    probing = rng.randrange(2)
    fed = [Fed(rng, pairing, reader, side, rng.choice([9, 1000])) for side in (0, 1)]
    stored = fed[1 - probing]
    spread, oldest, dropped, found_any = rng.choice([3, 12, 500]), 0, 0, False
    for _ in range(12):
        stored.insert(rng.choice([1, 7, 40]), spread)
        if rng.random() < 0.4:
            oldest = rng.randrange(oldest, len(stored.rows) + 1)
            stored.index.expire(oldest - dropped)
        if rng.random() < 0.3:
            stored.index.drop(oldest - dropped)
            dropped = oldest
        rows, block = fed[probing].batch(rng.choice([1, 30]), spread)
        found_any |= check(rng, pairing, reader, fed, probing, (rows, block), (oldest, dropped), join.predicate)
    assert found_any or spread == 500


def check(
    rng: random.Random,
    pairing: Pairing,
    reader: ColumnReader,
    fed: list[Fed],
    probing: int,
    new: tuple[list[dict[str, Any]], Block],
    gone: tuple[int, int],
    predicate: Any,
) -> bool:
    """Compare what new tuples find in ranges of their own with the definition; whether that is anything."""
    rows, block = new
    stored, (oldest, dropped) = fed[1 - probing], gone
    stop = len(stored.rows)
    short = rng.random() < 0.5
    starts = np.array([rng.randrange(oldest, stop + 1) if short else oldest for _ in rows], np.int64)
    stops = np.array([min(stop, start + rng.randrange(12)) if short else stop for start in starts.tolist()], np.int64)
    columns = reader.read(probing, block)
    every = reader.read(1 - probing, Block.concat(stored.blocks)).take(np.arange(dropped, stop))
    keys = fed[probing].index.keys(columns)
    ranges = Ranges(starts - dropped, stops - dropped, True)
    found = []
    for kernels, pairs in chain(
        ((pairing.left, pair) for pair in stored.index.candidates(keys, ranges)),
        ((pairing.kernels, pair) for pair in stored.index.unplaced(keys, ranges)),
    ):
        at, positions = (own.copy() for own in pairs)
        assert ((ranges.starts[at] <= positions) & (positions < ranges.stops[at])).all()
        sides = (columns, every) if probing == 0 else (every, columns)
        r, s = (reader.for_pairs(stream, side) for stream, side in enumerate(sides))
        given = (at, positions) if probing == 0 else (positions, at)
        kept = kernels.check(r, s, reader.literals(kernels.literals), given)
        at, positions = kept if probing == 0 else kept[::-1]
        found += list(zip(at.tolist(), (positions + dropped).tolist(), strict=True))
    expected = [
        (k, p)
        for k, row in enumerate(rows)
        for p in range(int(starts[k]), int(stops[k]))
        if evaluate(predicate, (row, stored.rows[p]) if probing == 0 else (stored.rows[p], row)) is True
    ]
    assert expected == sorted(found)
    return bool(expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", ["0", "1e-310", "5e-324", "1e-300"])
def test_a_band_may_be_as_narrow_as_a_denormal_number(width: str) -> None:
    table = pa.table({"ts": pa.array([0, 1, 2], pa.timestamp("us")), "k": [0.0, 1e-310, 3.0]})
    found = hf.join(
        {"r": table, "s": table}, on=f"r.k - s.k BETWEEN -{width} AND {width}", window="1 second", time="ts"
    )
    near = [(a, b) for a in (0.0, 1e-310, 3.0) for b in (0.0, 1e-310, 3.0) if abs(a - b) <= float(width)]
    assert near == sorted(zip(found["r_k"].to_pylist(), found["s_k"].to_pylist(), strict=True))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("local_join", [INDEX, MERGE])
@pytest.mark.parametrize("bound", [2**57, 2**58, 2**60 - 1])
def test_a_band_may_lie_as_far_off_as_keys_do(bound: int, local_join: str) -> None:
    r, s = [bound, bound - 1, -bound, 2**60, -(2**60)], [0, -1, -2 * bound, 2**60 - bound, 2**60]
    times = pa.array(range(5), pa.timestamp("us"))
    found = hf.join(
        {"r": pa.table({"ts": times, "k": r}), "s": pa.table({"ts": times, "k": s})},
        on=f"r.k - s.k BETWEEN {bound} AND {bound}",
        window="1 second",
        time="ts",
        options=hf.LocalOptions(local_join=local_join),
    )
    far = sorted((a, b) for a in r for b in s if a - b == bound)
    assert far == sorted(zip(found["r_k"].to_pylist(), found["s_k"].to_pylist(), strict=True))


def test_panes_that_are_not_merged_any_more_keep_no_codes() -> None:
    on, count = "r.x BETWEEN s.x - 3 AND s.x + 3", 2_000
    join = hf.JoinSpec(("r", "s"), on, window="1 hour", time="ts").bind(dict.fromkeys("rs", schema_of(SCHEMA)))
    recipe = Recipe(make_plan(join, 1), KernelSizes())
    pairing, reader = recipe.pairing(0, 1), recipe.reader(StringTable())
    rng = random.Random(1)
    stored, probing = (Fed(rng, pairing, reader, side, 1000) for side in (0, 1))
    window = 10 * count
    for turn in range(25):
        stored.insert(count, 500)
        stop = len(stored.rows)
        oldest = max(0, stop - window)
        stored.index.expire(oldest)
        _, block = probing.batch(20, 500)
        ranges = Ranges(np.full(20, oldest), np.full(20, stop), True)
        list(stored.index.candidates(probing.index.keys(reader.read(1, block)), ranges))
        if turn > 15:
            with_codes = sum(len(pane) for pane in stored.index._panes if pane.codes is not None)
            assert with_codes < window / 2
