"""Small texts, and whether files exist, on any file system that Spark reaches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def read_text(spark: SparkSession, path: str) -> str | None:
    """What `write_text` has written, or the text of a file; None if there is no such path."""
    parts = _rows(lambda: spark.read.text(_literal(path), wholetext=True))
    return "".join(part.value for part in parts) if parts is not None else None


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a text wherever Spark can write."""
    spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(path)


def has_files(spark: SparkSession, path: str, named: str = "") -> bool:
    """Whether a file is in a folder or in one below it, with these letters in its path; hidden ones do not count."""
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    in_path = F.col("path").contains(named)
    return bool(_rows(lambda: reader.load(_literal(path)).where(in_path).select("path").limit(1)))


def _rows(read: Callable[[], DataFrame]) -> list[Any] | None:
    """The rows of what is read; None if nothing is there."""
    try:
        return read().collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise


def _literal(path: str) -> str:
    """A path as readers want it: they take *, ?, [] and {} for patterns, which writers do not."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
