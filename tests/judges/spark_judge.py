"""A third judge: Spark SQL itself, with the user's predicate as it stands, on data that makes no arithmetic fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.judges.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def matches(spark: SparkSession, spec: Any, tables: Mapping[str, pa.Table]) -> list[tuple[int, int, int]]:
    """Every match as the row numbers of its two rows and its match_time in microseconds. The session's zone is UTC."""
    r, s = spec.streams
    sides = {}
    for stream in (r, s):
        table = tables[stream.name]
        frame = spark.createDataFrame(table.append_column("#", pa.array(range(len(table)), pa.int64())))
        sides[f"_{stream.name}"] = frame.selectExpr(
            "*", f"unix_micros(CAST(`{stream.time}` AS TIMESTAMP)) AS `#time`"
        ).where("`#time` IS NOT NULL")
    a, b = f"`{r.name}`", f"`{s.name}`"
    text = f"""
      SELECT {a}.`#` AS i, {b}.`#` AS j, greatest({a}.`#time`, {b}.`#time`) AS match_time
      FROM {{_{r.name}}} AS {a} JOIN {{_{s.name}}} AS {b}
      ON CASE WHEN {a}.`#time` <= {b}.`#time`
              THEN {b}.`#time` - {a}.`#time` < {r.window.length}
              ELSE {a}.`#time` - {b}.`#time` < {s.window.length} END
         AND ({spec.on})"""
    return [(row.i, row.j, row.match_time) for row in spark.sql(text, **sides).collect()]


def result(spark: SparkSession, spec: Any, tables: Mapping[str, pa.Table]) -> list[tuple[Any, ...]]:
    """Every match as a row of the result: all columns of both streams, then match_time."""
    r, s = (rows_of(tables[stream.name]) for stream in spec.streams)
    return [(*r[i].values(), *s[j].values(), time) for i, j, time in matches(spark, spec, tables)]
