"""Sources and sinks of a pipeline on Spark: any format it knows, counted on the way; errors that name the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from handfast.connectors import spark_source
from handfast.connectors.feed import FORMAT, Feed
from handfast.connectors.pipeline import FILES, LINES, Pipeline, Sink, Source, check_there, local_path
from handfast.errors import EngineError, SpecError
from handfast.spec.join import JoinSpec

MATCHES = "handfast_matches"  # what the counter of a batch's matches is called
_CORRUPT = "__handfast_corrupt"
_BATCH = "handfast_batch"  # the column, and the folders, that hold a batch's number: as `hf.write` has them
_MAVEN = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}",
    "avro": f"org.apache.spark:spark-avro_2.13:{spark_version}",
    "delta": "io.delta:delta-spark_2.13:…",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-…",
    "hudi": "org.apache.hudi:hudi-spark-bundle_2.13:…",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13:…",
    "kinesis": "com.amazonaws:spark-streaming-sql-kinesis-connector_2.13:…",
    "pubsublite": "com.google.cloud:pubsublite-spark-sql-streaming:…",
}
_PYPI = {"delta": "delta-spark", "huggingface": "pyspark-huggingface"}


def open_sources(spark: SparkSession, pipeline: Pipeline) -> dict[str, DataFrame]:
    """Every stream as a DataFrame, corrupt rows still in it where they are to be dropped."""
    return {name: _open(spark, source, pipeline.mode == "stream") for name, source in pipeline.sources.items()}


def without_corrupt(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The streams' rows that fit their schemas."""
    return {name: _fitting(frame) for name, frame in frames.items()}


def watched(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The streams' rows that fit, and a counter of those that don't in the query's progress; see `corrupt_rows`."""
    return {
        name: _fitting(frame.observe(f"{_CORRUPT}_{name}", F.count(_CORRUPT).alias("rows")))
        if _CORRUPT in frame.columns
        else frame
        for name, frame in frames.items()
    }


def corrupt_rows(observed: Mapping[str, Any]) -> int:
    """How many rows of a step were corrupt, by what its progress has observed."""
    return sum(row["rows"] for name, row in observed.items() if name.startswith(_CORRUPT))


def observations(spec: JoinSpec) -> dict[str, Observation]:
    """Where a batch counts: its streams, and its matches."""
    return {name: Observation(name) for name in (*spec.names, MATCHES)}


def counted(frames: Mapping[str, DataFrame], spec: JoinSpec, into: Mapping[str, Observation]) -> dict[str, DataFrame]:
    """The streams' rows that fit; how many there are, and are corrupt, and are rejected, goes `into` observations."""
    found = {}
    for stream in spec.streams:
        frame = frames[stream.name]
        fits = F.col(_CORRUPT).isNull() if _CORRUPT in frame.columns else F.lit(True)
        micros = F.unix_micros(F.col(f"`{stream.time}`").cast("timestamp"))
        usable = F.coalesce(micros.between(stream.valid_from, stream.valid_to), F.lit(False))
        counts = {"rows": fits, "corrupt": ~fits, "rejected": fits & ~usable}
        observed = frame.observe(into[stream.name], *(F.count_if(which).alias(name) for name, which in counts.items()))
        found[stream.name] = _fitting(observed)
    return found


def counted_matches(matches: DataFrame, into: Mapping[str, Observation]) -> DataFrame:
    """The matches, and a counter of them."""
    return matches.observe(into[MATCHES], F.count(F.lit(1)).alias("rows"))


def _fitting(frame: DataFrame) -> DataFrame:
    return frame.where(F.col(_CORRUPT).isNull()).drop(_CORRUPT) if _CORRUPT in frame.columns else frame


# --- sources --------------------------------------------------------------------------------------------------------


def _open(spark: SparkSession, source: Source, streaming: bool) -> DataFrame:
    where = f"[sources.{source.name}]"
    check_there(source)
    reader = (spark.readStream if streaming else spark.read).format(source.format).options(**source.options)
    if source.format == FORMAT:
        feed = Feed.read(source.options)
        if not streaming and feed.rows is None:
            raise SpecError(f"{where}: a batch read of an endless workload needs an end: options = {{ rows = … }}")
        spark_source.register(spark)
    if source.format in FILES and streaming and source.files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.files_per_trigger)
    with _explained(source.format, where):
        schema = _schema(spark, source, streaming)
        if schema is not None and source.format != "socket":
            reader = reader.schema(schema)
        if source.format in LINES:
            reader = reader.options(**_text_options(source))
        if source.format == "socket":
            frame = _lines(reader, source, streaming)
        else:
            frame = reader.load(source.path) if source.path is not None else reader.load()
        return frame.selectExpr(*source.select) if source.select else frame


