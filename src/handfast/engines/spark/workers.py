"""The Python that Spark's workers run: that of the program on a local master; elsewhere a job looks what theirs has."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from handfast import __version__
from handfast.errors import EngineError

_LOOKED = "spark.handfast.workers"  # the version that the workers were found to have
_NEEDED = ("google.protobuf", "handfast.engines.spark.operator")  # what a join imports there, and all that these import
_REASONS = (
    r"No module named '[^']+'",
    r"PYTHON_VERSION_MISMATCH\]? ?[^\n]*?(?=\.? Please|\n|$)",
    r'Cannot run program "[^"]+"',
    r"^\w+Error: [^\n]+",
)


def prepare(spark: Any) -> None:
    """Make sure that the workers can import handfast; if they cannot, say which setting helps.

    On a local master they run the Python of this program, unless PYSPARK_PYTHON names another; Spark by itself would
    take the `python3` on the PATH. Elsewhere a tiny job looks what they have, once for each session.
    """
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    if context is not None and re.fullmatch(r"local(\[.*)?", context.master):
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable  # what functions made from now on are run by
        if context.pythonExec == sys.executable:
            return
    if spark.conf.get(_LOOKED, None) != __version__:
        _look(spark, _way_out(context))
        spark.conf.set(_LOOKED, __version__)


def _look(spark: Any, way_out: str) -> None:
    try:
        found = spark.range(1_000).mapInArrow(_report, "version string").distinct().collect()
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark's workers cannot run joins: {_reason(str(error))}; {way_out}") from error
    others = sorted(row.version for row in found if row.version != __version__)
    if others:
        raise EngineError(
            f"Spark's workers have handfast {', '.join(others)}, and this program has {__version__}; {way_out}"
        )


def _report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: import what a join needs, and tell the version."""
    for name in _NEEDED:
        import_module(name)
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"version": [__version__]})


def _reason(said: str) -> str:
    for pattern in _REASONS:
        found = re.findall(pattern, said, re.MULTILINE)
        if found:
            return str(found[-1])
    return said.strip().partition("\n")[0].rstrip(".")


def _way_out(context: Any) -> str:
    wanted = f"a Python that has handfast {__version__} and its 'spark' packages"
    if context is None:
        return (
            f"start the Spark Connect server with PYSPARK_PYTHON set to {wanted}; where this program starts it: "
            "os.environ['PYSPARK_PYTHON'] = sys.executable before the session is made"
        )
    return (
        f"they run {context.pythonExec!r}: set PYSPARK_PYTHON before the session starts, or with spark-submit --conf "
        f"spark.pyspark.python=…, to {wanted} on every node; where there is none, send one along: --archives "
        "env.tar.gz#env, and ./env/bin/python"
    )
