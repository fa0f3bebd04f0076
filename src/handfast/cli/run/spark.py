"""A pipeline on Spark, in a session that is started for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handfast import api
from handfast.cli.interrupts import Interrupts
from handfast.cli.run.status import Status, running
from handfast.cli.screen import Screen
from handfast.connectors import record
from handfast.connectors import spark as connector
from handfast.connectors.pipeline import FILES, Pipeline, local_path
from handfast.engines.spark import embedded, places
from handfast.engines.spark.metrics import in_progress
from handfast.engines.spark.text import read_text, write_text
from handfast.errors import SpecError
from handfast.flow.metrics import Metrics
from handfast.judge.grid import text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from handfast.judge.verify import Report

_LOOK = 0.2  # seconds between two looks at Spark's progress, and at Ctrl-C


def explain(pipeline: Pipeline, screen: Screen) -> str:
    """The plan of the pipeline's join."""
    with _session(pipeline, screen) as (spark, _, _home):
        return api.explain(connector.without_corrupt(connector.open_sources(spark, pipeline)), pipeline.spec)


def judge(pipeline: Pipeline, screen: Screen, *, limit: int) -> Report:
    """Whether Spark and the local engine agree with the oracle on all rows there are."""
    from handfast.judge.verify import verify  # it knows every engine, and running a pipeline needs one

    bounded = pipeline.as_batch()
    with _session(bounded, screen) as (spark, interrupts, _home):

        def say(line: str) -> None:
            interrupts.check()
            screen.say(line)

        frames = connector.without_corrupt(connector.open_sources(spark, bounded))
        engines = ["local", "local:3", f"spark:{pipeline.cores}"]
        with connector.explained():
            return verify(frames, pipeline.spec, engines=engines, limit=limit, progress=say)


def run(pipeline: Pipeline, screen: Screen) -> None:
    """Run the pipeline until its end, or until it is interrupted."""
    if pipeline.mode == "stream" and pipeline.checkpoint is None and any(s.keeps for s in pipeline.folders):
        raise SpecError(
            'A stream on Spark needs a checkpoint to go on from: checkpoint = "checkpoint", a folder of its own'
        )
    with _session(pipeline, screen) as (spark, interrupts, home):
        if pipeline.mode == "batch":
            _run_batch(pipeline, spark, screen, interrupts)
        else:
            _run_stream(pipeline, spark, screen, interrupts, home)


def _run_batch(pipeline: Pipeline, spark: SparkSession, screen: Screen, interrupts: Interrupts) -> None:
    frames = connector.open_sources(spark, pipeline)
    api.explain(connector.without_corrupt(frames), pipeline.spec)  # whatever is wrong with the join is said first
    connector.check_sinks(pipeline, goes_on=False)
    observations = connector.observations(pipeline.spec)
    matches = api.join(connector.counted(frames, pipeline.spec, observations), pipeline.spec)
    matches = connector.counted_matches(matches, observations)
    with screen.waiting("Spark joins"), connector.explained():
        interrupts.wait_for(
            lambda: connector.write(matches, pipeline, lambda rows: screen.say(text(rows))),
            cancel=spark.sparkContext.cancelAllJobs,
        )
    found = observations[connector.MATCHES].get["rows"]
    counts = {name: observations[name].get for name in frames}
    rows = {name: own["rows"] for name, own in counts.items()}
    rejected, corrupt = (sum(own[what] for own in counts.values()) for what in ("rejected", "corrupt"))
    screen.say(f"done: {Status(1, rows, found, rejected=rejected, corrupt=corrupt)}")


