"""A join fed by hand: push batches of any stream in any order, read what comes out, see what became of every row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from handfast.engines.local.door import Door
from handfast.engines.local.engine import LocalJoin, result_schema
from handfast.engines.local.options import LocalOptions
from handfast.errors import EngineError, SpecError
from handfast.flow.admission import progress_of, split
from handfast.flow.batch import as_batch, as_table, empty, schema_of, type_of
from handfast.flow.block import Block
from handfast.flow.metrics import Metrics, StreamMetrics
from handfast.flow.time import END, NEVER, Progress
from handfast.flow.wide import narrowed, wide_schema
from handfast.plan import make_plan
from handfast.spec.join import ARRIVAL, JoinSpec
from handfast.spec.moment import Moment, parse_moment
from handfast.spec.types import Kind


class Session:
    """A join in this process that takes batches as they come."""

    def __init__(
        self,
        spec: JoinSpec,
        schemas: Mapping[str, pa.Schema],
        options: LocalOptions | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if not isinstance(spec, JoinSpec):
            raise SpecError(f"A session needs a JoinSpec, not {spec!r}; write hf.session(hf.JoinSpec(…), schemas)")
        if not isinstance(schemas, Mapping):
            raise SpecError(f"A session needs the schema of every stream: {{'r': pa.schema(…), …}}, not {schemas!r}")
        missing = [name for name in spec.names if name not in schemas]
        if missing:
            raise SpecError(f"The session needs the schema of stream {missing[0]!r}: schemas={{{missing[0]!r}: …}}")
        if options is not None and not isinstance(options, LocalOptions):
            raise SpecError(f"options must be hf.LocalOptions(…), not {options!r}")
        self._options = options or LocalOptions()
        for name in spec.names:
            if not isinstance(schemas[name], pa.Schema):
                raise SpecError(
                    f"The schema of stream {name!r} must be a pyarrow.Schema, not {type(schemas[name]).__name__}"
                )
        # nullable, whatever they say: a row without a time is rejected and counted, not an error
        nullable = {n: pa.schema([f.with_nullable(True) for f in schemas[n]]) for n in spec.names}
        self._schemas = {name: as_table(empty(schema), name).schema for name, schema in nullable.items()}
        bound = spec.bind({name: schema_of(schema) for name, schema in self._schemas.items()})
        for stream in spec.streams:
            if stream.lateness is None and spec.order != ARRIVAL:
                raise SpecError(
                    f"Stream {stream.name!r} is unbounded and needs a lateness: how far a row may lag behind the "
                    "newest; write JoinSpec(…, lateness='30 seconds')"
                )
        arrow = [wide_schema(self._schemas[name]) for name in spec.names]
        wanted = self._options
        plan = make_plan(bound, wanted.cores, arrow, wanted.local_join, walks=wanted.walks)
        self._schema = result_schema(plan, {name: empty(schema) for name, schema in self._schemas.items()})
        self._join = LocalJoin(plan, wanted)
        self._bound = bound
        self._clock = clock
        self._rows_in = dict.fromkeys(spec.names, 0)
        self._late: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._rejected: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._shed: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._counts = {what: dict.fromkeys(spec.names, 0) for what in ("late", "rejected", "shed")}
        self._door = Door(self._options)
        self._matches = 0
        self._left = self._closed = False
        self._process = os.getpid()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the matches."""
        return self._schema

    def push(self, stream: str, rows: Any) -> list[pa.RecordBatch]:
        """Take in a batch of one stream, Arrow, pandas or Polars; give the matches that are decided now.

        A batch that does not fit is refused whole, and the session goes on as if it had not come.
        """
        self._position(stream)
        return self.push_together({stream: rows})

    def push_together(self, streams: Mapping[str, Any]) -> list[pa.RecordBatch]:
        """Take in one batch of several streams at once: late is what the watermark had passed before any of them."""
        self._check_open()
        if not isinstance(streams, Mapping):
            raise SpecError(f"The batches must be given by stream, like {{'r': rows}}, not as {streams!r}")
        positions = {name: self._position(name) for name in streams}
        batches = {name: self._fitting(name, rows) for name, rows in streams.items()}
        self._check_memory(sum(batch.nbytes for batch in batches.values()))
        blocks: list[Block | None] = [None] * len(self._schemas)
        for name, batch in batches.items():
            position = positions[name]
            blocks[position], rejected = split(self._bound, position, batch)
            self._rows_in[name] += batch.num_rows
            if rejected is not None:
                self._refuse("rejected", self._rejected, name, rejected)
        self._control(blocks)
        admitted, late = self._join.admission.admit(blocks, progress_of(blocks), self._now())
        for name, position in positions.items():
            held_back = late[position]
            if held_back is not None:
                self._refuse("late", self._late, name, held_back.batch)
        return self._given(admitted)

    def advance(self, stream: str, time: Moment) -> list[pa.RecordBatch]:
        """Say that a stream has come to a time (microseconds since 1970, or a datetime), though no row shows it."""
        self._check_open()
        at = parse_moment(time, what="The time that a stream has come to")
        position = self._position(stream)
        reached = Progress(tuple(at if k == position else NEVER for k in range(len(self._schemas))))
        none: list[Block | None] = [None] * len(self._schemas)
        self._join.admission.admit(none, reached, self._now())
        return self._given(none)

    def close(self) -> list[pa.RecordBatch]:
        """End every stream; give the matches that waited for what might still come."""
        if self._closed:
            return []
        self._check_process()
        given = self._guarded(self._join.close)
        self._closed = True
        return given

    def late_rows(self) -> dict[str, pa.Table]:
        """The late rows of each stream since the last call."""
        return self._drained(self._late)

    def rejected_rows(self) -> dict[str, pa.Table]:
        """The rows of each stream without a valid time since the last call."""
        return self._drained(self._rejected)

    def shed_rows(self) -> dict[str, pa.Table]:
        """The rows of each stream since the last call that were refused because there was too much to do."""
        return self._drained(self._shed)

    def poll(self) -> list[pa.RecordBatch]:
        """The matches that have been found since the last call: where `push` does not wait for its own."""
        if self._closed:
            return []
        return self._guarded(self._join.cores.poll)

    def metrics(self) -> Metrics:
        """What became of every row so far."""
        streams = {name: self._stream_metrics(k, name) for k, name in enumerate(self._schemas)}
        watermark = END if self._closed else self._join.admission.watermark
        reached = None if watermark == NEVER else watermark
        cores = self._join.cores
        return Metrics(streams, self._matches, reached, cores.metrics(), cores.held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._left = True  # takes no more rows; `close` still gives the matches that waited
        if error is not None:
            self._closed = True
            self._join.cores.stop()

    # -- pieces ----------------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _control(self, blocks: list[Block | None]) -> None:
        """Leave out of the blocks what is refused because there is too much to do."""
        if not self._door.never_stalls:
            return
        cores = self._join.cores
        self._door.observe(sum(len(b) for b in blocks if b is not None), self._clock(), cores.work())
        backlog = cores.backlog()
        for stream, (name, block) in enumerate(zip(self._schemas, blocks, strict=True)):
            if block is None:
                continue
            refused = self._door.refused(block.times, backlog, cores.room())
            backlog += int(np.count_nonzero(~refused))
            if refused.any():
                self._refuse("shed", self._shed, name, block.take(refused).batch)
                blocks[stream] = block.take(~refused) if not refused.all() else None

    def _given(self, admitted: list[Block | None]) -> list[pa.RecordBatch]:
        return self._guarded(lambda: self._join.join(admitted, wait=not self._door.never_stalls))

    def _guarded(self, give: Callable[[], Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """What is given; an error closes the session."""
        try:
            return self._count(list(narrowed(give(), self._schema)))
        except BaseException as error:
            # the rows were let in, and what became of them is not known
            self._closed = True
            self._join.cores.stop()
            if not isinstance(error, Exception):
                raise
            raise EngineError(f"The session failed and is closed; open a new one: {error}") from error

    def _count(self, matches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        self._matches += sum(batch.num_rows for batch in matches)
        return matches

    def _refuse(self, what: str, kept: dict[str, list[pa.RecordBatch]], stream: str, rows: pa.RecordBatch) -> None:
        self._counts[what][stream] += rows.num_rows
        kept[stream].append(rows)

    def _drained(self, kept: dict[str, list[pa.RecordBatch]]) -> dict[str, pa.Table]:
        tables = {
            n: pa.Table.from_batches(narrowed(batches, self._schemas[n]), self._schemas[n])
            for n, batches in kept.items()
        }
        for batches in kept.values():
            batches.clear()
        return tables

    def _stream_metrics(self, position: int, name: str) -> StreamMetrics:
        tally = self._join.cores.tally(position)
        waiting = sum(map(len, self._join.waiting(position))) + tally.waiting
        late, shed, rejected = (self._counts[what][name] for what in ("late", "shed", "rejected"))
        return StreamMetrics(self._rows_in[name], waiting, tally.live, tally.expired, late, shed, rejected)

    def _position(self, stream: str) -> int:
        if not isinstance(stream, str) or stream not in self._schemas:
            raise SpecError(f"The session has no stream {stream!r}; it has {', '.join(self._schemas)}")
        return list(self._schemas).index(stream)

    def _fitting(self, stream: str, rows: Any) -> pa.RecordBatch:
        table, wanted = as_table(rows, stream), self._schemas[stream]
        missing = [name for name in wanted.names if name not in table.schema.names]
        extra = [name for name in table.schema.names if name not in wanted.names]
        if missing or extra:
            what = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which the session does not know"
            raise SpecError(f"A batch of stream {stream!r} {what}; it must have {', '.join(wanted.names)}")
        if len(set(table.schema.names)) < len(table.schema.names):
            raise SpecError(f"A batch of stream {stream!r} has a column twice; it must have {', '.join(wanted.names)}")
        for name in wanted.names:
            _check_kind(stream, name, table.schema.field(name).type, wanted.field(name).type)
        try:
            fitting = table.select(wanted.names).cast(pa.schema([field.with_nullable(True) for field in wanted]))
            batch = as_batch(fitting)
            return batch.take(pa.array(np.arange(len(batch))))  # a copy: the caller may go on writing to its own
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SpecError(f"A batch of stream {stream!r} does not fit its schema: {error}") from None

    def _check_memory(self, new: int) -> None:
        limit = self._options.memory_limit
        if limit is None:
            return
        held = self._join.cores.stored_bytes()
        held += sum(b.batch.nbytes for k in range(len(self._schemas)) for b in self._join.waiting(k))
        kept = sum(
            b.nbytes for own in (*self._late.values(), *self._rejected.values(), *self._shed.values()) for b in own
        )
        needed = held + kept + new * self._options.cores
        if needed > limit:
            raise EngineError(
                f"The batch would take the session to {needed:,} bytes, over its memory_limit of {limit:,}; nothing "
                "was lost: push smaller batches, shorten the windows, read late_rows(), or raise the limit"
            )

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # its threads have stayed behind
            raise EngineError("The session belongs to the process that opened it; open one in this process")

    def _check_open(self) -> None:
        self._check_process()
        if self._closed or self._left:
            raise EngineError("The session is closed; open a new one with hf.session(…)")


def _check_kind(stream: str, column: str, given: pa.DataType, wanted: pa.DataType) -> None:
    """Refuse values of another kind: numbers become other numbers where nothing is lost, and nothing else changes."""
    if given == wanted or pa.types.is_null(given):
        return
    a, b = type_of(given), type_of(wanted)
    if a.is_numeric and b.is_numeric:
        return
    if a.kind is not b.kind or a.kind is Kind.PAYLOAD:
        raise SpecError(
            f"Column {column!r} of a batch of stream {stream!r} is of type {given}, and the session knows it as "
            f"{wanted}; convert it before it is pushed"
        )
