"""The counters of a streaming query: each core gives its share in every batch, the query's progress collects them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from handfast.engines.spark.output import SHARE, total
from handfast.errors import EngineError, SpecError
from handfast.flow.metrics import Metrics

_NAME = "handfast"  # of the observation, before the join's own


def observed(output: DataFrame, digest: str) -> DataFrame:
    """The operator's output, with the cores' counters observed by the query's progress.

    They are collected as a set and not as a sum, because a task that runs twice in a batch gives the same share twice.
    All attempts are observed (`configure` sees to it): by default Spark keeps the counters of the last job only, and
    after an executor was lost, or where someone looks at the first rows of a batch, that job ran a part of the cores.
    """
    return output.observe(f"{_NAME}:{digest}", F.collect_set(SHARE).alias("shares"))


def metrics(query: Any) -> Metrics:
    """The counters after the last batch of a query, or in one progress of it."""
    if not hasattr(query, "recentProgress") and not hasattr(query, "observedMetrics") and not isinstance(query, dict):
        raise SpecError(f"hf.metrics takes a StreamingQuery or one progress of it, not {query!r}")
    died_of = query.exception() if hasattr(query, "exception") else None
    if died_of is not None:
        raise died_of
    recent = query.recentProgress if hasattr(query, "recentProgress") else [query]
    for progress in reversed(recent):
        found = in_progress(progress)
        if found is not None:
            return found
    raise EngineError("The query has no counters of a join yet: it has finished no batch, or it runs no hf.join")


def in_progress(progress: Any) -> Metrics | None:
    """The counters in one progress of a query; None after a batch without rows."""
    found = list(_joins(progress["observedMetrics"] or {}))
    if len(found) > 1:
        raise EngineError(f"The query runs {len(found)} joins; hf.metrics can tell of one only")
    return found[0] if found else None


def _joins(observations: dict[str, Any]) -> Iterable[Metrics]:
    """The counters of each join in a progress."""
    for name, row in observations.items():
        if not name.startswith(f"{_NAME}:"):
            continue
        values = row["shares"] if "shares" in row else row["values"][0]  # as Spark Connect has it
        if values:  # none in a batch without rows
            yield total(values)