def _run_stream(pipeline: Pipeline, spark: SparkSession, screen: Screen, interrupts: Interrupts, home: Path) -> None:
    frames = connector.open_sources(spark, pipeline)
    fitting = connector.without_corrupt(frames)
    api.explain(fitting, pipeline.spec)  # whatever is wrong with the join is said before a checkpoint is touched
    checkpoint = pipeline.checkpoint or str(home / "checkpoint")
    goes_on, remember = _check_record(pipeline, spark, fitting, checkpoint, screen)
    folders = {sink.path: sink.where for sink in pipeline.folders if sink.path is not None and sink.format in FILES}
    places.check(spark, checkpoint, folders, alone=False)
    connector.check_sinks(pipeline, goes_on=goes_on)
    places.mark(spark, checkpoint, folders)
    matches = api.join(connector.watched(frames), pipeline.spec)
    if goes_on:
        screen.say(f"going on from the checkpoint {checkpoint}")
    status = Status()
    query = None
    try:
        with connector.explained(), running(screen) as show:
            query = _start(pipeline, matches, checkpoint, screen)
            remember()  # only now: Spark may refuse to start
            for status in _progress(pipeline, query, interrupts):
                show(status)
    except KeyboardInterrupt:
        if query is not None:
            query.stop()
        again = "; the next run goes on from the checkpoint" if pipeline.checkpoint else ""
        screen.say(f"stopped{again}: {status}")
        raise
    screen.say(f"done: {status}")


def _start(pipeline: Pipeline, matches: DataFrame, checkpoint: str, screen: Screen) -> Any:
    """Start the query: Spark's own for matches alone, `hf.write` where refused rows go to places of their own."""
    if not pipeline.refused:
        return connector.start(matches, pipeline, checkpoint)

    def show(rows: pa.Table) -> None:
        screen.say(text(rows))

    refused = {
        kind: {name: connector.place(sink.of(name), show) for name in pipeline.spec.names}
        for kind, sink in pipeline.refused.items()
    }
    return api.write(
        matches,
        to=connector.place(pipeline.sink, show),
        late_rows=refused.get("late_rows"),
        rejected_rows=refused.get("rejected_rows"),
        checkpoint=checkpoint,
        trigger=connector.trigger(pipeline),
    )


def _progress(pipeline: Pipeline, query: Any, interrupts: Interrupts) -> Iterator[Status]:
    """Tell of every batch when Spark has finished it."""
    told, steps, corrupt, ended = -1, 0, 0, False
    metrics = Metrics.start(pipeline.spec.names)
    while not ended:
        interrupts.check()
        ended = bool(query.awaitTermination(_LOOK))
        for progress in query.recentProgress:
            if progress.batchId <= told or not progress.observedMetrics:
                continue
            told = progress.batchId
            steps += 1
            metrics = in_progress(progress) or metrics
            corrupt += connector.corrupt_rows(progress.observedMetrics)
            yield Status.of(steps, metrics, corrupt)


# --- the session, and what a checkpoint belongs to ------------------------------------------------------------------


@contextmanager
def _session(pipeline: Pipeline, screen: Screen) -> Iterator[tuple[SparkSession, Interrupts, Path]]:
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="handfast-run-", ignore_cleanup_errors=True)
        home = Path(stack.enter_context(folder))
        interrupts = stack.enter_context(Interrupts())
        settings = pipeline.spark.settings()
        with screen.waiting("Spark is starting"):
            spark = stack.enter_context(embedded.session(pipeline.cores, home, interrupts.check, settings))
        interrupts.check()
        api.configure(spark, cores=pipeline.cores, quiet=True)
        yield spark, interrupts, home


def _check_record(
    pipeline: Pipeline, spark: SparkSession, frames: dict[str, DataFrame], checkpoint: str, screen: Screen
) -> tuple[bool, Callable[[], None]]:
    """Refuse the checkpoint of another join; whether there is something to go on from, and what marks it as ours."""
    columns = {n: ", ".join(f"{c.name} {c.dataType.simpleString()}" for c in f.schema) for n, f in frames.items()}
    now = record.record_of(pipeline.spec, columns, pipeline.cores, apart=bool(pipeline.refused))
    folder = local_path(checkpoint)
    elsewhere = f"{checkpoint}/{record.NAME}"  # on another file system: Spark reaches it
    if folder is not None:
        before = record.read(folder)
    else:
        said = read_text(spark, elsewhere)
        before = record.parse(said, elsewhere) if said is not None else None
    record.check(before, now, checkpoint)
    has_run = before is not None if folder is None else (folder / "metadata").exists()
    if before is None and has_run:
        screen.say(f"the checkpoint {checkpoint} has no {record.NAME}: whether it is of this join is not known")

    def remember() -> None:
        if before is not None:
            return
        if folder is not None:
            record.write(folder, now)
        else:
            write_text(spark, elsewhere, record.text(now))

    return has_run, remember
