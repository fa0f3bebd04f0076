"""A scan finds the pairs that the plain rule says: in every form, by every instruction set, in tiles of any size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.planner import make_plan
from handfast.core.recipe import Recipe
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import Block
from handfast.flow.time import micros
from handfast.judge import evaluation
from handfast.kernels.columns import Columns
from handfast.kernels.compiler import scan
from handfast.kernels.compiler.narrow import float_near
from handfast.kernels.compiler.scan import SPARE, Form
from handfast.kernels.compute import Computation
from handfast.kernels.pairs import PairKernels
from handfast.kernels.sizes import USUAL, KernelSizes, Vectors
from handfast.kernels.strings import StringTable
from handfast.kernels.target import reachable
from handfast.plan import SCAN
from handfast.spec.expression import Call, Column, Op
from handfast.spec.meaning import AnsiError
from handfast.spec.types import DOUBLE, FLOAT
from tests.judges.rows import rows_of
from tests.sampling import sampled

PREDICATES = {
    "band": "r.x BETWEEN s.x - 10 AND s.x + 10 AND r.y BETWEEN s.y - 10 AND s.y + 10",
    "OR and NOT": "(ABS(r.x - s.x) < 2 OR NOT (r.y < s.y * 2)) AND r.k = s.k",
    "doubles": "ABS(r.d * 1.5 - s.d) < 0.05 AND r.x <> s.x",
    "strings": "r.k = s.k AND r.x < s.x",
    "order of strings": "r.k < s.k OR (r.k = s.k AND r.x <> s.x)",
    "distance": "(r.y - s.y) * (r.y - s.y) + (r.z - s.z) * (r.z - s.z) < 100",
    "everyone": "TRUE",
    "no one": "r.x < s.x AND s.x < r.x",
    "between bounds in any order": "r.x > s.t AND r.x <= s.x AND (r.d < s.d OR s.l BETWEEN r.l AND r.x)",
    "what sees NULLs": "r.x <=> s.x OR r.y IS NULL OR COALESCE(r.d, s.d) > 1 OR NOT (r.k <=> s.k)",
    "a NULL": "r.x < s.x AND NOT (NULL AND r.b)",
    "overflow": "r.x + s.x > 0 OR NOT (r.l * s.l < 0)",
    "division": "r.x / s.x > 1 AND NOT (r.l % s.l = 0)",
    "FLOAT and DOUBLE": "r.y <= s.d AND NOT (s.y >= r.d) OR r.y > s.d * 1e30",
    "FLOAT and a constant": "r.y - s.y < 0.1D OR r.y * s.y >= 1e39D",
    "FLOAT and FLOAT": "CAST(r.y AS DOUBLE) < CAST(s.y AS DOUBLE) AND r.z <> s.z",
    "a choice": "CASE WHEN r.b THEN r.x ELSE s.x END > s.l OR GREATEST(r.y, s.z) = r.y",
    "booleans": "r.b = s.b AND (r.b OR s.x > 0) AND r.t < s.t",
}
EDGES = [0.0, -0.0, 0.1, -0.1, 1.0, 1.5, 10.0, -1e-45, 1e-46, 3.4028234663852886e38, 3.4028235677973366e38, 1e39, 1e300]
SPECIAL = [*EDGES, *(-edge for edge in EDGES), float("inf"), float("-inf"), float("nan")]
ALWAYS_DENSE = 1 << 40
SHORT, LONG = 19, 3 * SPARE + 5
LENGTH = 40  # microseconds of a window, where it is short


def stream(rows: int, seed: int, *, nulls: float, common: bool, disorder: int) -> pa.Table:
    """Tuples of all types; `common` values are so few that many pairs hold."""
    rng = np.random.default_rng(seed)

    def floats() -> Any:
        wide = rng.normal(0, 30, rows)
        return np.where(rng.random(rows) < 0.3, rng.choice(SPECIAL, rows), np.round(wide) if common else wide)

    least, most = (-2, 3) if common else (-(2**31), 2**31 - 1)
    ints = rng.integers(least, most, rows, endpoint=True)
    small = rng.integers(-30, 30, rows)
    times = np.sort(rng.integers(0, rows, rows)) + rng.integers(0, disorder + 1, rows)
    with np.errstate(over="ignore"):
        columns: dict[str, Any] = {
            "x": np.where(rng.random(rows) < 0.5, ints, small).astype(np.int32),
            "y": floats().astype(np.float32),
            "z": floats().astype(np.float32),
            "d": floats(),
            "l": rng.integers(-(2**63), 2**63 - 1, rows) // rng.choice([1, 2**32, 2**62], rows),
            "t": rng.integers(-(2**15), 2**15 - 1, rows).astype(np.int16),
            "b": rng.random(rows) < 0.5,
            "k": rng.choice(["", "a", "ab", "b", "ä", "z"], rows),
        }
    made = {name: pa.array(own, mask=rng.random(rows) < nulls) for name, own in columns.items()}
    return pa.table({"ts": pa.array(times).cast(pa.timestamp("us")), **made})


@dataclass(frozen=True)
class Data:
    """Two streams, and whether their windows are so short and their tuples so disordered that stamps are looked at."""

    tables: tuple[pa.Table, pa.Table]
    windowed: bool

    @staticmethod
    @cache
    def of(number: int) -> Data:
        nulls, common, windowed, r_is_long = (bool(number >> bit & 1) for bit in range(4))
        rows = (LONG, SHORT) if r_is_long else (SHORT, LONG)
        made = [
            stream(count, 10 * number + k, nulls=0.2 * nulls, common=common, disorder=9 * windowed)
            for k, count in enumerate(rows)
        ]
        return Data((made[0], made[1]), windowed)


class Case:
    """A predicate over two streams, read and bound."""

    def __init__(self, predicate: str, data: Data) -> None:
        self.data = data
        spec = hf.JoinSpec(["r", "s"], predicate, window=f"{LENGTH} us" if data.windowed else "1 hour", time="ts")
        self.join = spec.bind({name: schema_of(own.schema) for name, own in zip("rs", data.tables, strict=True)})

    def expected(self, oldest: tuple[int, int]) -> list[tuple[int, int]]:
        """The pairs for which predicate and windows hold, by the definition."""
        holds = evaluation.compile(self.join.predicate)
        rows = [rows_of(own) for own in self.data.tables]
        times = [own["ts"].cast(pa.int64()).to_pylist() for own in self.data.tables]
        near = LENGTH if self.data.windowed else 10**12
        return [
            (i, j)
            for i, j in product(*(range(first, len(own)) for first, own in zip(oldest, rows, strict=True)))
            if abs(times[0][i] - times[1][j]) < near and _is_true(holds, [rows[0][i], rows[1][j]])
        ]

    def found(self, sizes: KernelSizes, oldest: tuple[int, int]) -> list[tuple[int, int]]:
        """The pairs that a scan finds."""
        recipe = Recipe(make_plan(self.join, 1, local_join=SCAN), sizes)
        kernels, reader = recipe.pairing(0, 1).kernels, recipe.reader(StringTable())
        literals = reader.literals(kernels.literals)
        columns = [self._read(reader, k) for k in (0, 1)]
        r, s = (reader.for_pairs(k, own) for k, own in enumerate(columns))
        found = [pair for part in kernels.scan(r, s, literals, oldest) for pair in zip(*part, strict=True)]
        return sorted((int(i), int(j)) for i, j in found)

    def _read(self, reader: Any, stream: int) -> Columns:
        batch = as_batch(self.data.tables[stream])
        columns: Columns = reader.read(stream, Block(batch, micros(batch.column("ts")), np.zeros(len(batch), np.uint8)))
        return columns


def _is_true(holds: evaluation.Evaluator, rows: list[dict[str, Any]]) -> bool:
    try:
        return holds(rows) is True
    except AnsiError:
        return False


SIZES = {
    "usual": lambda target: KernelSizes.of(target),
    "small tiles": lambda target: KernelSizes(
        Vectors(target.width // 4, 1, 3), target, tile=256, pairs=64, sample=1, rare=0
    ),
    "many pairs": lambda target: KernelSizes(
        Vectors.of(target), target, tile=100, pairs=32, sample=1, rare=ALWAYS_DENSE
    ),
    "one lane": lambda target: KernelSizes(Vectors(1, 1, 1), target, tile=1, pairs=1, sample=1),
}
COMBINED = list(product(PREDICATES, reachable(), SIZES))


@pytest.mark.parametrize(
    ("number", "predicate", "target", "size"), sampled([(k, *own) for k, own in enumerate(COMBINED)], 5)
)
def test_a_scan_finds_what_the_plain_rule_says(number: int, predicate: str, target: Any, size: str) -> None:
    for data in {number % 16, (number * 7 + 3) % 16}:
        case = Case(PREDICATES[predicate], Data.of(data))
        for oldest in ((0, 0), (5, 11)):
            found = case.found(SIZES[size](target), oldest)
            assert case.expected(oldest) == found, f"data {data}, from {oldest} on"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("inner", [1, SPARE - 1, SPARE, SPARE + 1, 700])
def test_all_hit_rates_and_windows_of_any_size(share: float, inner: int) -> None:
    # with ids out of order of the windows, several tiles, and a switch from the one form to the other on the way
    rng = np.random.default_rng(inner)
    r = pa.table({"ts": pa.array(range(9)).cast(pa.timestamp("us")), "x": np.zeros(9, np.int32)})
    hits = rng.random(inner) < share
    s = pa.table({"ts": pa.array(range(inner)).cast(pa.timestamp("us")), "x": (~hits).astype(np.int32)})
    case = Case("r.x = s.x", Data((r, s), False))
    wanted = [(i, int(j)) for i in range(9) for j in np.flatnonzero(hits)]
    assert wanted == case.found(KernelSizes(tile=64, pairs=100, sample=32, rare=10), (0, 0))


def test_one_match_that_comes_early_is_not_taken_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(4000, np.int32)
    x[[0, 3000]] = 0
    r, s = (pa.table({"ts": pa.array(range(len(own))).cast(pa.timestamp("us")), "x": own}) for own in (x[:4] * 0, x))
    compiled, forms = PairKernels._compiled, []

    def seen(self: Any, *how: Any) -> Any:
        forms.append(next(own for own in how if isinstance(own, Form)))
        return compiled(self, *how)

    monkeypatch.setattr(PairKernels, "_compiled", seen)
    assert [(i, j) for i in range(4) for j in (0, 3000)] == Case("r.x = s.x", Data((r, s), False)).found(USUAL, (0, 0))
    assert [Form.RARE] == forms


@pytest.mark.skipif(not reachable()[0].has_masks, reason="only with masks is a number compared once with two bounds")
def test_a_scan_that_takes_its_coarse_test_for_the_condition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = scan.is_exact
    monkeypatch.setattr(scan, "is_exact", lambda *args, spans: exact(*args))
    scan.scan_kernel.cache_clear()
    case = Case(PREDICATES["no one"], Data.of(2))
    assert case.expected((0, 0)) == []
    assert case.found(KernelSizes.of(reachable()[0]), (0, 0))
    scan.scan_kernel.cache_clear()


def near_edges() -> list[float]:
    """Doubles at, around and between floats, and all that is special."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 400, dtype=np.uint64).astype(np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        floats = np.concatenate([bits.view(np.float32), np.array(SPECIAL, np.float32)]).astype(np.float64)
        between = (floats + np.roll(floats, 1)) / 2
        around = [np.nextafter(floats, np.inf), np.nextafter(floats, -np.inf), floats, between]
    return [*SPECIAL, *np.concatenate(around).tolist()]


