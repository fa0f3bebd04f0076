"""The demo from start to end: a live join judged by the oracle, then a backfill compared with Spark's own join."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from handfast import api
from handfast.cli.demo import backfill, live, pages
from handfast.cli.demo.backfill import Backfill, Run
from handfast.cli.demo.judge import Judge, compare
from handfast.cli.demo.live import Batch, Live
from handfast.cli.demo.pages import Summary
from handfast.cli.demo.scenario import Scenario
from handfast.cli.interrupts import Interrupts
from handfast.cli.screen import Screen
from handfast.engines.spark import embedded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(scenario: Scenario, screen: Screen) -> bool:
    """Show the whole demo, and say whether both results are right."""
    embedded.check("The demo")
    start = perf_counter()
    pages.introduce(screen, scenario)
    with ExitStack() as stack:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: nothing is left behind
        stack.callback(signal.signal, signal.SIGTERM, before)
        folder = tempfile.TemporaryDirectory(prefix="handfast-demo-", ignore_cleanup_errors=True)
        home = Path(stack.enter_context(folder))
        judge = stack.enter_context(Judge(scenario))
        interrupts = stack.enter_context(Interrupts())
        with screen.waiting("Spark is starting; the oracle is at work already, in a process of its own"):
            spark = stack.enter_context(embedded.session(scenario.cores, home, interrupts.check))
            interrupts.check()
        lived = _live(scenario, screen, spark, home, judge, interrupts)
        pages.live(screen, scenario, lived)
        filled = _backfill(scenario, screen, spark, home, interrupts) if scenario.backfill else None
    summary = Summary(scenario, lived, filled, perf_counter() - start)
    pages.conclude(screen, summary)
    return summary.equal


def _live(
    scenario: Scenario, screen: Screen, spark: SparkSession, home: Path, judge: Judge, interrupts: Interrupts
) -> Live:
    settings = live.configure(spark, scenario)
    streams = live.streams(spark, scenario)
    pages.plan(screen, settings, api.explain(streams, scenario.spec))
    batches: list[Batch] = []
    with pages.batches(screen, scenario.rows_in) as show:
        for batch in live.batches(api.join(streams, scenario.spec), home / "checkpoint", interrupts):
            batches.append(batch)
            show(batches)
    matches = live.found(spark)
    with screen.waiting("the oracle is still trying every pair in the windows, one after the other"):
        judged = judge.wait(interrupts.check)
    return Live(batches, matches, judged, compare(matches, judged.matches))


def _backfill(scenario: Scenario, screen: Screen, spark: SparkSession, home: Path, interrupts: Interrupts) -> Backfill:
    pages.introduce_backfill(screen, scenario)
    with screen.waiting("the history is written to Parquet files"):
        backfill.write_history(scenario, home / "history")
    runs: list[Run] = []
    for join, work in backfill.joins(spark, scenario, home / "history"):
        with screen.waiting(f"{join} is running"):
            runs.append(interrupts.wait_for(work, cancel=spark.sparkContext.cancelAllJobs))
        pages.ran(screen, runs[-1])
    screen.say()
    return Backfill(2 * scenario.backfill, tuple(runs))