def _schema(spark: SparkSession, source: Source, streaming: bool) -> Any:
    drops = f", {_CORRUPT} string" if source.is_text and source.on_corrupt == "drop" else ""
    if source.schema is not None:
        return source.schema + drops
    if source.format == "parquet" and streaming:  # a stream of files must know its columns beforehand
        try:
            return spark.read.parquet(source.path or "").schema
        except AnalysisException as error:
            if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
                raise
            raise SpecError(
                f"[sources.{source.name}] reads {source.path}, which has no files yet to take the columns from; "
                'say schema = "ts timestamp, …"'
            ) from None
    return None


def _text_options(source: Source) -> dict[str, str]:
    drops = source.on_corrupt == "drop"
    options = {"mode": "PERMISSIVE" if drops else "FAILFAST", "columnNameOfCorruptRecord": _CORRUPT}
    if "csv" in (source.format, source.lines if source.format == "socket" else ""):
        options |= {"sep": source.separator, "escape": '"'}
    if source.format == "csv":
        options |= {"header": str(source.header).lower(), "enforceSchema": "false"}
    return options


def _lines(reader: Any, source: Source, streaming: bool) -> DataFrame:
    """The lines of a socket, read as the schema says; without a schema as Spark gives them."""
    address = re.fullmatch(r"tcp://([^:/]+):(\d+)", source.path or "")
    if not address:
        raise SpecError(f'[sources.{source.name}] needs the address of its socket: path = "tcp://localhost:9999"')
    if not streaming:
        raise SpecError('A socket has no end, and a batch needs one; say mode = "stream"')
    lines: DataFrame = reader.options(host=address[1], port=address[2]).load()
    if source.schema is None:
        return lines
    read = F.from_json if source.lines == "json" else F.from_csv
    drops = f", {_CORRUPT} string" if source.on_corrupt == "drop" else ""
    rows = read(F.col("value"), source.schema + drops, _text_options(source))
    return lines.select(rows.alias("row")).select("row.*")


# --- sinks ----------------------------------------------------------------------------------------------------------


def start(matches: DataFrame, pipeline: Pipeline, checkpoint: str) -> Any:
    """Start the query that writes matches as they come."""
    sink = pipeline.sink
    writer = matches.writeStream.format({"none": "noop"}.get(sink.format, sink.format))
    writer = writer.outputMode("append").options(**_sink_options(sink)).option("checkpointLocation", checkpoint)
    writer = writer.trigger(**trigger(pipeline))
    with _explained(sink.format, sink.where):
        return writer.start(sink.path) if sink.path is not None else writer.start()


def trigger(pipeline: Pipeline) -> dict[str, Any]:
    """When a step starts, as Spark takes it."""
    interval = pipeline.interval
    return {"availableNow": True} if interval is None else {"processingTime": f"{interval // 1_000} milliseconds"}


def place(sink: Sink, show: Callable[[pa.Table], None]) -> str | Callable[[DataFrame, int], None]:
    """A sink as `hf.write` takes it: a path for Parquet, for the rest a function with the same layout."""
    if sink.format == "parquet" and not sink.options and sink.path is not None:
        return sink.path

    def put(rows: DataFrame, number: int) -> None:
        if sink.format == "console":
            show(rows.toArrow())
        elif sink.keeps:
            numbered = rows.withColumn(_BATCH, F.lit(number)).write.mode("overwrite").partitionBy(_BATCH)
            numbered = numbered.option("partitionOverwriteMode", "dynamic").options(**_sink_options(sink))
            numbered.format(sink.format).save(sink.path)

    return put


