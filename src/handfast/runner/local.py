"""A pipeline in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from time import monotonic

import pyarrow as pa

from handfast import api
from handfast.connectors.local_doors import LocalSink, LocalSource, open_source
from handfast.connectors.pipeline import Pipeline
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.session import Session
from handfast.engines.spark.embedded import Interrupts
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, schema_of
from handfast.runner.screen import Screen, Status
from handfast.testing import text

_LOOK = 0.1  # seconds between two looks at what has come meanwhile, and at Ctrl-C


def explain(pipeline: Pipeline) -> str:
    """The plan of the pipeline's join."""
    return _explain(pipeline, {name: open_source(source) for name, source in pipeline.sources.items()})


def tables(pipeline: Pipeline) -> dict[str, pa.Table]:
    """All rows of all sources."""
    return {name: open_source(source).take_all() for name, source in pipeline.sources.items()}


def run(pipeline: Pipeline, screen: Screen) -> None:
    """Run the pipeline until its end, or until it is interrupted."""
    sources = {name: open_source(source) for name, source in pipeline.sources.items()}
    _explain(pipeline, sources)  # whatever is wrong with the join is said before a sink is touched
    sink = LocalSink(pipeline.sink, lambda matches: screen.say(text(matches)))
    if pipeline.mode == "batch":
        _run_batch(pipeline, sources, sink, screen)
    else:
        _run_stream(pipeline, sources, sink, screen)


def _explain(pipeline: Pipeline, sources: dict[str, LocalSource]) -> str:
    empty = {name: source.schema.empty_table() for name, source in sources.items()}
    return api.explain(empty, pipeline.spec, options=LocalOptions(cores=pipeline.cores))


def _run_stream(pipeline: Pipeline, sources: dict[str, LocalSource], sink: LocalSink, screen: Screen) -> None:
    if pipeline.checkpoint is not None:
        screen.say("the local engine keeps no checkpoint: it joins from the start")
    schemas = {name: source.schema for name, source in sources.items()}
    session = api.session(pipeline.spec, schemas, options=LocalOptions(cores=pipeline.cores))
    status = Status()
    try:
        with Interrupts() as interrupts, screen.running() as show:
            for status in _steps(pipeline, session, sources, sink, interrupts):
                show(status)
    except KeyboardInterrupt:
        screen.conclude("stopped", status)
        raise
    screen.conclude("done", status)


def _run_batch(pipeline: Pipeline, sources: dict[str, LocalSource], sink: LocalSink, screen: Screen) -> None:
    rows = {name: source.take_all() for name, source in sources.items()}
    matches = api.join(rows, pipeline.spec, options=LocalOptions(cores=pipeline.cores))
    sink.write(matches)
    corrupt = sum(source.corrupt for source in sources.values())
    counts = {name: len(table) for name, table in rows.items()}
    rejected = _rejected(pipeline, rows)
    screen.conclude("done", Status(1, counts, len(matches), rejected=rejected, corrupt=corrupt))


def _rejected(pipeline: Pipeline, rows: dict[str, pa.Table]) -> int:
    bound = pipeline.spec.bind({name: schema_of(table.schema) for name, table in rows.items()})
    refused = [split(bound, k, as_batch(rows[name]))[1] for k, name in enumerate(bound.spec.names)]
    return sum(batch.num_rows for batch in refused if batch is not None)


def _steps(
    pipeline: Pipeline, session: Session, sources: dict[str, LocalSource], sink: LocalSink, interrupts: Interrupts
) -> Iterator[Status]:
    """Join what has come, step by step, and tell how far it has come."""
    steps, due = 0, monotonic()
    pause = Event()
    while True:
        interrupts.check()
        taken = {name: source.take() for name, source in sources.items()}
        batch = {name: rows for name, rows in taken.items() if rows is not None}
        if batch:
            sink.write(pa.Table.from_batches(session.push_together(batch), session.schema))
            session.late_rows(), session.rejected_rows()  # counted; kept they would fill the memory
            steps += 1
            yield _status(steps, session, sources)
        elif pipeline.interval is None or all(source.is_over for source in sources.values()):
            return
        if pipeline.interval is not None:
            # nothing there: look again a moment later, even if the next step could be at once
            due = max(due + pipeline.interval / 1_000_000, monotonic() + (0.0 if batch else _LOOK))
            while (left := due - monotonic()) > 0:
                interrupts.check()
                pause.wait(min(_LOOK, left))


def _status(steps: int, session: Session, sources: dict[str, LocalSource]) -> Status:
    metrics = session.metrics()
    streams = metrics.streams
    return Status(
        steps,
        {name: stream.rows_in for name, stream in streams.items()},
        metrics.matches,
        metrics.watermark,
        waiting=sum(stream.waiting for stream in streams.values()),
        late=sum(stream.late for stream in streams.values()),
        rejected=sum(stream.rejected for stream in streams.values()),
        corrupt=sum(source.corrupt for source in sources.values()),
    )
