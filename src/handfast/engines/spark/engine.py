"""The join on Spark: pack rows into blocks, run a JoinCore per key, unpack the matches."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from handfast.core.planner import make_plan
from handfast.core.recipe import recipe
from handfast.engines.spark.arrivals import NOW
from handfast.engines.spark.bounded import run_core
from handfast.engines.spark.columns import arrow_schema, numbered, result_schema, schema_of
from handfast.engines.spark.metrics import metrics, observed
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.output import MATCHES, OUTPUT, unpack
from handfast.engines.spark.pack import PACKED, Pack
from handfast.engines.spark.sequence import SequenceProcessor, sequence_bounded
from handfast.engines.spark.session import configure, configured_cores
from handfast.engines.spark.write import Joined, joined, write
from handfast.errors import SpecError
from handfast.flow.order import RANK
from handfast.plan import Plan
from handfast.spec.join import ARRIVAL, JoinSpec
from handfast.spec.python_predicate import PythonPredicate

__all__ = ["configure", "join", "metrics", "name", "plan", "write"]

_WATERMARK = "spark.watermarkDelayMs"


def join(frames: dict[str, Any], spec: JoinSpec) -> Any:
    """The matches as a DataFrame: a streaming one for streaming inputs."""
    laid_out = plan(frames, spec)
    bound = laid_out.join
    schema = result_schema(bound, frames)
    packed = reduce(
        lambda a, b: a.union(b),
        (numbered(frames[n]).mapInArrow(Pack(laid_out, stream), PACKED) for stream, n in enumerate(spec.names)),
    )
    streaming = _is_streaming(frames)
    if streaming and any(stream.idle_timeout is not None for stream in spec.streams):
        # Spark writes a batch's time down before it runs it: a batch that runs again has the same
        packed = packed.withColumn(NOW, F.unix_micros(F.current_timestamp()))
    if bound.stamped:
        packed = _sequenced(packed, laid_out, streaming=streaming)
    if streaming:
        output = packed.groupBy("core").transformWithStateInPandas(
            JoinProcessor(laid_out), outputStructType=OUTPUT, outputMode="Append", timeMode="None"
        )
        output = observed(output, laid_out.digest)
        matches = output.where(F.col("kind") == MATCHES).mapInArrow(unpack, schema)
        joined[matches] = Joined(output, schema, {n: frames[n].schema for n in spec.names})
        return matches
    in_order = spec.in_order
    ranked = StructType([*schema.fields, StructField(RANK, LongType())]) if in_order else schema
    # a number of its own keeps Spark from putting several cores into one task
    rows = packed.repartition(laid_out.cores, "core").groupBy("core").applyInArrow(run_core(laid_out), ranked)
    return rows.orderBy(f"`{RANK}`").drop(RANK) if in_order else rows


def _sequenced(packed: Any, laid_out: Plan, *, streaming: bool) -> Any:
    """The packed blocks, every tuple stamped with its place in the order of all: one task sees them all."""
    if streaming:
        return packed.groupBy("core").transformWithStateInPandas(
            SequenceProcessor(laid_out), outputStructType=PACKED, outputMode="Append", timeMode="None"
        )
    return packed.groupBy("core").applyInArrow(sequence_bounded(laid_out), PACKED)


def plan(frames: dict[str, Any], spec: JoinSpec) -> Plan:
    """How the join is laid out on this session, or an error that says what it needs first."""
    streaming = _is_streaming(frames)
    cores = configured_cores(frames[spec.names[0]].sparkSession)
    if streaming:
        _check_streaming(frames, spec)
    else:
        spec.check_bounded()
    bound = spec.bind({name: schema_of(frames[name]) for name in spec.names})
    laid_out = make_plan(bound, cores, [arrow_schema(frames[name], name) for name in spec.names])
    if any(isinstance(part, PythonPredicate) for part in spec.conditions):
        recipe(laid_out)  # what Numba does not take should be said here, not by a task
    return laid_out


def name(frames: dict[str, Any]) -> str:
    """What `explain` calls this engine."""
    return "Spark, streaming" if _is_streaming(frames) else "Spark, batch"


def _is_streaming(frames: dict[str, Any]) -> bool:
    streaming = {name: frame.isStreaming for name, frame in frames.items()}
    if len(set(streaming.values())) > 1:
        live = next(n for n, is_live in streaming.items() if is_live)
        still = next(n for n, is_live in streaming.items() if not is_live)
        raise SpecError(
            f"Stream {live!r} is a streaming DataFrame and {still!r} a batch one; a join needs them of one kind: "
            f"read {still!r} with spark.readStream, or join it with {live!r} by Spark's own DataFrame.join"
        )
    return all(streaming.values())


def _check_streaming(frames: dict[str, Any], spec: JoinSpec) -> None:
    for stream in spec.streams:
        for field in frames[stream.name].schema.fields:
            if _WATERMARK in (field.metadata or {}):
                millis = field.metadata[_WATERMARK]
                raise SpecError(
                    f"Stream {stream.name!r} carries withWatermark({field.name!r}, …), which handfast replaces; "
                    f"take it off and write hf.join(…, lateness={{{stream.name!r}: '{millis} ms', …}})"
                )
        if stream.lateness is None and spec.order != ARRIVAL:
            raise SpecError(
                f"Stream {stream.name!r} is unbounded and needs a lateness: how far a row may lag behind the newest; "
                "write hf.join(…, lateness='30 seconds')"
            )