def write(matches: DataFrame, pipeline: Pipeline, show: Callable[[pa.Table], None]) -> None:
    """Write all matches of bounded inputs; `show` takes those that are for the terminal."""
    sink = pipeline.sink
    if sink.format == "console":
        show(matches.toArrow())  # all of them: what is left out would not be counted either
        return
    modes = {"fail": "error", "append": "append", "overwrite": "overwrite"}
    format_ = {"none": "noop"}.get(sink.format, sink.format)
    mode = "append" if format_ == "noop" else modes[sink.if_exists]
    writer = matches.write.format(format_).mode(mode).options(**_sink_options(sink))
    with _explained(sink.format, "[sink]"):
        writer.save(sink.path) if sink.path is not None else writer.save()


def _sink_options(sink: Sink) -> dict[str, str]:
    named = {"header": "true", "escape": '"'} if sink.format == "csv" else {}
    return named | dict(sink.options)


def check_sinks(pipeline: Pipeline, *, goes_on: bool) -> None:
    """Refuse to write among rows of another run."""
    for sink in pipeline.folders:
        folder = local_path(sink.path) if sink.path is not None and sink.format in FILES else None
        if folder is not None and not goes_on and folder.exists():
            _check_folder(sink, folder, streams=pipeline.mode == "stream")


def _check_folder(sink: Sink, folder: Path, *, streams: bool) -> None:
    found = [path.name for path in folder.iterdir() if not path.name.startswith("_handfast")]  # a mark is no row
    if found and sink.if_exists == "fail":
        ways = '"append"' if streams else '"overwrite" or "append"'
        raise SpecError(
            f"{sink.where} writes to {folder}, and something is there already; take another path, or say "
            f"if_exists = {ways}"
        )
    if found and streams and sink.if_exists == "overwrite":
        raise SpecError(f'{sink.where} if_exists = "overwrite" is for mode = "batch"; a stream only appends')


# --- errors ---------------------------------------------------------------------------------------------------------


@contextmanager
def explained() -> Iterator[None]:
    """Say in our words what the errors of a run mean, where we know."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        meant = _meaning(str(error))
        if meant is None:
            raise
        raise EngineError(meant) from None


def _meaning(said: str) -> str | None:
    file = re.search(r"FAILED_READ_FILE[^\n]*?reading file (\S+?)\.?\s", said)
    if file:
        return (
            f"{file[1]} has a row, or a header, that does not fit the schema of its stream; mend it, or say "
            'on_corrupt = "drop" for its source to leave such rows out and count them'
        )
    if "MALFORMED_RECORD_IN_PARSING" in said:
        return (
            'A line does not fit the schema of its stream; mend it, or say on_corrupt = "drop" for its source to leave '
            "such lines out and count them"
        )
    ours = re.search(r"handfast\.errors\.\w+: ([^\n]+)", said)
    return ours[1] if ours else None


@contextmanager
def _explained(format_: str, where: str) -> Iterator[None]:
    """Name the package of a format that is not there, and say what else Spark refuses in one line."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = str(error)
        if "DATA_SOURCE_NOT_FOUND" in said or "_DATA_SOURCE_NOT_ENABLED" in said:
            raise SpecError(_not_there(format_, where)) from None
        if isinstance(error, AnalysisException):
            line = said.strip().partition("\n")[0]
            raise SpecError(f"{where}: Spark refuses it: {line}") from None
        raise


def _not_there(format_: str, where: str) -> str:
    package = _MAVEN.get(format_)
    way_out = (
        f'say packages = ["{package}"] in [spark], which Spark loads from Maven'
        if package
        else 'if it is in a package on Maven, say packages = ["group:name:version"] in [spark]'
    )
    if format_ in _PYPI:
        way_out += f", and pip install {_PYPI[format_]}"
    return f"{where} has the format {format_!r}, which this Spark does not have; {way_out}"
