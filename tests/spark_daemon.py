"""Spark's Python daemon for the tests: it does before it forks, once, what each worker would do in its first task.

That costs more than most of the joins that the tests run: imports, Numba's start, looking through Spark's zip files.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

NEEDED = (
    "pandas",
    "pyarrow.parquet",
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "handfast.engines.spark.bounded",
    "handfast.engines.spark.operator",
    "handfast.engines.spark.sequence",
)


def prepare() -> None:
    """Import what a join needs, run a small one, and leave it all out of the collections of garbage after each task."""
    # the installed pyspark is the same as the one in the zip file that Spark puts in front
    sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]
    for name in NEEDED:
        import_module(name)
    import pyarrow as pa

    import handfast as hf

    rows = pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    hf.join({"r": rows, "s": rows}, on="r.k = s.k", window="1 second", time="ts")
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    from pyspark.daemon import manager

    manager()
