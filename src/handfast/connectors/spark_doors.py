"""Sources and sinks of a pipeline on Spark: any format it knows, counted on the way; errors that name the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from handfast.connectors import spark_source
from handfast.connectors.feed import FORMAT, Feed
from handfast.connectors.pipeline import FILES, LINES, Pipeline, Source, check_there, local_path
from handfast.errors import EngineError, SpecError
from handfast.spec.join import JoinSpec, Stream

MATCHES = "handfast_matches"  # what the counters of the result are called in Spark's progress
_CORRUPT = "__handfast_corrupt"
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


@dataclass(frozen=True, slots=True)
class Counts:
    """What came through one source: rows that fit, rows that were corrupt, rows without a usable time."""

    rows: int = 0
    corrupt: int = 0
    rejected: int = 0
    oldest: int | None = None  # the lowest time, in microseconds
    newest: int | None = None  # the highest

    def __add__(self, other: Counts) -> Counts:
        low = [time for time in (self.oldest, other.oldest) if time is not None]
        high = [time for time in (self.newest, other.newest) if time is not None]
        return Counts(
            self.rows + other.rows,
            self.corrupt + other.corrupt,
            self.rejected + other.rejected,
            min(low, default=None),
            max(high, default=None),
        )

    @staticmethod
    def read(observed: Mapping[str, Any]) -> Counts:
        """From what Spark has observed."""
        return Counts(**{name: observed[name] for name in ("rows", "corrupt", "rejected", "oldest", "newest")})


def counts_name(stream: str) -> str:
    """What the counters of a stream are called in Spark's progress."""
    return f"handfast_{stream}"


def open_sources(spark: SparkSession, pipeline: Pipeline) -> dict[str, DataFrame]:
    """Every stream as a DataFrame, corrupt rows still in it where they are to be dropped; see `counted`."""
    return {name: _open(spark, source, pipeline.mode == "stream") for name, source in pipeline.sources.items()}


def without_corrupt(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The streams' rows that fit their schemas."""
    return {name: _fitting(frame) for name, frame in frames.items()}


def counted(
    frames: Mapping[str, DataFrame], spec: JoinSpec, *, into: Mapping[str, Observation] | None = None
) -> dict[str, DataFrame]:
    """The streams' rows that fit, and counters of them in the query's progress, or `into` observations of a batch."""
    return {stream.name: _fitting(_observed(frames[stream.name], stream, into)) for stream in spec.streams}


def observations(spec: JoinSpec) -> dict[str, Observation]:
    """Where a batch counts: its streams, and its matches."""
    return {name: Observation(name) for name in (*map(counts_name, spec.names), MATCHES)}


def counted_matches(matches: DataFrame, *, into: Mapping[str, Observation] | None = None) -> DataFrame:
    """The matches, and a counter of them."""
    return matches.observe(MATCHES if into is None else into[MATCHES], F.count(F.lit(1)).alias("rows"))


def _observed(frame: DataFrame, stream: Stream, into: Mapping[str, Observation] | None) -> DataFrame:
    fits = F.col(_CORRUPT).isNull() if _CORRUPT in frame.columns else F.lit(True)
    micros = F.unix_micros(F.col(f"`{stream.time}`").cast("timestamp"))
    usable = F.coalesce(micros.between(stream.valid_from, stream.valid_to), F.lit(False))
    return frame.observe(
        counts_name(stream.name) if into is None else into[counts_name(stream.name)],
        F.count_if(fits).alias("rows"),
        F.count_if(~fits).alias("corrupt"),
        F.count_if(fits & ~usable).alias("rejected"),
        F.min(F.when(fits & usable, micros)).alias("oldest"),
        F.max(F.when(fits & usable, micros)).alias("newest"),
    )


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
    writer = writer.outputMode("append").options(**_sink_options(pipeline)).option("checkpointLocation", checkpoint)
    interval = pipeline.interval
    if interval is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{interval // 1_000} milliseconds")
    with _explained(sink.format, "[sink]"):
        return writer.start(sink.path) if sink.path is not None else writer.start()


def write(matches: DataFrame, pipeline: Pipeline, show: Callable[[pa.Table], None]) -> None:
    """Write all matches of bounded inputs; `show` takes those that are for the terminal."""
    sink = pipeline.sink
    if sink.format == "console":
        show(matches.toArrow())  # all of them: what is left out would not be counted either
        return
    modes = {"fail": "error", "append": "append", "overwrite": "overwrite"}
    format_ = {"none": "noop"}.get(sink.format, sink.format)
    mode = "append" if format_ == "noop" else modes[sink.if_exists]
    writer = matches.write.format(format_).mode(mode).options(**_sink_options(pipeline))
    with _explained(sink.format, "[sink]"):
        writer.save(sink.path) if sink.path is not None else writer.save()


def _sink_options(pipeline: Pipeline) -> dict[str, str]:
    named = {"header": "true", "escape": '"'} if pipeline.sink.format == "csv" else {}
    return named | dict(pipeline.sink.options)


def check_sink(pipeline: Pipeline, *, goes_on: bool) -> None:
    """Refuse to write among rows of another run."""
    sink = pipeline.sink
    folder = local_path(sink.path) if sink.path is not None and sink.format in FILES else None
    if folder is None or goes_on or not folder.exists():
        return
    if pipeline.mode == "stream" and (folder / "_spark_metadata").exists():
        # Spark numbers batches anew with a new checkpoint, and would take them for written already
        raise SpecError(
            f"[sink] writes to {folder}, which belongs to a stream with another checkpoint; take another path, or go "
            "on with that checkpoint"
        )
    if any(folder.iterdir()) and sink.if_exists == "fail":
        raise SpecError(
            f"[sink] writes to {folder}, and something is there already; take another path, or say "
            'if_exists = "overwrite" or "append"'
        )
    if pipeline.mode == "stream" and sink.if_exists == "overwrite" and any(folder.iterdir()):
        raise SpecError('[sink] if_exists = "overwrite" is for mode = "batch"; a stream only appends')


# --- text on any file system ----------------------------------------------------------------------------------------


def read_text(spark: SparkSession, path: str) -> str | None:
    """What `write_text` has written, or None if there is nothing."""
    try:
        parts = spark.read.text(path, wholetext=True).collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return "".join(part.value for part in parts)


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a text wherever Spark can write."""
    spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(path)


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
