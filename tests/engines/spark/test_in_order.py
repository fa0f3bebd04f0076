"""An aggregation or another join in Spark behind a join in order: it loses nothing, whatever the join gives."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import handfast as hf
from handfast.engines.spark import engine
from tests.engines.spark import crash_job
from tests.sampling import sampled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES, SECONDS = 6, 10  # of each stream, and in each of them
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
JOINS: dict[str, dict[str, Any]] = {
    "inner": {"how": "inner"},
    "left": {"how": "left"},
    "right": {"how": "right"},
    "full": {"how": "full"},
    "semi": {"how": "semi"},
    "anti": {"how": "anti"},
    "left, by count": {"how": "left", "window": {"r": "6 rows", "s": "3 seconds"}},
}


def _stream(every: timedelta, keys: int, seed: int) -> list[pa.Table]:
    """Rows at regular times, in files, up to two seconds out of order."""
    chance = random.Random(seed)
    rows = [(START + k * every, k * k % keys) for k in range(int(FILES * timedelta(seconds=SECONDS) / every))]
    rows.sort(key=lambda row: row[0] + timedelta(seconds=2 * chance.random()))
    size = -(-len(rows) // FILES)
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [pa.table({"ts": [t for t, _ in part], "k": [k for _, k in part]}, schema=schema) for part in parts]


STREAMS = {"r": _stream(timedelta(milliseconds=250), 13, 1), "s": _stream(timedelta(milliseconds=400), 17, 2)}


def _counts(matches: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return matches.groupBy(F.window("match_time", "3 seconds")).count().select("window.start", "count")


def _live(
    spark: SparkSession, folder: Path, streams: Mapping[str, Sequence[pa.Table]] = STREAMS
) -> dict[str, DataFrame]:
    """Streaming DataFrames that bring one file of each stream in a batch."""
    frames = {}
    for name, tables in streams.items():
        (folder / name).mkdir()
        for number, table in enumerate(tables):
            path = folder / name / f"{number}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads files in the order of their times
        files = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
        frames[name] = files.parquet(str(folder / name))
    return frames


@pytest.mark.parametrize("join", sampled(JOINS, 3))
def test_an_aggregation_behind_a_join_in_order_equals_the_one_in_batch(
    spark: SparkSession, tmp_path: Path, join: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf.configure(spark, cores=2)
    asked = {"on": "r.k = s.k", "time": "ts", "window": {"r": "4 seconds", "s": "3 seconds"}, "in_order": True}
    asked |= JOINS[join]
    still = {name: spark.createDataFrame(pa.concat_tables(tables)) for name, tables in STREAMS.items()}
    batch = {row["start"]: row["count"] for row in _counts(hf.join(still, **asked)).collect()}
    # a core that remembers nothing from batch to batch: what it holds, it has from the state
    monkeypatch.setattr(engine, "JoinProcessor", crash_job.watch(tmp_path / "runs", forgetful=True))
    matches = hf.join(_live(spark, tmp_path), **asked, lateness="2 seconds").withWatermark("match_time", "0 seconds")
    seen: dict[Any, int] = {}

    def keep(frame: DataFrame, number: int) -> None:
        for row in frame.collect():
            assert row["start"] not in seen
            seen[row["start"]] = row["count"]

    query = (
        _counts(matches)
        .writeStream.foreachBatch(keep)
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    # the last windows stay open: the watermark has not passed their end
    assert len(seen) >= len(batch) // 2
    assert {start: count for start, count in batch.items() if start <= max(seen)} == seen


def test_an_outer_join_behind_a_join_in_order_is_one_of_three_streams(spark: SparkSession, tmp_path: Path) -> None:
    """What the error of an outer join of three streams sends its reader to."""
    hf.configure(spark, cores=2)
    streams = STREAMS | {"t": _stream(timedelta(milliseconds=700), 11, 3)}
    still = {name: spark.createDataFrame(pa.concat_tables(tables)) for name, tables in streams.items()}
    expected = _lonely(still)
    query = (
        _lonely(_live(spark, tmp_path, streams), lateness="2 seconds")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "output"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found, wanted = map(_counted, (spark.read.schema(expected.schema).parquet(str(tmp_path / "output")), expected))
    assert any(row[1] is None for row in found)
    assert not found - wanted
    late = START + timedelta(seconds=(FILES - 1) * SECONDS - 12)  # what is not decided without more rows
    assert all(row[0] > late for row in wanted - found)
    assert len(found) > len(wanted) // 2


def _counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in frame.toArrow().to_pylist())


def _lonely(frames: Mapping[str, DataFrame], lateness: str | None = None) -> DataFrame:
    """Every row of `t`, with the pairs of `r` and `s` that it has."""
    live = {} if lateness is None else {"lateness": lateness}
    pair = {name: frames[name] for name in ("r", "s")}
    pairs = hf.join(pair, on="r.k = s.k", window="3 seconds", time="ts", in_order=True, **live)
    return hf.join(
        {"t": frames["t"], "pair": pairs},
        on="t.k = pair.r_k",
        how="left",
        window="2 seconds",
        time={"t": "ts", "pair": "match_time"},
        select="t.ts, pair.r_ts, pair.s_ts, match_time",
        **({"lateness": {"t": lateness, "pair": "0 seconds"}} if live else {}),
    )
