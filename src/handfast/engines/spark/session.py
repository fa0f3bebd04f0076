"""What a Spark session needs before it can join: set by `configure`, checked by `join`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from handfast.engines.spark import workers
from handfast.errors import SpecError
from handfast.flow.pieces import LIMIT

_CORES = "spark.handfast.cores"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ATTEMPTS = "spark.sql.legacy.observeMetricsAggregateAllAttempts"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def configure(spark: Any, *, cores: int | None, quiet: bool) -> None:
    """Set what joins need on this session, and say so in a line."""
    if not hasattr(spark, "conf"):
        raise SpecError(f"hf.configure takes a Spark session, not {spark!r}")
    if cores is not None and (not isinstance(cores, int) or isinstance(cores, bool) or cores < 1):
        raise SpecError(f"hf.configure(spark, cores=…) must be a positive number, not {cores!r}")
    _check_running(spark)
    workers.prepare(spark)
    slots = _slots(spark)
    wanted = slots if cores is None else cores
    settings = {
        _PROVIDER: _ROCKSDB,  # the join keeps its windows in RocksDB
        _CHANGELOG: "true",  # a checkpoint writes what changed, not the whole window
        _PARTITIONS: str(wanted),  # one partition for each JoinCore
        _ATTEMPTS: "true",  # a core that runs again leaves the counters of the others in the progress
        _BYTES: str(64 << 20),  # blocks are large: few to an Arrow batch
        _ROWS: str(LIMIT.rows),  # and rows are small: as many as are packed at a time
        _CORES: str(wanted),  # how many JoinCores share the windows
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    if not quiet:
        print(_said(wanted, slots))


def configured_cores(spark: Any) -> int:
    """The number of cores that `configure` has set, or an error with the line that is missing."""
    _check_running(spark)
    way_out = "call hf.configure(spark) first"
    cores = spark.conf.get(_CORES, None)
    if cores is None:
        raise SpecError(f"This Spark session is not configured for joins; {way_out}")
    if spark.conf.get(_PROVIDER, None) != _ROCKSDB:
        raise SpecError(f"The session's state store was changed after hf.configure, and joins need RocksDB; {way_out}")
    partitions = spark.conf.get(_PARTITIONS, None)
    if partitions != cores:
        raise SpecError(f"The session's {_PARTITIONS} was changed to {partitions} after hf.configure; {way_out}")
    return int(cores)


def _check_running(spark: Any) -> None:
    """Refuse a session that has been stopped."""
    context = getattr(spark, "sparkContext", None)
    try:
        stopped = spark.is_stopped if context is None else context.defaultParallelism < 1
    except AttributeError:  # there is no public way to ask, and this is what PySpark raises then
        stopped = True
    if stopped:
        raise SpecError(
            "The Spark session has been stopped; make a new one with SparkSession.builder.getOrCreate(), and call "
            "hf.configure with it"
        )


def _slots(spark: Any) -> int:
    """How many tasks the session runs at a time: its default parallelism."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    # Spark Connect does not say, but divides a range into as many parts
    return int(spark.range(10_000).select(F.spark_partition_id()).distinct().count())


def _said(cores: int, slots: int) -> str:
    count = "1 core" if cores == 1 else f"{cores} cores"
    partitions = "1 shuffle partition" if cores == 1 else f"{cores} shuffle partitions"
    said = f"handfast: {count}: {partitions}, windows in RocksDB, checkpoints of what changed, Arrow batches of 64 MiB"
    if cores > slots:
        said += f"; more cores than the {slots} tasks that Spark runs at a time: some wait for others in every batch"
    return said
