"""Bounded inputs on Spark: the same blocks go to the same cores, and each core runs once, without any state."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from handfast.core.bounded import run_bounded
from handfast.engines.spark.arrivals import read_blocks
from handfast.plan import Plan

Run = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_core(plan: Plan) -> Run:
    """A function, as Spark wants it for `applyInArrow`, that runs one core over all of its blocks."""

    def run(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from run_bounded(plan, read_blocks(batches, len(plan.join.schemas)))

    return run
