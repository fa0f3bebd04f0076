"""A workload on Spark is the workload: the same rows in batch, per trigger, and across a restart."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from handfast.connectors import spark_source
from handfast.connectors.feed import Feed
from handfast.connectors.generate import CellJoin, Equality, Workload, Zipf
from handfast.connectors.spark_source import WorkloadSource
from handfast.errors import SpecError

pytestmark = pytest.mark.spark

OPTIONS = {"workload": "celljoin", "stream": "r", "seed": "7", "rate": "2000"}
WORKLOADS = [
    Workload(CellJoin(domain=50), seed=7),
    Workload(Equality(match_rate=0.3), seed=2**64 - 1, rate=50, disorder=timedelta(seconds=3)),
    Workload(Zipf(keys=20, exponent=0.5), seed=1, disorder=timedelta(milliseconds=5)),
]


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    """The session, with the source in it."""
    spark.dataSource.register(WorkloadSource)
    return spark


def by_id(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def run(stream: DataFrame, folder, **trigger) -> list[int]:
    """Write `stream` to parquet until it ends; the rows of each trigger that had any."""
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def written(spark: SparkSession, folder) -> list[dict[str, object]]:
    return by_id(spark.read.parquet(str(folder / "out")).toArrow())


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_feed_is_read_back_from_its_options(workload):
    for feed in (Feed(workload, "s", None, 3), Feed(workload, "r", 100, 20, 5)):
        assert feed == Feed.read(feed.options())


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_batch_read_has_the_rows_of_the_table_in_their_order(spark, workload):
    found = spark_source.tables(spark, workload, rows=1_000, partitions=3)
    for stream in ("r", "s"):
        assert workload.table(stream, 0, 1_000) == found[stream].toArrow().cast(workload.schema(stream))


def test_more_rows_than_one_arrow_batch_are_all_there(spark):
    found = spark_source.tables(spark, Workload(Equality()), rows=200_001, partitions=1)["s"]
    assert list(range(200_001)) == found.toArrow()["id"].to_pylist()


def test_a_trigger_takes_at_most_its_rows_and_the_stream_ends_with_the_last(spark, tmp_path):
    workload = WORKLOADS[1]
    stream = spark_source.streams(spark, workload, rows=250, rows_per_trigger=100)["r"]
    assert stream.isStreaming
    assert run(stream, tmp_path) == [100, 100, 50]
    assert by_id(workload.table("r", 0, 250)) == written(spark, tmp_path)


def test_a_stopped_stream_goes_on_from_its_checkpoint(source, tmp_path):
    reader = source.readStream.format("handfast").options(**OPTIONS).option("rowsPerTrigger", "80")
    assert run(reader.option("rows", "100").load(), tmp_path) == [80, 20]
    assert run(reader.option("rows", "250").load(), tmp_path) == [80, 70]
    assert run(reader.option("rows", "120").load(), tmp_path) == []
    assert by_id(Workload(seed=7, rate=2_000).table("r", 0, 250)) == written(source, tmp_path)


def test_a_batch_that_was_planned_but_not_committed_is_read_again(source, tmp_path):
    stream = source.readStream.format("handfast").options(**OPTIONS, rows="300", rowsPerTrigger="100").load()
    assert run(stream, tmp_path) == [100, 100, 100]
    before = written(source, tmp_path)
    for log in (tmp_path / "checkpoint" / "commits", tmp_path / "out" / "_spark_metadata"):
        (log / "2").unlink()
        (log / ".2.crc").unlink()
    assert before[:200] == written(source, tmp_path)
    assert run(stream, tmp_path) == [100]
    assert before == written(source, tmp_path)


def test_a_trigger_without_limit_reads_to_the_end(source, tmp_path):
    stream = source.readStream.format("handfast").options(**OPTIONS, rows="300", rowsPerTrigger="100").load()
    assert run(stream, tmp_path, once=True) == [300]


def test_an_endless_stream_goes_on_by_one_second_of_event_time(source):
    stream = source.readStream.format("handfast").options(**OPTIONS).load()
    query = stream.writeStream.format("memory").queryName("endless").start()
    try:
        for _ in range(300):
            if len(query.recentProgress) >= 2 or query.awaitTermination(0.2):
                break
    finally:
        query.stop()
    assert [progress["numInputRows"] for progress in query.recentProgress][:2] == [2_000, 2_000]
    rows = source.table("endless").count()
    assert by_id(Workload(seed=7, rate=2_000).table("r", 0, rows)) == by_id(source.table("endless").toArrow())


def test_an_endless_stream_refuses_to_read_all_there_is(source, tmp_path):
    stream = source.readStream.format("handfast").options(**OPTIONS).load()
    with pytest.raises(StreamingQueryException, match=r"needs an end; add \.option\('rows', …\)"):
        run(stream, tmp_path)
    with pytest.raises(AnalysisException, match=r"needs an end; add \.option\('rows', …\)"):
        source.read.format("handfast").options(**OPTIONS).load().count()


def test_a_checkpoint_of_other_rows_is_refused(source, tmp_path):
    reader = source.readStream.format("handfast").options(**OPTIONS)
    run(reader.option("rows", "10").load(), tmp_path)
    with pytest.raises(StreamingQueryException, match=r"of the rows of \(.*seed=7.*asks for \(.*seed=8"):
        run(reader.options(rows="20", seed="8").load(), tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workload": "celljoin"}, "Source 'handfast' needs option 'stream'; add .option('stream', …)"),
        ({"stream": "r"}, "Source 'handfast' needs option 'workload'; add .option('workload', …)"),
        (OPTIONS | {"workload": "zip"}, "No workload is called 'zip'; did you mean 'zipf'? (there are celljoin, equ"),
        (OPTIONS | {"stream": "t"}, "A workload has the streams r and s, not 't'"),
        (
            OPTIONS | {"sed": "8"},
            "Workload 'celljoin' takes no option 'sed'; did you mean 'seed'? (there are workload,",
        ),
        (OPTIONS | {"matchRate": "1"}, "Workload 'celljoin' takes no option 'matchrate'"),
        (OPTIONS | {"rows": "many"}, "Option 'rows' must be a whole number, not 'many'"),
        (
            OPTIONS | {"rowsPerTrigger": "0"},
            "Option 'rowsPerTrigger' must be a whole number from 1 to 4,398,046,511,104",
        ),
        (OPTIONS | {"rate": "-1"}, "A workload's rate must be a whole number from 1 to 1,000,000,000, not -1"),
    ],
)
def test_a_wrong_option_is_named_with_the_rule_and_the_way_out(options, message):
    with pytest.raises(SpecError) as error:
        Feed.read(options)
    assert str(error.value).startswith(message)


def test_spark_shows_the_error_when_the_source_is_loaded(source):
    with pytest.raises(AnalysisException, match=r"takes no option 'sed'; did you mean 'seed'\?"):
        source.readStream.format("handfast").options(**OPTIONS, sed="8").load()
