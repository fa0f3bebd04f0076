"""The demo from start to end: the join on Spark, the oracle beside it, and the comparison."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from handfast import api
from handfast.cli.demo.judge import Judge, compare
from handfast.cli.demo.scenario import Scenario
from handfast.cli.demo.screen import Batch, Screen, Summary
from handfast.engines.spark import embedded
from handfast.judge.rows import result_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT = "matches"  # the table in this process' memory that Spark writes the matches to
_LOOK = 0.2  # seconds between two looks at Spark's progress


def run(scenario: Scenario, screen: Screen) -> bool:
    """Show the whole demo, and say whether Spark's result is the oracle's."""
    embedded.check("The demo")
    start = perf_counter()
    screen.introduce(scenario)
    with ExitStack() as stack:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: nothing is left behind
        stack.callback(signal.signal, signal.SIGTERM, before)
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="handfast-demo-", ignore_cleanup_errors=True))
        judge = stack.enter_context(Judge(scenario))
        with ExitStack() as while_spark_runs:
            interrupts = while_spark_runs.enter_context(embedded.Interrupts())
            with screen.waiting("Spark is starting; the oracle is at work already, in a process of its own"):
                spark = while_spark_runs.enter_context(embedded.session(scenario.cores, Path(home), interrupts))
                interrupts.check()
                settings = _configure(spark, scenario)
                streams = _streams(spark, scenario)
                explained = api.explain(streams, scenario.spec)
            screen.plan(settings, explained)
            batches: list[Batch] = []
            with screen.streaming(scenario.rows_in) as show:
                for batch in _run(api.join(streams, scenario.spec), Path(home, "checkpoint"), interrupts):
                    batches.append(batch)
                    show(batches)
            matches = result_of(spark.table(_RESULT).toArrow())
        with screen.waiting("the oracle is still trying every pair in the windows, one after the other"):
            judged = judge.wait()
    verdict = compare(matches, judged.matches)
    screen.conclude(Summary(scenario, batches, matches, judged, verdict, perf_counter() - start))
    return verdict.equal


def _configure(spark: SparkSession, scenario: Scenario) -> str:
    """Prepare the session; what `configure` says it has set."""
    with redirect_stdout(StringIO()) as said:
        api.configure(spark, cores=scenario.cores)
    return said.getvalue().strip()


def _streams(spark: SparkSession, scenario: Scenario) -> dict[str, DataFrame]:
    from handfast.connectors import spark_source

    return spark_source.streams(
        spark, scenario.workload, rows=scenario.rows, rows_per_trigger=scenario.rows_per_trigger
    )


def _run(matches: DataFrame, checkpoint: Path, interrupts: embedded.Interrupts) -> Iterator[Batch]:
    """Start the query, and tell of every batch when Spark has finished it."""
    query = (
        matches.writeStream.format("memory")
        .queryName(_RESULT)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    told, ended = -1, False
    while not ended:
        interrupts.check()
        ended = bool(query.awaitTermination(_LOOK))  # type: ignore[arg-type]  # takes fractions too
        for progress in query.recentProgress:
            if progress.batchId > told and progress.numInputRows:
                told = progress.batchId
                found = progress.sink.numOutputRows
                yield Batch(told, progress.numInputRows, found, progress.batchDuration / 1_000)
