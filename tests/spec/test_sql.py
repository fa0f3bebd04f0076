"""`to_sql` prints the query that defines the join: Spark SQL, run on it, gives what the oracle gives."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.judges.rows import multiset, result_of
from tests.sampling import sampled
from tests.strategies import BANDS, EQUALITIES, MULTI, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW = ("inner", "left", "right", "full", "semi", "anti")


def _case(seed: int) -> Case:
    """A case whose arithmetic does not fail: Spark's would stop the query."""
    while True:
        pool = MULTI if seed % 4 == 3 else (*EQUALITIES, *BANDS)
        case = Case.of(seed, for_spark=True, shape=pool[seed % len(pool)])
        if seed % 2:
            case = case.counted(random.Random(seed))
        if seed % 28 >= 8:
            chance = random.Random(seed)
            case = (case.arriving(chance) if seed % 2 == 0 else case).valid(chance)
        if "refused arithmetic" not in case.features() and case.expected():
            return case
        seed += 28


def _spread(table: pa.Table, widths: list[int]) -> Counter[tuple[Any, ...]]:
    """The rows with every stream's struct as its columns; NULL is NULL in all of them."""
    columns: list[Any] = []
    for column, width in zip(table.columns[:-1], widths, strict=True):
        whole = column.combine_chunks()
        columns += whole.flatten() if not pa.types.is_null(whole.type) else [pa.nulls(len(whole))] * width
    names = [str(k) for k in range(len(columns) + 1)]
    return multiset(result_of(pa.table([*columns, table.column(table.num_columns - 1)], names=names)))


@pytest.mark.spark
@pytest.mark.parametrize("seed", sampled(range(12), 3))
def test_spark_sql_runs_the_defining_query(spark: SparkSession, seed: int) -> None:
    case = _case(seed)
    case = case.asked(how=HOW[seed % 6]) if len(case.streams) == 2 else case
    if seed % 4 < 2 or seed > 8:
        case = case.asked(in_order=True)
    for name, table in case.tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(f"`{name}`")
    widths = [case.tables[name].num_columns for name in case.streams]
    given = spark.sql(case.spec.to_sql()).toArrow()
    assert case.expected() == _spread(given, widths[: given.num_columns - 1]), f"{case.spec.to_sql()}\n{case}"
    if case.spec.in_order and case.spec.order == "event":
        times = given["match_time"].to_pylist()
        assert times == sorted(times)
