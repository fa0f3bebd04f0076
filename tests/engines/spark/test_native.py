"""Spark's own join of batches gives, wherever it may be asked for, what both judges and handfast's cores give."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

import handfast as hf
from handfast.engines.spark import native
from handfast.spec.join import HOW
from tests.agreement.runs import Result, spark_batch
from tests.judges.rows import multiset, result_of
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHAR = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}

KEYS = (
    "r.i = s.l",
    "r.f = s.d",
    "r.d = s.d",
    "r.t = s.t",
    "r.b = s.b",
    "r.day = s.day",
    "r.n = s.n",
    "r.i = s.h AND r.t = s.t",
)
CONDITIONS = (
    "",
    "r.d < s.d",
    "r.d BETWEEN s.d - 0.5 AND s.d + 0.5",
    "(r.i < s.l OR r.t <= s.t) AND NOT r.o",
    "r.f <= s.d AND (r.i IN (1, 2, NULL) OR s.t IS NULL)",
    "CASE WHEN r.o THEN r.d ELSE s.d END > 0.25",
    "NOT r.i <=> s.h OR r.t = 'a'",
    "ABS(r.d - s.d) * 2.0D < GREATEST(r.d, s.d)",
    "r.t <> s.t",
)
OF_ORACLE_ALONE = "COALESCE(r.d, s.d, 1.0D) >= LEAST(r.f, s.d)"  # what the other judge has no words for
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [0, 1, 2, -1]),
    "l": (pa.int64(), [0, 1, 2, 2**40]),
    "h": (pa.int16(), [0, 1, -1]),
    "f": (pa.float32(), [0.0, -0.0, 0.5, math.nan, math.inf]),
    "d": (pa.float64(), [0.0, -0.0, 0.5, 1.0, math.nan, -math.inf]),
    "t": (pa.string(), ["", "a", "é", "long " * 9]),
    "b": (pa.binary(), [b"", b"\x00", b"\xff"]),
    "o": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [date(2026, 1, 31), date(1969, 12, 31)]),
    "n": (pa.decimal128(20, 2), [Decimal("0.50"), Decimal("-7.25")]),
}
CASES = 48


def equal_keys(seed: int) -> Case:
    """A random join by equal keys of which Spark's own join gives the same; by the oracle alone if divisible by 8."""
    chance = random.Random(seed)
    tables = {name: _table(chance) for name in "rs"}
    condition = OF_ORACLE_ALONE if seed % 8 == 0 else chance.choice(CONDITIONS)
    on = " AND ".join(f"({part})" for part in (chance.choice(KEYS), condition) if part)
    window = {name: timedelta(microseconds=chance.randint(1, 12)) for name in "rs"}
    kwargs = {"on": on, "window": window, "time": "ts", "how": HOW[seed % len(HOW)]}
    case = Case(SHAPES[0], ("r", "s"), kwargs, "0 seconds", tables, [tables], 2, origin=f"equal_keys({seed})")
    return case.valid(chance) if seed % 3 == 0 else case


def _table(chance: random.Random) -> pa.Table:
    rows = chance.randint(0, 25)
    times = [chance.choice([*range(20), None]) for _ in range(rows)]
    columns = {name: _column(chance, rows, *of) for name, of in TYPES.items()}
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), **columns})


def _column(chance: random.Random, rows: int, type_: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.array([chance.choice([*values, None]) for _ in range(rows)], type_)


@pytest.mark.parametrize("start", sampled(range(0, CASES, 6), 8))
def test_both_ways_to_join_batches_give_what_the_judges_give(
    spark: SparkSession, start: int, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(start, start + 6):
        case = equal_keys(seed)
        expected = case.expected()
        assert seed % 8 == 0 or expected == case.judged(), f"judges: {case}"
        for way in ("cores", "native"):
            assert expected == spark_batch(case, spark, hf.SparkOptions(batch_join=way)), f"{way}: {case}"
    record_property("batch cases by equal keys", 6)


@pytest.mark.parametrize("start", sampled(range(0, 60, 20), 3))
def test_any_join_is_refused_or_gives_the_same(spark: SparkSession, start: int) -> None:
    asked = hf.SparkOptions(batch_join="native")
    for seed in range(start, start + 20):
        case = Case.of(seed, for_spark=True, shape=SHAPES[seed % len(SHAPES)])
        try:
            found = spark_batch(case, spark, asked)
        except hf.UnsupportedError as refused:
            assert "batch_join='native'" in str(refused)
        else:
            assert case.expected() == found, f"{case}"


def test_what_spark_may_not_say_is_refused_and_says_why(spark: SparkSession) -> None:
    hf.configure(spark, cores=2, quiet=True)
    case = equal_keys(0)
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    whys = {
        "r.d < s.d": "no equality",
        "r.i = s.i AND r.i + s.i > 2": r"\+ of int may fail in Spark",
        "r.i = s.i AND s.d / r.d > 2": "/ of double may fail in Spark",
    }
    asked = {"window": "1 second", "time": "ts", "options": hf.SparkOptions(batch_join="native")}
    for on, why in whys.items():
        with pytest.raises(hf.UnsupportedError, match=why):
            hf.join(frames, on=on, **asked)
    with pytest.raises(hf.UnsupportedError, match="a window counts rows"):
        hf.join(frames, on="r.i = s.i", **{**asked, "window": "5 rows"})
    with pytest.raises(hf.UnsupportedError, match="in the order of all"):
        hf.join(frames, on="r.i = s.i", in_order=True, **asked)


def test_a_column_that_spark_would_pad_is_not_compared_by_spark(spark: SparkSession) -> None:
    hf.configure(spark, cores=2, quiet=True)
    noted = StructType([StructField("ts", TimestampType()), StructField("c", StringType(), True, CHAR)])
    rows = spark.createDataFrame(pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "c": ["a"]}))
    frames = {"r": rows.to(noted), "s": rows}
    asked: dict[str, Any] = {"on": "r.c = s.c", "window": "1 second", "time": "ts"}
    with pytest.raises(hf.UnsupportedError, match=r"Spark may pad 'c' of 'r', a column of char\(5\), to compare it"):
        hf.join(frames, **asked, options=hf.SparkOptions(batch_join="native"))
    assert hf.join(frames, **asked).count() == 1


