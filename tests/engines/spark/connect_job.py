"""Joins on Spark Connect, in a process of its own: a process has either a classic session or one of Connect.

`python -m tests.engines.spark.connect_job folder` writes to `folder/report.json` which cases differ from the oracle.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.agreement.runs import spark_batch, spark_streaming
from tests.strategies import BANDS, EQUALITIES, MULTI, RESIDUALS, Case, Shape


def cases() -> dict[str, Case]:
    """A join of every kind, each with a result."""
    return {
        "equality": _case(EQUALITIES[6]),
        "band": _case(BANDS[4]),
        "scan": _case(RESIDUALS[2]),
        "count windows": _case(BANDS[0], counted=True),
        "left": _case(EQUALITIES[0], how="left"),
        "in order": _case(BANDS[1], in_order=True),
        "three streams": _case(MULTI[1]),
    }


def _case(shape: Shape, *, counted: bool = False, **asked: Any) -> Case:
    for seed in count():
        case = Case.of(seed, for_spark=True, shape=shape).asked(**asked)
        case = case.counted(random.Random(seed)) if counted else case
        if case.expected() and case.expected_of_steps() and len(case.steps) in (2, 3):
            return case
    raise AssertionError


def main(folder: Path) -> None:
    """Run every case as batch and as stream."""
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    differ = []
    for name, case in cases().items():
        home = folder / name.replace(" ", "-")
        home.mkdir()
        if case.expected() != spark_batch(case, spark):
            differ.append(f"{name}, batch")
        if case.expected_of_steps() != spark_streaming(case, spark, home):
            differ.append(f"{name}, streaming")
    report = {"session": type(spark).__module__, "cases": 2 * len(cases()), "differ": differ}
    (folder / "report.json").write_text(json.dumps(report))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
