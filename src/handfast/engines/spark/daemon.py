"""Spark's Python daemon with the join imported: done once before workers are forked, not in the first task of each.

A Spark session uses it that was started with `spark.python.daemon.module` set to `handfast.engines.spark.daemon`.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder

from pyspark.daemon import manager

_NEEDED = (
    "pandas",
    "pyarrow.parquet",
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "handfast.engines.spark.bounded",
    "handfast.engines.spark.operator",
    "handfast.engines.spark.sequence",
)


def prepare() -> None:
    """Import what joins need, run two small ones, and leave all of it out of the garbage collections of later tasks."""
    _leave_out_zips()
    for name in _NEEDED:
        import_module(name)
    import pyarrow as pa

    import handfast as hf

    rows = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    for on in ("r.k = s.k", "r.k BETWEEN s.k - 1 AND s.k + 1"):
        hf.join({"r": rows, "s": rows}, on=on, window="1 second", time="ts")
    gc.collect()
    gc.freeze()


def _leave_out_zips() -> None:
    """Where PySpark is installed, do not look through the zip files that Spark puts in front of it at every import."""
    others = [place for place in sys.path if not place.endswith(".zip")]
    if PathFinder.find_spec("pyspark", others) is not None:
        sys.path[:] = others


if __name__ == "__main__":
    prepare()
    manager()