@pytest.mark.parametrize(
    "condition", ["r.d = s.d AND r.d = 0D", "ISNAN(r.d)", "s.f > 1F", "r.f <= -0.0F", "CAST(r.f AS DOUBLE) >= 0.5D"]
)
def test_numbers_beside_constants_are_not_left_to_files_to_test(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Parquet's statistics and dictionaries pass over NaN, and take -0.0 for another number than 0.0."""
    hf.configure(spark, cores=2, quiet=True)
    numbers = {"d": pa.array([-0.0, math.nan]), "f": pa.array([0.0, math.nan], pa.float32())}
    rows = pa.table({"ts": pa.array([0, 0], pa.timestamp("us", "UTC")), "k": [1, 2], **numbers})
    pq.write_table(rows, tmp_path / "rows.parquet")
    read = spark.read.parquet(str(tmp_path / "rows.parquet"))
    for way in ("cores", "native"):
        asked: dict[str, Any] = {"window": "1 second", "time": "ts", "options": hf.SparkOptions(batch_join=way)}
        assert hf.join({"r": read, "s": read}, on=f"r.k = s.k AND {condition}", **asked).count() == 1, way


def test_names_and_payload_go_through_either_way(spark: SparkSession) -> None:
    """Names that hold dots and backticks or differ in case alone, and columns that a predicate cannot name."""
    hf.configure(spark, cores=2, quiet=True)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql(
            "SELECT timestamp_micros(id) AS ts, id % 3 AS K, id AS k, id AS `a.b`, id AS `c``d`, map(id, 'x') AS m, "
            "named_struct('p', array(id, NULL)) AS n FROM range(9)"
        )
        found: list[Result] = []
        for way in ("cores", "native"):
            both = {"r": frame, "s": frame}
            joined = hf.join(
                both, on="r.K = s.K", window="4 us", time="ts", how="left", options=hf.SparkOptions(batch_join=way)
            )
            assert [f"{name}_{own}" for name in "rs" for own in frame.columns] + ["match_time"] == joined.columns
            found.append(multiset(map(repr, result_of(joined.toArrow()))))
        assert found[0] == found[1] and len(found[0]) > 9
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_explain_says_what_joins_and_why(spark: SparkSession) -> None:
    hf.configure(spark, cores=2, quiet=True)
    case = equal_keys(0)
    frames = {name: spark.createDataFrame(table) for name, table in case.tables.items()}
    asked: dict[str, Any] = {"on": "r.i = s.i", "window": "1 hour", "time": "ts"}
    text = hf.explain(frames, **asked)
    assert "joined by  handfast's cores" in text and "routing    hash" in text
    assert "because Spark's own join would try every pair of equal keys" in text
    text = hf.explain(frames, **asked, options=hf.SparkOptions(batch_join="native"))
    assert "joined by  Spark's own join by equal keys\n             because it was asked for" in text
    assert "routing" not in text and "s.ts − r.ts in (−1 h, +1 h)" in text
    asked |= {"valid_from": 0, "valid_to": 3_599_999_999}
    assert "because all valid times are in one window" in hf.explain(frames, **asked)
    assert "handfast's cores" in hf.explain(frames, **{**asked, "valid_to": 3_600_000_000})
    assert "handfast's cores" in hf.explain(frames, **asked, options=hf.SparkOptions(batch_join="cores"))
    assert "joined by" not in hf.explain(frames, **{**asked, "on": "r.d < s.d"})


# -- deliberate bugs -------------------------------------------------------------------------------------------------


def _windows_of_the_other(plan: Any) -> list[Any]:
    streams = plan.join.spec.streams
    swapped = replace(plan.join.spec.streams[0], window=streams[1].window)
    other = replace(plan.join.spec.streams[1], window=streams[0].window)
    spec = object.__new__(type(plan.join.spec))
    for name in ("on", "how", "in_order", "select", "order"):
        object.__setattr__(spec, name, getattr(plan.join.spec, name))
    object.__setattr__(spec, "streams", (swapped, other))
    return _IN_WINDOWS(replace(plan, join=replace(plan.join, spec=spec)))


_IN_WINDOWS = native._in_windows
BUGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "each row in the other's window": lambda patch: patch.setattr(native, "_in_windows", _windows_of_the_other),
    "no windows": lambda patch: patch.setattr(native, "_in_windows", lambda plan: []),
    "an inner join whatever is asked": lambda patch: patch.setattr(native, "_how", lambda how: "inner"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_cases_show(spark: SparkSession, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    asked = hf.SparkOptions(batch_join="native")
    assert any(equal_keys(seed).expected() != spark_batch(equal_keys(seed), spark, asked) for seed in range(1, 12)), bug