def test_a_bound_rounded_inwards_decides_as_the_bound_does() -> None:
    bounds = np.array(near_edges())
    column = Column(0, "d", DOUBLE)
    computation = Computation([Call(op, (column,), FLOAT) for op in (Op.FLOAT_BELOW, Op.FLOAT_ABOVE)])
    (below, _), (above, _) = computation.run({column: (bounds, None)}, StringTable(), len(bounds))
    constants = [[float_near(bound, op) for bound in bounds.tolist()] for op in (Op.FLOAT_BELOW, Op.FLOAT_ABOVE)]
    np.testing.assert_array_equal(np.array(constants, np.float32), np.array([below, above]))
    with np.errstate(over="ignore", invalid="ignore"):
        near = [np.nextafter(below, np.float32(-np.inf)), below, above, np.nextafter(above, np.float32(np.inf))]
    for tried in [*near, *(np.full(len(bounds), edge, np.float32) for edge in (0.0, -0.0, np.inf, -np.inf))]:
        wide = tried.astype(np.float64)
        np.testing.assert_array_equal(wide <= bounds, tried <= below)
        np.testing.assert_array_equal(wide < bounds, tried < above)
        np.testing.assert_array_equal(bounds <= wide, above <= tried)
        np.testing.assert_array_equal(bounds < wide, below < tried)
    np.testing.assert_array_equal(np.isnan(bounds), np.isnan(below) & np.isnan(above))
