"""One streaming query that writes matches and refused rows, each to a place of its own: every row once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from os.path import abspath, normpath
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from handfast.engines.spark import places as owned
from handfast.engines.spark.columns import names_alike
from handfast.engines.spark.output import MATCHES, is_of, kinds_in, unpack
from handfast.engines.spark.places import BATCH
from handfast.engines.spark.rows import LATE, REJECTED
from handfast.engines.spark.text import has_files
from handfast.errors import SpecError

Place = str | PathLike[str] | Callable[[DataFrame, int], None]
Places = Place | Mapping[str, Place]


@dataclass(frozen=True)
class OperatorOutput:
    """All that a streaming join gives: the output rows, and the columns of its matches and of its streams."""

    output: DataFrame
    schema: StructType
    streams: dict[str, StructType]


outputs: WeakKeyDictionary[DataFrame, OperatorOutput] = WeakKeyDictionary()  # by the matches that `join` has returned


def write(
    matches: DataFrame,
    *,
    to: Place,
    late_rows: Places | None,
    rejected_rows: Places | None,
    checkpoint: str | PathLike[str],
    trigger: str | Mapping[str, Any] | None,
    name: str | None,
) -> StreamingQuery:
    """Start the query."""
    source = outputs.get(matches) if isinstance(matches, DataFrame) else None
    if source is None:
        raise SpecError(_not_ours(matches))
    targets = [_Target("to", MATCHES, None, source.schema, _checked(to, "to"))]
    for kind, what, places in ((LATE, "late_rows", late_rows), (REJECTED, "rejected_rows", rejected_rows)):
        if places is not None:
            targets += [
                _Target(f"{what} of {stream!r}", kind, position, source.streams[stream], place)
                for position, (stream, place) in enumerate(_by_stream(places, list(source.streams), what).items())
            ]
    home = _checked_path(checkpoint, "checkpoint")
    folders = {target.place: f"hf.write: {target.what}" for target in targets if isinstance(target.place, str)}
    _check_apart([(t.what, t.place) for t in targets if isinstance(t.place, str)], home)
    spark = matches.sparkSession
    case_sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    for target in targets:
        target.check_columns(case_sensitive=case_sensitive)
    writer = source.output.writeStream.foreachBatch(_Write(tuple(targets))).option("checkpointLocation", home)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        if not isinstance(trigger, str | Mapping):
            raise SpecError(f"trigger must be like '10 seconds' or {{'availableNow': True}}, not {trigger!r}")
        writer = writer.trigger(**({"processingTime": trigger} if isinstance(trigger, str) else dict(trigger)))
    owned.check(spark, home, folders, alone=True)
    owned.mark(spark, home, folders)
    if owned.has_run(spark, home):
        for target in targets:
            if isinstance(target.place, str) and not has_files(spark, target.place):
                target.begin(spark.createDataFrame([], target.schema))  # a place that was not there before
    return writer.start()


@dataclass(frozen=True)
class _Target:
    """The matches, or one stream's rows of one kind, and the place that they go to."""

    what: str
    kind: str
    stream: int | None
    schema: StructType
    place: str | Callable[[DataFrame, int], None]

    def check_columns(self, *, case_sensitive: bool) -> None:
        """Refuse columns that files cannot have: two that are one to Spark, or one that is the batch's number."""
        if not isinstance(self.place, str):
            return
        alike = names_alike(self.schema.names) if not case_sensitive else None
        if alike is not None:
            raise SpecError(
                f"{self.what} has the columns {alike[0]!r} and {alike[1]!r}, and Spark writes no files whose columns "
                "differ in nothing but their case; rename one of the two, or set spark.sql.caseSensitive to true"
            )
        clash = next((name for name in self.schema.names if name.lower() == BATCH), None)
        if clash is not None:
            raise SpecError(
                f"{self.what} has a column {clash!r}, which in the folder is the number of the batch; rename it"
            )

    def begin(self, rows: DataFrame) -> None:
        """Write a file without rows, so that the folder has columns and can be read."""
        rows.write.mode("overwrite").parquet(f"{self.place}/{BATCH}=0")

    def put(self, output: DataFrame, number: int, *, empty: bool) -> None:
        """Write the rows of a batch; a batch that runs again replaces what it wrote before."""
        rows = output.where(is_of(self.kind, self.stream)).mapInArrow(unpack, self.schema)
        if not isinstance(self.place, str):
            if not empty:
                self.place(rows, number)
        elif not empty:
            # dynamic: the batch's folder is written elsewhere, and put in its place by one rename
            numbered = rows.withColumn(BATCH, F.lit(number)).write.mode("overwrite").partitionBy(BATCH)
            numbered.option("partitionOverwriteMode", "dynamic").parquet(self.place)
        elif number == 0:
            self.begin(rows)


