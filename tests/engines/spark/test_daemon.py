"""Workers that Spark forks from our daemon begin with what they need."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_a_worker_has_imported_the_join_before_its_first_task(spark: SparkSession) -> None:
    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            is_ready = "handfast.engines.spark.operator" in sys.modules and gc.get_freeze_count() > 0
            yield pa.record_batch({"is_ready": [is_ready]})

    assert [(True,)] == spark.range(0, 1, 1, 1).mapInArrow(told, "is_ready boolean").collect()
