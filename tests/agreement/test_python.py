"""Predicates written in Python: each means what the same condition in SQL means, on every engine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import handfast as hf
from tests.agreement.runs import local_bounded, local_steps_and_close, spark_batch, spark_streaming
from tests.judges.rows import by_duckdb, multiset
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 120
SECOND = 1_000_000


def near(r_x: int, s_x: int) -> bool:
    return abs(r_x - s_x) < 5


def ratio(r_d: float, s_x: int) -> bool:
    return r_d / (s_x - 3) < 0.5


def looped(r_x: int, s_x: int, r_d: float, s_d: float) -> bool:
    total = 0.0
    for _ in range(3):
        total += abs(r_d - s_d)
    if r_x % 2 == 0:
        return total < 1.5
    return math.sqrt(abs(s_x)) > 2.0


def moments(r_ts: int, s_ts: int, r_day: int, s_day: int) -> bool:
    return abs(r_ts - s_ts) <= 3 * 1_000_000 and r_day != s_day


def one_sided(s_ok: bool, s_x: int) -> bool:
    return s_ok or s_x > 10


# the same in SQL, and a condition in SQL that may stand beside it
PAIRS: list[tuple[Callable[..., Any], str]] = [
    (near, "ABS(r.x - s.x) < 5"),
    (ratio, "r.d / (s.x - 3) < 0.5D"),
    (
        looped,
        "r.x IS NOT NULL AND s.x IS NOT NULL AND r.d IS NOT NULL AND s.d IS NOT NULL AND "
        "CASE WHEN r.x % 2 = 0 THEN 0D + ABS(r.d - s.d) + ABS(r.d - s.d) + ABS(r.d - s.d) < 1.5D ELSE ABS(s.x) > 4 END",
    ),
    (moments, "ABS(r.ts - s.ts) <= INTERVAL 3 SECONDS AND r.day <> s.day"),
    (one_sided, "s.ok IS NOT NULL AND s.x IS NOT NULL AND (s.ok OR s.x > 10)"),
]
BESIDE = [None, "r.k = s.k", "r.x BETWEEN s.x - 7 AND s.x + 7", "r.name < s.name"]


def table(chance: random.Random, rows: int) -> pa.Table:
    def drawn(value: Callable[[], Any]) -> list[Any]:
        return [None if chance.random() < 0.1 else value() for _ in range(rows)]

    return pa.table(
        {
            "ts": pa.array([chance.randrange(20) * SECOND for _ in range(rows)], pa.timestamp("us")),
            "x": pa.array(drawn(lambda: chance.randrange(-20, 20)), pa.int32()),
            "d": pa.array(drawn(lambda: chance.uniform(-2, 2)), pa.float64()),
            "k": pa.array(drawn(lambda: chance.randrange(3)), pa.int64()),
            "ok": pa.array(drawn(lambda: chance.random() < 0.5), pa.bool_()),
            "day": pa.array(drawn(lambda: chance.randrange(4)), pa.date32()),
            "name": pa.array(drawn(lambda: chance.choice("abc")), pa.string()),
        }
    )


def python_case(seed: int) -> tuple[Case, dict[str, Any]]:
    """A case whose predicate is, at least in part, Python; and the same join in SQL alone."""
    chance = random.Random(seed)
    function, sql = PAIRS[seed % len(PAIRS)]
    beside = chance.choice(BESIDE)
    how = chance.choice(["inner", "inner", "left", "full", "semi", "anti"])
    window = chance.choice(["4 seconds", "6 rows"])
    on: Any = hf.predicate(function) if beside is None else [beside, hf.predicate(function)]
    kwargs = {"on": on, "window": window, "time": "ts", "how": how}
    tables = {name: table(chance, chance.randrange(5, 40)) for name in ("r", "s")}
    cuts = {name: sorted(chance.randrange(len(t) + 1) for _ in range(2)) for name, t in tables.items()}
    steps = [
        {n: t.slice(start, stop - start) for n, t in tables.items() for start, stop in [_bounds(cuts[n], len(t), k)]}
        for k in range(3)
    ]
    case = Case(SHAPES[0], ("r", "s"), kwargs, "30 seconds", tables, steps, chance.randrange(1, 4))
    same = {**kwargs, "on": sql if beside is None else f"({beside}) AND {sql}"}
    return case, same


def _bounds(cuts: list[int], rows: int, step: int) -> tuple[int, int]:
    every = [0, *cuts, rows]
    return every[step], every[step + 1]


def test_a_python_predicate_means_what_the_same_sql_means() -> None:
    found = 0
    for seed in range(CASES):
        case, same = python_case(seed)
        expected = case.expected()
        found += sum(expected.values())
        assert expected == multiset(by_duckdb(case.tables, **same)), f"judges differ, seed {seed}: {case}"
        assert expected == local_bounded(case), f"bounded, seed {seed}: {case}"
        decided, closed = local_steps_and_close(case)
        assert case.expected_of_steps() == decided, f"step by step, seed {seed}: {case}"
        assert case.expected_at_close() == closed, f"closed, seed {seed}: {case}"
    assert found > 20 * CASES


@pytest.mark.spark
def test_a_python_predicate_joins_batches_on_spark(spark: SparkSession) -> None:
    for seed in range(len(PAIRS)):
        case, _ = python_case(seed)
        assert case.expected() == spark_batch(case, spark), f"seed {seed}: {case}"


@pytest.mark.spark
def test_a_python_predicate_joins_streams_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    case, _ = python_case(5)
    assert case.expected_of_steps() == spark_streaming(case, spark, tmp_path), f"{case}"