@dataclass(frozen=True)
class _Write:
    """What is done with every batch of the operator's output."""

    targets: tuple[_Target, ...]

    def __call__(self, output: DataFrame, number: int) -> None:
        output.persist()  # the operator runs once, however many places there are
        try:
            there = kinds_in(output)
            for target in self.targets:
                target.put(output, number, empty=(target.kind, target.stream) not in there)
        finally:
            output.unpersist()


def _by_stream(places: Places, streams: list[str], what: str) -> dict[str, str | Callable[[DataFrame, int], None]]:
    """The place of every stream's rows."""
    if isinstance(places, Mapping):
        if set(places) != set(streams):
            raise SpecError(
                f"{what} has places for {', '.join(map(str, places))}, but the streams are {', '.join(streams)}"
            )
        return {stream: _checked(places[stream], what) for stream in streams}
    if not isinstance(places, str | PathLike):
        raise SpecError(
            f"{what} must be a path, under which every stream gets a folder, or a place for each: "
            f"{what}={{{', '.join(f'{stream!r}: …' for stream in streams)}}}"
        )
    return {stream: f"{fspath(places).rstrip('/')}/{stream}" for stream in streams}


def _checked_path(path: Any, what: str) -> str:
    if not isinstance(path, str | PathLike) or not fspath(path).strip("/"):
        raise SpecError(f"{what} must be the path of a folder, not {path!r}")
    return fspath(path).rstrip("/")


def _check_apart(places: list[tuple[str, str]], checkpoint: str) -> None:
    """Refuse folders of which one is, or lies in, another: their rows would be mixed or could not be read."""
    known: list[tuple[str, str, str]] = []
    for what, path in [("checkpoint", checkpoint), *places]:
        own = _plain(path)
        for other, other_path, other_own in known:
            if own == other_own and "checkpoint" not in (what, other):
                raise SpecError(f"Two kinds of rows would be written to {path!r}; give each a place of its own")
            if f"{own}/".startswith(f"{other_own}/") or f"{other_own}/".startswith(f"{own}/"):
                raise SpecError(
                    f"{what} at {path} and {other} at {other_path} lie one inside the other; "
                    "give each a folder of its own, side by side"
                )
        known.append((what, path, own))


def _plain(path: str) -> str:
    """A path in the one spelling that folders are compared in."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", abspath(path)
    return f"{scheme.lower()}:/{normpath(rest).lstrip('/')}"


def _checked(place: Place, what: str) -> str | Callable[[DataFrame, int], None]:
    if isinstance(place, str | PathLike):
        return _checked_path(place, what)
    if not callable(place):
        raise SpecError(f"{what} must be a path or a function of a DataFrame and the batch's number, not {place!r}")
    return place


def _not_ours(matches: Any) -> str:
    if not isinstance(matches, DataFrame):
        return f"hf.write takes the streaming DataFrame that hf.join returned, not a {type(matches).__name__}"
    if not matches.isStreaming:
        return "hf.write is for streaming DataFrames; the matches of batch inputs go out by matches.write"
    return (
        "hf.write takes the DataFrame just as hf.join returned it: one made from it has lost the late rows; filter and "
        "select where the rows are written: hf.write(matches, to=lambda rows, batch: rows.where(…).write…, …)"
    )
