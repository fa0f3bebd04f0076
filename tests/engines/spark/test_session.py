"""What a Spark session and its inputs must be: errors at `hf.join`, each with the line that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.connectors import spark_source
from handfast.connectors.generate import CellJoin, Workload
from handfast.engines.spark.core_keys import core_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WORKLOAD = Workload(CellJoin(domain=100), seed=3, rate=100)
ASKED: dict[str, Any] = {"on": WORKLOAD.on, "window": "5 seconds", "time": "ts"}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own on the shared Spark: what it sets, nobody else sees."""
    yield spark.newSession()


def test_core_keys_hash_to_their_core(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(core, core_key(core)) for core in range(200)], "core int, key bigint")
    assert 0 == rows.where("hash(key) <> core").count()


def test_an_unconfigured_session_is_told_what_to_call(session: SparkSession) -> None:
    frames = spark_source.streams(session, WORKLOAD, rows=100)
    with pytest.raises(hf.SpecError, match=r"call hf\.configure\(spark\) first"):
        hf.join(frames, **ASKED, lateness="1 second")


def test_a_session_changed_after_configure_is_noticed(session: SparkSession) -> None:
    frames = spark_source.streams(session, WORKLOAD, rows=100)
    hf.configure(session, cores=2)
    session.conf.set("spark.sql.shuffle.partitions", "200")
    with pytest.raises(hf.SpecError, match=r"shuffle\.partitions was changed to 200"):
        hf.join(frames, **ASKED, lateness="1 second")


def test_configure_says_in_a_line_what_it_sets(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    hf.configure(session)  # as many cores as the session runs tasks at a time
    settings = "windows in RocksDB, checkpoints of what changed, Arrow batches of 64 MiB"
    assert f"handfast: 2 cores: 2 shuffle partitions, {settings}\n" == capsys.readouterr().out
    assert ("2", "2") == tuple(
        session.conf.get(f"spark.{name}") for name in ("handfast.cores", "sql.shuffle.partitions")
    )
    hf.configure(session, cores=3)
    more = "more cores than the 2 tasks that Spark runs at a time: some wait for others in every batch"
    assert f"handfast: 3 cores: 3 shuffle partitions, {settings}; {more}\n" == capsys.readouterr().out
    hf.configure(session, cores=1, quiet=True)
    assert ("1", "") == (session.conf.get("spark.handfast.cores"), capsys.readouterr().out)
    with pytest.raises(hf.SpecError, match="positive number, not 0"):
        hf.configure(session, cores=0)


def test_a_missing_lateness_is_named_with_its_stream(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    frames = spark_source.streams(session, WORKLOAD, rows=100)
    with pytest.raises(hf.SpecError, match=r"Stream 'r' is unbounded and needs a lateness.*lateness='30 seconds'"):
        hf.join(frames, **ASKED)


def test_an_input_with_a_watermark_of_its_own_is_refused(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    frames = spark_source.streams(session, WORKLOAD, rows=100)
    frames["s"] = frames["s"].withWatermark("ts", "10 seconds")
    with pytest.raises(hf.SpecError, match=r"'s' carries withWatermark\('ts', …\).*lateness=\{'s': '10000 ms', …\}"):
        hf.join(frames, **ASKED, lateness="1 second")


def test_batch_and_streaming_do_not_mix(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    live, still = spark_source.streams(session, WORKLOAD, rows=100), spark_source.tables(session, WORKLOAD, rows=100)
    with pytest.raises(hf.SpecError, match=r"'r' is a streaming DataFrame and 's' a batch one"):
        hf.join({"r": live["r"], "s": still["s"]}, **ASKED, lateness="1 second")


def test_spark_and_tables_do_not_mix(session: SparkSession) -> None:
    frames = spark_source.tables(session, WORKLOAD, rows=100)
    with pytest.raises(hf.SpecError, match=r"spark\.createDataFrame\(s\)"):
        hf.join({"r": frames["r"], "s": WORKLOAD.table("s", 0, 10)}, **ASKED)


def test_an_unknown_column_is_an_error_before_anything_starts(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    frames = spark_source.streams(session, WORKLOAD, rows=100)
    with pytest.raises(hf.SpecError, match="Stream 's' has no column 'aa'; did you mean 'a'"):
        hf.join(frames, on="r.x = s.aa", window="1 s", time="ts", lateness="1 second")


def test_a_column_as_predicate_and_a_column_twice_are_our_errors(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    frames = spark_source.tables(session, WORKLOAD, rows=10)
    with pytest.raises(hf.SpecError, match=r"on must be SQL text over stream\.column .*, not Column<"):
        hf.join(frames, **{**ASKED, "on": frames["r"]["x"] == frames["s"]["a"]})
    twice = frames["r"].select("*", frames["r"]["x"])
    with pytest.raises(hf.SpecError, match="Column 'x' stands twice in one stream; rename one of the two"):
        hf.join({"r": twice, "s": frames["s"]}, **ASKED)


def test_local_options_are_for_local_tables(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    with pytest.raises(hf.SpecError, match="LocalOptions are for tables in this process"):
        hf.join(spark_source.tables(session, WORKLOAD, rows=10), **ASKED, options=hf.LocalOptions(cores=2))


def test_explain_names_the_engine_and_the_routing(session: SparkSession) -> None:
    hf.configure(session, cores=4)
    text = hf.explain(spark_source.streams(session, WORKLOAD, rows=10), **ASKED, lateness="1 second")
    assert "join of r and s on Spark, streaming" in text
    assert "range, with copies at the borders, over 4 cores" in text
    assert "s.ts − r.ts in (−5 s, +5 s)" in text


def test_the_result_is_the_same_whatever_the_zone_of_the_session(session: SparkSession) -> None:
    hf.configure(session, cores=2)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    frames = spark_source.tables(session, WORKLOAD, rows=300)
    expected = hf.join({name: WORKLOAD.table(name, 0, 300) for name in "rs"}, **ASKED)
    found = hf.join(frames, **ASKED).toArrow()
    order = [("r_id", "ascending"), ("s_id", "ascending")]
    assert expected.num_rows > 0
    assert expected.sort_by(order).select(["r_id", "s_id", "match_time"]) == found.sort_by(order).select(
        ["r_id", "s_id", "match_time"]
    ).cast(pa.schema([("r_id", pa.int64()), ("s_id", pa.int64()), ("match_time", pa.timestamp("us", "UTC"))]))
