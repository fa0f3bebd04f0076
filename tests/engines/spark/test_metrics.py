"""`hf.metrics`: the counters in a query's progress, in the shapes that Spark and Spark Connect give it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

import handfast as hf
from handfast.engines.spark.output import as_share
from handfast.flow.metrics import Metrics, StreamMetrics
from tests.agreement.admission import adds_up
from tests.engines.spark import crash_job

FIRST = Metrics({"r": StreamMetrics(rows_in=9, live=3, expired=1)}, matches=5, watermark=70)
SECOND = Metrics({"r": StreamMetrics(live=2, late=2, rejected=1)}, matches=1, watermark=70)
BOTH = Metrics({"r": StreamMetrics(rows_in=9, live=5, expired=1, late=2, rejected=1)}, matches=6, watermark=70)
SHARES = [as_share(1, 2, SECOND), as_share(0, 2, FIRST)]
SHAPES = {"Spark": Row(shares=SHARES), "Spark Connect": Row(values=[SHARES], schema={"type": "struct"})}


def query(*observed: dict[str, Any] | None) -> Any:
    """A query that has made such progress."""
    return SimpleNamespace(recentProgress=[{"observedMetrics": metrics} for metrics in observed])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shares_of_all_cores_add_up(shape: str) -> None:
    assert BOTH == hf.metrics(query({"handfast:1": SHAPES[shape], "mine": Row(rows=3)}))
    assert BOTH == hf.metrics({"observedMetrics": {"handfast:1": SHAPES[shape]}})


def test_a_batch_without_rows_leaves_the_counters_as_they_were() -> None:
    assert BOTH == hf.metrics(query({"handfast:1": SHAPES["Spark"]}, {"handfast:1": Row(shares=[])}, {}, None))


def test_a_core_that_hands_out_its_share_twice_counts_once() -> None:
    assert BOTH == hf.metrics(query({"handfast:1": Row(shares=[*SHARES, SHARES[0]])}))


def test_what_cannot_be_told_is_an_error() -> None:
    with pytest.raises(hf.EngineError, match=r"it has finished no batch, or it runs no hf\.join"):
        hf.metrics(query({"mine": Row(rows=3)}))
    with pytest.raises(hf.SpecError, match="takes a StreamingQuery or one progress of it, not None"):
        hf.metrics(None)
    with pytest.raises(hf.SpecError, match="takes a Spark session, not None"):
        hf.configure(None, cores=1)
    with pytest.raises(hf.EngineError, match="runs 2 joins"):
        hf.metrics(query({"handfast:1": SHAPES["Spark"], "handfast:2": SHAPES["Spark"]}))
    with pytest.raises(hf.InternalError, match=r"Of 2 cores only \[1\]"):
        hf.metrics(query({"handfast:1": Row(shares=SHARES[:1])}))


def test_times_are_given_as_datetimes_too() -> None:
    shares = [Metrics({"r": StreamMetrics(), "s": StreamMetrics()}, 0, 2_500_000, newest={"r": n}) for n in (3, 10**6)]
    found = hf.metrics(query({"handfast:1": Row(shares=[as_share(k, 2, own) for k, own in enumerate(shares)])}))
    assert datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC) == found.watermark_time
    assert {"r": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "s": None} == found.newest_times
    assert None is Metrics.start(["r"]).watermark_time
    assert FIRST == Metrics.decode(FIRST.encode()[:3]), "as the first versions wrote it"


def test_a_query_that_died_raises_what_it_died_of() -> None:
    died = query({"handfast:1": SHAPES["Spark"]})
    died.exception = lambda: None
    assert BOTH == hf.metrics(died)
    died.exception = lambda: StreamingQueryException("out of luck")
    with pytest.raises(StreamingQueryException, match="out of luck"):
        hf.metrics(died)


@pytest.mark.spark
def test_a_part_of_a_batch_that_runs_again_leaves_the_counters_whole(spark: SparkSession, tmp_path: Path) -> None:
    """As where an executor is lost with its share of a batch that was complete."""

    def look(batch: DataFrame, number: int) -> None:
        written.append(batch.count())
        batch.limit(1).collect()

    written: list[int] = []
    hf.configure(spark, cores=crash_job.PARTITIONS)
    crash_job.write_files(tmp_path / "inputs", last=2)
    matches = hf.join(crash_job.frames(spark, tmp_path / "inputs"), crash_job.spec("range"))
    query = matches.writeStream.foreachBatch(look).option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = query.trigger(availableNow=True).start()
    crash_job.finish(running)
    counted = [hf.metrics(progress) for progress in running.recentProgress if progress.numInputRows]
    assert [sum(written[: number + 1]) for number in range(2)] == [own.matches for own in counted]
    assert all(map(adds_up, counted))
    came = {stream: pa.concat_tables(step[stream] for step in crash_job.steps()[:2]) for stream in "rs"}
    assert {stream: max(filter(None, rows["ts"].to_pylist())) for stream, rows in came.items()} == counted[
        -1
    ].newest_times


CONNECT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import handfast as hf
from tests.engines.spark import crash_job, write_job
spark = SparkSession.builder.remote("local[2]").getOrCreate()
hf.configure(spark, cores=crash_job.PARTITIONS)
home = Path(sys.argv[1])
crash_job.write_files(home / "inputs", last=3)
query = write_job.start(spark, home / "inputs", home, sys.argv[2])
query.awaitTermination()
counted = hf.metrics(query)
places = {"matches": home / "matches"} | {f"late {s}": home / "late" / s for s in "rs"}
print(json.dumps([counted.encode(), {what: spark.read.parquet(str(path)).count() for what, path in places.items()}]))
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.parametrize("windows", [pytest.param("time", marks=pytest.mark.slow), "count"])
def test_spark_connect_writes_and_counts_as_well(tmp_path: Path, windows: str) -> None:
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", CONNECT, str(tmp_path), windows]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr[-4000:]
    encoded, written = json.loads(done.stdout.splitlines()[-1])
    counted = Metrics.decode(encoded)
    late = {f"late {stream}": own.late for stream, own in counted.streams.items()}
    assert {"matches": counted.matches, **late} == written
    assert all(written.values())
