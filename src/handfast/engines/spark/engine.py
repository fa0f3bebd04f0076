"""The join on Spark: pack rows into blocks, run a JoinCore for each key, unpack the matches."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from handfast.core.describe import describe
from handfast.core.planner import make_plan
from handfast.core.recipe import recipe
from handfast.core.routing.hot import hot_buckets, hot_groups
from handfast.core.routing.split_hash import SplitHashRouting
from handfast.core.routing.split_range import SplitRangeRouting
from handfast.engines.spark.bounded import run_core
from handfast.engines.spark.columns import arrow_schema, needed, numbered, result_schema, schema_of
from handfast.engines.spark.deferred import VALUE_OF_CORE, VALUE_OF_SEQUENCER, Deferred
from handfast.engines.spark.metrics import metrics, observed
from handfast.engines.spark.native import is_native, join_natively, words
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.options import SparkOptions
from handfast.engines.spark.output import MATCHES, OUTPUT, is_of, unpack
from handfast.engines.spark.pack import Pack
from handfast.engines.spark.packed import CORE, NOW, PACKED
from handfast.engines.spark.sequence import SequenceProcessor, sequence_bounded
from handfast.engines.spark.session import configure, configured_cores
from handfast.engines.spark.write import OperatorOutput, outputs, write
from handfast.errors import SpecError
from handfast.flow.order import RANK
from handfast.plan import Plan
from handfast.spec.join import JoinSpec
from handfast.spec.python_predicate import PythonPredicate

__all__ = ["configure", "explain", "join", "metrics", "write"]

_WATERMARK = "spark.watermarkDelayMs"


def join(frames: dict[str, Any], spec: JoinSpec, options: SparkOptions) -> Any:
    """The matches as a DataFrame: a streaming one for streaming inputs."""
    streaming = _is_streaming(frames)
    laid_out, frames = _laid_out(frames, spec, options)
    bound = laid_out.join
    if not streaming and is_native(laid_out, frames, options.batch_join):
        return join_natively(laid_out, frames)
    schema = result_schema(bound, frames)
    packed = reduce(
        lambda a, b: a.union(b),
        (numbered(frames[n]).mapInArrow(Pack(laid_out, stream), PACKED) for stream, n in enumerate(spec.names)),
    )
    if streaming and any(stream.idle_timeout is not None for stream in spec.streams):
        # Spark logs a batch's time before it runs the batch: one that runs again has the same time
        packed = packed.withColumn(NOW, F.unix_micros(F.current_timestamp()))
    if bound.stamped:
        packed = _sequenced(packed, laid_out, streaming=streaming)
    if streaming:
        output = packed.groupBy(CORE).transformWithStateInPandas(
            Deferred(JoinProcessor(laid_out), VALUE_OF_CORE),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
        output = observed(output, laid_out.digest)
        matches = output.where(is_of(MATCHES)).mapInArrow(unpack, schema)
        outputs[matches] = OperatorOutput(output, schema, {n: frames[n].schema for n in spec.names})
        return matches
    in_order = spec.in_order
    ranked = StructType([*schema.fields, StructField(RANK, LongType())]) if in_order else schema
    # with the number of partitions said, Spark does not put several cores into one task
    rows = packed.repartition(laid_out.cores, CORE).groupBy(CORE).applyInArrow(run_core(laid_out), ranked)
    return rows.orderBy(f"`{RANK}`").drop(RANK) if in_order else rows


def _sequenced(packed: Any, laid_out: Plan, *, streaming: bool) -> Any:
    """The packed rows, every tuple stamped with its place in the order of all; one task sees them all."""
    if streaming:
        return packed.groupBy(CORE).transformWithStateInPandas(
            Deferred(SequenceProcessor(laid_out), VALUE_OF_SEQUENCER),
            outputStructType=PACKED,
            outputMode="Append",
            timeMode="None",
        )
    return packed.groupBy(CORE).applyInArrow(sequence_bounded(laid_out), PACKED)


def _laid_out(frames: dict[str, Any], spec: JoinSpec, options: SparkOptions) -> tuple[Plan, dict[str, Any]]:
    """How the join is laid out on this session, and the inputs with the columns that the plan knows.

    Or an error that says what it needs first.
    """
    streaming = _is_streaming(frames)
    cores = configured_cores(frames[spec.names[0]].sparkSession)
    if streaming:
        _check_watermarks(frames, spec)
        spec.check_unbounded("write hf.join(…, lateness='30 seconds')")
        if options.batch_join is not None:
            raise SpecError("SparkOptions(batch_join=…) is for batch DataFrames, and these are streaming; leave it out")
    else:
        spec.check_bounded()
    bound = spec.bind({name: schema_of(frames[name]) for name in spec.names})
    if not streaming:
        frames = needed(frames, bound)
        bound = spec.bind({name: schema_of(frames[name]) for name in spec.names})
    hot = options.hot_keys or options.hot_ranges
    laid_out = make_plan(bound, cores, [arrow_schema(frames[name], name) for name in spec.names], hot=hot)
    if hot:
        _check_hot(laid_out, options)
    if any(isinstance(part, PythonPredicate) for part in spec.conditions):
        recipe(laid_out)  # what Numba cannot compile is said here and not by a task
    return laid_out, frames


def explain(frames: dict[str, Any], spec: JoinSpec, options: SparkOptions) -> str:
    """The plan and its reasons, as text for a terminal."""
    streaming = _is_streaming(frames)
    laid_out, frames = _laid_out(frames, spec, options)
    if streaming:
        return describe(laid_out, engine=_name(frames))
    natively = is_native(laid_out, frames, options.batch_join)
    joined_by = words(laid_out, frames, options.batch_join)
    return describe(laid_out, engine=_name(frames), joined_by=joined_by, in_cores=not natively)


def _check_hot(laid_out: Plan, options: SparkOptions) -> None:
    """Refuse hot keys that the join cannot split."""
    if options.hot_keys and isinstance(laid_out.routing, SplitHashRouting):
        hot_groups(laid_out)  # what is wrong with a value is said here and not by a task
    elif options.hot_ranges and isinstance(laid_out.routing, SplitRangeRouting):
        hot_buckets(laid_out)
    else:
        option, by = ("hot_keys", "an equality") if options.hot_keys else ("hot_ranges", "a band and no equality")
        raise SpecError(
            f"SparkOptions({option}=…) is for two streams that {by} joins, with any how= but 'full'; "
            f"this join is divided by {laid_out.routing.name}: leave {option} out"
        )


def _name(frames: dict[str, Any]) -> str:
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


def _check_watermarks(frames: dict[str, Any], spec: JoinSpec) -> None:
    """Refuse an input that carries a watermark of Spark's own."""
    for name in spec.names:
        for field in frames[name].schema.fields:
            if _WATERMARK in (field.metadata or {}):
                millis = field.metadata[_WATERMARK]
                raise SpecError(
                    f"Stream {name!r} carries withWatermark({field.name!r}, …), which handfast replaces; "
                    f"take it off and write hf.join(…, lateness={{{name!r}: '{millis} ms', …}})"
                )
