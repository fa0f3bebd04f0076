"""pipeline.toml: what it says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import handfast as hf
from handfast.connectors.pipeline import Pipeline, check_there, local_path
from handfast.spec.moment import EARLIEST

BASE = """
mode = "batch"
cores = 3

[sources.trade]
format = "csv"
path = "trades"
schema = "ts timestamp, k int"

[sources.quote]
format = "kafka"
select = ["CAST(value AS STRING) AS k"]
options = { subscribe = "quotes", kafka.bootstrap.servers = "a:1", failOnDataLoss = false }

[join]
on = "trade.k = quote.k"
window = { trade = "5 seconds", quote = "500 rows" }
time = "ts"
lateness = "1 second"

[sink]
format = "parquet"
path = "out"
"""


def read(folder: Path, text: str = BASE, **how: Any) -> Pipeline:
    path = folder / "pipeline.toml"
    path.write_text(text)
    return Pipeline.read(path, **how)


def test_a_pipeline_is_what_the_file_says(tmp_path: Path) -> None:
    pipeline = read(tmp_path)
    assert ("spark", "batch", 3) == (pipeline.engine, pipeline.mode, pipeline.cores)
    trade, quote = pipeline.sources.values()
    assert (str(tmp_path / "trades"), "fail", True) == (trade.path, trade.on_corrupt, trade.header)
    assert {"subscribe": "quotes", "kafka.bootstrap.servers": "a:1", "failOnDataLoss": "false"} == quote.options
    assert ("CAST(value AS STRING) AS k",) == quote.select
    asked = {"window": {"trade": "5 seconds", "quote": "500 rows"}, "time": "ts", "lateness": "1 second"}
    assert hf.JoinSpec(("trade", "quote"), "trade.k = quote.k", **asked) == pipeline.spec
    assert str(tmp_path / "out") == pipeline.sink.path


def test_the_engine_of_the_command_outweighs_that_of_the_file(tmp_path: Path) -> None:
    assert "local" == read(tmp_path, engine="local").engine


def test_the_trigger_is_a_duration_or_all_there_is(tmp_path: Path) -> None:
    assert 0 == read(tmp_path).interval
    assert 10_000_000 == read(tmp_path, 'trigger = "10 seconds"\n' + BASE).interval
    assert read(tmp_path, 'trigger = "available now"\n' + BASE).interval is None


def test_settings_of_the_session(tmp_path: Path) -> None:
    spark = '[spark]\nmaster = "yarn"\npackages = ["a:b:1", "c:d:2"]\n[spark.config]\n"spark.x" = 1\nspark.y.z = true\n'
    assert {
        "spark.master": "yarn",
        "spark.jars.packages": "a:b:1,c:d:2",
        "spark.x": "1",
        "spark.y.z": "true",
    } == read(tmp_path, BASE + spark).spark.settings()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mode = "batch"', 'moed = "batch"', "pipeline.toml has no key 'moed'; did you mean 'mode'?"),
        ('mode = "batch"', 'mode = "batsh"', "mode must be one of stream, batch, not 'batsh'; did you mean 'batch'?"),
        ('mode = "batch"', "mode = 1", "mode in pipeline.toml must be text in quotes, not 1"),
        ('mode = "batch"', 'mode = "batch', "is not valid TOML: "),
        ('mode = "batch"', 'engine = "flink"', "engine must be one of spark, local, not 'flink'"),
        ('mode = "batch"', 'trigger = "soon"', "trigger must be a duration like '10 minutes'"),
        ('mode = "batch"', 'trigger = "-1 s"', "trigger cannot be negative: '-1 s'"),
        ("cores = 3", "cores = 0", "cores must be a whole number from 1 to 1024, not 0"),
        ("cores = 3", "cores = true", "cores in pipeline.toml must be a whole number, not True"),
        ("[sources.trade]", "[source.trade]", "pipeline.toml has no key 'source'; did you mean 'sources'?"),
        ("[sources.quote]", "[sources.trade]", "twice (at line 10, column 15); a stream can be named only once"),
        ("[sources.quote]", "[sources.Trade]", "Stream 'trade' is named twice; give every stream a name of its own"),
        ('path = "trades"', 'pfad = "trades"', "[sources.trade] has no key 'pfad'; did you mean 'path'?"),
        ('path = "trades"', "", "[sources.trade] has the format 'csv' and needs a path"),
        ('schema = "ts timestamp, k int"', "", "[sources.trade] has the format 'csv' and needs a schema:"),
        ('path = "trades"', 'path = "t"\non_corrupt = "skip"', "[sources.trade] on_corrupt must be one of fail, drop"),
        ('path = "trades"', 'path = "t"\nseparator = "ab"', "[sources.trade] separator must be one character"),
        (
            'path = "trades"',
            'path = "t"\nfiles_per_trigger = 0',
            "[sources.trade] files_per_trigger must be a positive",
        ),
        (
            'format = "kafka"',
            'on_corrupt = "drop"\nformat = "kafka"',
            "[sources.quote] on_corrupt is for csv, json and",
        ),
        ('format = "kafka"', "", "[sources.quote] has no format; say format ="),
        ('select = ["', 'select = [1, "', "select in [sources.quote] must be text in quotes, not 1"),
        ("[join]", "[jion]", "pipeline.toml has no key 'jion'; did you mean 'join'?"),
        ('lateness = "1 second"', 'latenes = "1 s"', "[join] has no key 'latenes'; did you mean 'lateness'?"),
        ('time = "ts"', "", "[join] has no 'time', and a join needs it"),
        ('"5 seconds"', '"0 seconds"', "The window of stream 'trade' must be longer than nothing, not '0 seconds'"),
        ("quote = ", "quotes = ", "window names a stream 'quotes' that the join does not have; did you mean 'quote'?"),
        (
            'on = "trade.k = quote.k"',
            'on = """\ntrade.k =\n  = quote.k"""',
            "The predicate is not valid SQL at line 2, column 3",
        ),
        ('format = "parquet"', "", "[sink] has no format; say format ="),
        ('path = "out"', "", "[sink] has the format 'parquet' and needs a path"),
        ('path = "out"', 'path = "out"\nif_exists = "x"', "[sink] if_exists must be one of fail, append, overwrite"),
        ('[sink]\nformat = "parquet"\npath = "out"', "sink = 1", "[sink] must be a table, not 1"),
        ('time = "ts"', 'time = "ts"\nin_order = "no"', "in_order in [join] must be true or false, not 'no'"),
        ('time = "ts"', "time = 'ts'\nvalid_from = 2026-01-01", "must be a datetime or whole microseconds since 1970"),
        ("[sink]", "[late_row]\n[sink]", "pipeline.toml has no key 'late_row'; did you mean 'late_rows'?"),
        ("[sink]", "[late_rows]\n[sink]", "[late_rows] has no format; say format ="),
        ("[sink]", "[late_rows]\nformat = 'csv'\n[sink]", "[late_rows] has the format 'csv' and needs a path"),
        (
            "[sink]",
            "[rejected_rows]\nformat = 'console'\n[sink]",
            "[rejected_rows] has the format 'console'; refused rows go to files: parquet, csv, json",
        ),
        (
            "[sink]",
            "[late_rows]\nformat = 'csv'\npath = 'l'\n[sink]",
            '[late_rows] is for mode = "stream"; a batch has',
        ),
        (
            'mode = "batch"\ncores = 3',
            "",
            None,
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str | None) -> None:
    text = BASE.replace(old, new, 1)
    assert text != BASE
    if "sink = 1" in new:
        text = "sink = 1\n" + text.replace("sink = 1", "")
    if message is None:
        assert "stream" == read(tmp_path, text).mode
        return
    with pytest.raises(hf.SpecError) as error:
        read(tmp_path, text)
    assert message in str(error.value)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(hf.SpecError, match=r"pipeline.toml has no \[sources.r\]; a pipeline needs sources, a join and"):
        read(tmp_path, 'engine = "local"')
    with pytest.raises(hf.SpecError, match=r"There is no file .*nowhere\.toml"):
        Pipeline.read(tmp_path / "nowhere.toml")
    with pytest.raises(hf.SpecError, match="cannot be read"):
        Pipeline.read(tmp_path)


def test_a_stream_needs_a_lateness(tmp_path: Path) -> None:
    text = BASE.replace('mode = "batch"', 'mode = "stream"').replace('lateness = "1 second"', "")
    with pytest.raises(hf.SpecError, match="Stream 'trade' is unbounded and needs a lateness"):
        read(tmp_path, text)


def test_a_stream_by_arrival_needs_none(tmp_path: Path) -> None:
    text = BASE.replace('mode = "batch"', "").replace("5 seconds", "5 rows")
    assert "arrival" == read(tmp_path, text.replace('lateness = "1 second"', 'order = "arrival"')).spec.order


def test_every_keyword_of_a_join_is_a_key(tmp_path: Path) -> None:
    more = """
    how = "left"
    sequence = { trade = "k" }
    select = "trade.k"
    idle_timeout = { quote = "1 minute" }
    valid_from = { trade = 1970-01-01T02:00:01+02:00 }
    valid_to = 1970-01-01 00:00:02
    """
    trade, quote = read(tmp_path, BASE.replace('time = "ts"', f'time = "ts"\n{more}')).spec.streams
    assert ("k", None) == (trade.sequence, quote.sequence)
    assert (None, 60_000_000) == (trade.idle_timeout, quote.idle_timeout)
    assert (1_000_000, EARLIEST) == (trade.valid_from, quote.valid_from)
    assert (2_000_000, 2_000_000) == (trade.valid_to, quote.valid_to)


STREAM = BASE.replace('mode = "batch"', 'mode = "stream"')


def test_refused_rows_have_a_folder_for_every_stream(tmp_path: Path) -> None:
    pipeline = read(tmp_path, STREAM + '[late_rows]\nformat = "csv"\npath = "late"\nif_exists = "append"\n')
    assert [tmp_path / "out", tmp_path / "late/trade", tmp_path / "late/quote"] == [
        Path(sink.path or "") for sink in pipeline.folders
    ]
    assert {"late_rows": pipeline.late_rows} == pipeline.refused
    assert {} == pipeline.as_batch().refused


@pytest.mark.parametrize(
    ("sink", "late", "message"),
    [
        ('format = "parquet"\npath = "a"', "a", "[late_rows] writes into the folder of [sink]; give each a folder of"),
        ('format = "parquet"\npath = "a"', "a/late", "[late_rows] writes into the folder of [sink]"),
        ('format = "parquet"\npath = "a/b"', "a", "[sink] writes into the folder of [late_rows]"),
        (
            'format = "kafka"',
            "a",
            "[sink] has the format 'kafka', and [late_rows] goes with parquet, csv, json, console",
        ),
    ],
)
def test_refused_rows_and_matches_are_kept_apart(tmp_path: Path, sink: str, late: str, message: str) -> None:
    text = STREAM.replace('format = "parquet"\npath = "out"', sink)
    with pytest.raises(hf.SpecError) as error:
        read(tmp_path, text + f'[late_rows]\nformat = "json"\npath = "{late}"\n')
    assert message in str(error.value)


def test_where_a_path_leads(tmp_path: Path) -> None:
    assert Path("/a/b") == local_path("/a/b") == local_path("file:/a/b") == local_path("file:///a/b")
    assert local_path("s3a://bucket/b") is None
    source = read(tmp_path).sources["trade"]
    with pytest.raises(hf.SpecError, match=r"\[sources.trade\] reads .*/trades, and there is no such file or folder"):
        check_there(source)
    (tmp_path / "trades").mkdir()
    check_there(source)
    pattern = read(tmp_path, BASE.replace('"trades"', '"trades/*.csv"')).sources["trade"]
    with pytest.raises(hf.SpecError, match="there is no such file or folder"):
        check_there(pattern)
    (tmp_path / "trades" / "1.csv").touch()
    check_there(pattern)
