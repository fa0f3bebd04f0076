"""A pipeline in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from time import monotonic

import pyarrow as pa

from handfast import api
from handfast.cli.interrupts import Interrupts
from handfast.cli.run.status import Status, running
from handfast.cli.screen import Screen
from handfast.connectors.local import LocalSink, LocalSource, open_source
from handfast.connectors.pipeline import Pipeline, Sink
from handfast.core.describe import describe
from handfast.engines.local.engine import described
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.planning import lay_out
from handfast.engines.local.session import Session
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, as_table, schema_of
from handfast.judge.grid import text
from handfast.judge.verify import Report, verify

_LOOK = 0.1  # seconds between two looks at what has come meanwhile, and at Ctrl-C


def explain(pipeline: Pipeline, screen: Screen) -> str:
    """The plan of the pipeline's join; it is there at once, so the screen stays empty."""
    return _explain(pipeline, {name: open_source(source) for name, source in pipeline.sources.items()})


def judge(pipeline: Pipeline, screen: Screen, *, limit: int) -> Report:
    """Whether the local engine agrees with the oracle on all rows there are."""
    tables = {name: open_source(source).take_all() for name, source in pipeline.sources.items()}
    return verify(tables, pipeline.spec, limit=limit, progress=screen.say)


def run(pipeline: Pipeline, screen: Screen) -> None:
    """Run the pipeline until its end, or until it is interrupted."""
    sources = {name: open_source(source) for name, source in pipeline.sources.items()}
    _explain(pipeline, sources)  # whatever is wrong with the join is said before a sink is touched
    if pipeline.mode == "batch":
        _run_batch(pipeline, sources, screen)
    else:
        _run_stream(pipeline, sources, screen)


@dataclass(frozen=True, slots=True)
class _Sinks:
    """Where matches go, and by stream the rows that are refused, as far as it is asked for."""

    matches: LocalSink
    late_rows: dict[str, LocalSink]
    rejected_rows: dict[str, LocalSink]

    @staticmethod
    def open(pipeline: Pipeline, screen: Screen) -> _Sinks:
        def opened(sink: Sink) -> LocalSink:
            return LocalSink(sink, lambda rows: screen.say(text(rows)))

        names = pipeline.spec.names
        refused = {kind: {n: opened(sink.of(n)) for n in names} for kind, sink in pipeline.refused.items()}
        return _Sinks(opened(pipeline.sink), refused.get("late_rows", {}), refused.get("rejected_rows", {}))

    def write(self, matches: pa.Table, session: Session) -> None:
        """Write what a step gave; refused rows are taken from the session in any case: they would fill the memory."""
        self.matches.write(matches)
        late, rejected = session.late_rows(), session.rejected_rows()
        for sinks, rows in ((self.late_rows, late), (self.rejected_rows, rejected)):
            for name, sink in sinks.items():
                sink.write(rows[name])


def _explain(pipeline: Pipeline, sources: dict[str, LocalSource]) -> str:
    if pipeline.mode == "batch":
        pipeline.spec.check_bounded()
    schemas = {name: as_table(source.schema.empty_table(), name).schema for name, source in sources.items()}
    plan = lay_out(pipeline.spec, schemas, LocalOptions(cores=pipeline.cores))
    return describe(plan, engine="local", cores=described(plan))


def _run_stream(pipeline: Pipeline, sources: dict[str, LocalSource], screen: Screen) -> None:
    sinks = _Sinks.open(pipeline, screen)
    if pipeline.checkpoint is not None:
        screen.say("the local engine keeps no checkpoint: it joins from the start")
    schemas = {name: source.schema for name, source in sources.items()}
    session = api.session(pipeline.spec, schemas, options=LocalOptions(cores=pipeline.cores))
    status = Status()
    try:
        with Interrupts() as interrupts, running(screen) as show:
            for status in _steps(pipeline, session, sources, sinks, interrupts):
                show(status)
    except KeyboardInterrupt:
        screen.say(f"stopped: {status}")
        raise
    screen.say(f"done: {status}")


def _run_batch(pipeline: Pipeline, sources: dict[str, LocalSource], screen: Screen) -> None:
    sink = LocalSink(pipeline.sink, lambda matches: screen.say(text(matches)))
    rows = {name: source.take_all() for name, source in sources.items()}
    matches = api.join(rows, pipeline.spec, options=LocalOptions(cores=pipeline.cores))
    sink.write(matches)
    corrupt = sum(source.corrupt for source in sources.values())
    counts = {name: len(table) for name, table in rows.items()}
    rejected = _rejected(pipeline, rows)
    screen.say(f"done: {Status(1, counts, len(matches), rejected=rejected, corrupt=corrupt)}")


def _rejected(pipeline: Pipeline, rows: dict[str, pa.Table]) -> int:
    bound = pipeline.spec.bind({name: schema_of(table.schema) for name, table in rows.items()})
    refused = [split(bound, k, as_batch(rows[name]))[1] for k, name in enumerate(bound.spec.names)]
    return sum(batch.num_rows for batch in refused if batch is not None)


def _steps(
    pipeline: Pipeline, session: Session, sources: dict[str, LocalSource], sinks: _Sinks, interrupts: Interrupts
) -> Iterator[Status]:
    """Join what has come, step by step, and tell how far it has come."""
    steps, due = 0, monotonic()
    pause = Event()
    while True:
        interrupts.check()
        taken = {name: source.take() for name, source in sources.items()}
        batch = {name: rows for name, rows in taken.items() if rows is not None}
        if batch:
            sinks.write(pa.Table.from_batches(session.push_together(batch), session.schema), session)
            steps += 1
            yield Status.of(steps, session.metrics(), sum(source.corrupt for source in sources.values()))
        elif pipeline.interval is None or all(source.is_over for source in sources.values()):
            return
        if pipeline.interval is not None:
            # nothing there: look again a moment later, even if the next step could be at once
            due = max(due + pipeline.interval / 1_000_000, monotonic() + (0.0 if batch else _LOOK))
            while (left := due - monotonic()) > 0:
                interrupts.check()
                pause.wait(min(_LOOK, left))
