"""What a Spark session needs before it can join: set by `configure`, checked by `join`."""

from __future__ import annotations

from typing import Any

from handfast.errors import SpecError

_CORES = "spark.handfast.cores"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ATTEMPTS = "spark.sql.legacy.observeMetricsAggregateAllAttempts"
_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def configure(spark: Any, *, cores: int) -> None:
    """Set what joins need on this session, and say so."""
    if not hasattr(spark, "conf"):
        raise SpecError(f"hf.configure takes a Spark session, not {spark!r}")
    if not isinstance(cores, int) or isinstance(cores, bool) or cores < 1:
        raise SpecError(f"hf.configure(spark, cores=…) must be a positive number, not {cores!r}")
    settings = {
        _PROVIDER: (_ROCKSDB, "the join keeps its windows in RocksDB"),
        _CHANGELOG: ("true", "a checkpoint writes what changed, not the whole window"),
        _PARTITIONS: (str(cores), "one partition for each JoinCore"),
        _ATTEMPTS: ("true", "a core that runs again leaves the counters of the others in the progress"),
        _BYTES: (str(64 << 20), "blocks are large: few to an Arrow batch"),
        _CORES: (str(cores), "how many JoinCores share the windows"),
    }
    for name, (value, reason) in settings.items():
        spark.conf.set(name, value)
        print(f"handfast: {name} = {value} ({reason})")


def configured_cores(spark: Any) -> int:
    """The number of cores that `configure` was called with, or an error with the line that is missing."""
    way_out = "call hf.configure(spark, cores=…) first, e.g. hf.configure(spark, cores=2)"
    cores = spark.conf.get(_CORES, None)
    if cores is None:
        raise SpecError(f"This Spark session is not configured for joins; {way_out}")
    if spark.conf.get(_PROVIDER, None) != _ROCKSDB:
        raise SpecError(f"The session's state store was changed after hf.configure, and joins need RocksDB; {way_out}")
    partitions = spark.conf.get(_PARTITIONS, None)
    if partitions != cores:
        raise SpecError(f"The session's {_PARTITIONS} was changed to {partitions} after hf.configure; {way_out}")
    return int(cores)
