"""A join fed by hand: push batches of any stream in any order, read what comes out, see what became of every row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from threading import RLock
from time import monotonic
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
import pyarrow as pa

from handfast.core.describe import describe
from handfast.engines.local.admission_control import AdmissionControl
from handfast.engines.local.chains import make_chain
from handfast.engines.local.cores import Cores
from handfast.engines.local.engine import described
from handfast.engines.local.fitting import Fitting
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.planning import checked_options, lay_out
from handfast.errors import EngineError, SpecError
from handfast.flow.admission import Admission, progress_of, split
from handfast.flow.batch import as_table, empty
from handfast.flow.block import Block
from handfast.flow.metrics import Metrics, StreamMetrics
from handfast.flow.result import result_schema
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, NEVER, Horizon, Progress
from handfast.flow.topology import ChainTopology
from handfast.flow.wide import narrowed
from handfast.plan import Plan
from handfast.spec.join import JoinSpec
from handfast.spec.moment import Moment, parse_moment

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _alone(method: Callable[Concatenate[Session, _P], _T]) -> Callable[Concatenate[Session, _P], _T]:
    """Let in one call of the method at a time: other threads wait, and an interrupted call closes the session."""

    @wraps(method)
    def called(session: Session, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        session._check_process()  # before the lock: in a child of this process nobody may be left to open it
        with session._lock:
            if session._called:
                raise EngineError(
                    "This thread is already in a call of the session; call it again when that has returned"
                )
            try:
                session._called = True
                return method(session, *args, **kwargs)
            except Exception:
                raise
            except BaseException:
                session._abandon()
                raise
            finally:
                session._called = False

    return called


class Session:
    """A join in this process that takes batches as they come. Any thread may call it; calls run one at a time."""

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
        self._options = checked_options(options)
        for name in spec.names:
            if not isinstance(schemas[name], pa.Schema):
                raise SpecError(
                    f"The schema of stream {name!r} must be a pyarrow.Schema, not {type(schemas[name]).__name__}"
                )
        # nullable, whatever they say: a row without a time is rejected and counted, not an error
        nullable = {n: pa.schema([f.with_nullable(True) for f in schemas[n]]) for n in spec.names}
        self._schemas = {name: as_table(empty(schema), name).schema for name, schema in nullable.items()}
        self._positions = {name: position for position, name in enumerate(self._schemas)}
        self._fittings = {name: Fitting(name, schema) for name, schema in self._schemas.items()}
        self._plan = lay_out(spec, self._schemas, self._options)
        spec.check_unbounded("write JoinSpec(…, lateness='30 seconds')")
        self._schema = result_schema(self._plan.join, self._schemas)
        bound = self._plan.join
        self._admission = Admission(bound)
        self._stamper = Stamper(bound) if bound.stamped else None
        self.cores = _make_cores(self._plan, self._options)  # no user needs them; a benchmark slows one
        self._bound = bound
        self._clock = clock
        self._rows_in = dict.fromkeys(spec.names, 0)
        self._late: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._rejected: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._shed: dict[str, list[pa.RecordBatch]] = {name: [] for name in spec.names}
        self._counts = {what: dict.fromkeys(spec.names, 0) for what in ("late", "rejected", "shed")}
        self._control = AdmissionControl(self._options)
        self._matches = 0
        self._left = self._closed = self._called = False
        self._process = os.getpid()
        self._lock = RLock()  # so that a call out of a call is told and does not wait for itself

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the matches."""
        return self._schema

    @_alone
    def push(self, stream: str, rows: Any) -> list[pa.RecordBatch]:
        """Take in a batch of one stream, Arrow, pandas or Polars; give the matches that are decided now.

        A batch that does not fit is refused whole, and the session goes on as if it had not come.
        """
        self._position(stream)
        return self._push({stream: rows})

    @_alone
    def push_together(self, streams: Mapping[str, Any]) -> list[pa.RecordBatch]:
        """Take in one batch of several streams: late is a row below the watermark as it stood before all of them."""
        if not isinstance(streams, Mapping):
            raise SpecError(f"The batches must be given by stream, like {{'r': rows}}, not as {streams!r}")
        return self._push(streams)

    @_alone
    def advance(self, stream: str, time: Moment) -> list[pa.RecordBatch]:
        """Say that a stream has reached a time (microseconds since 1970, or a datetime), though no row shows it."""
        self._check_open()
        at = parse_moment(time, what="The time that a stream has come to")
        position = self._position(stream)
        reached = Progress(tuple(at if k == position else NEVER for k in range(len(self._schemas))))
        none: list[Block | None] = [None] * len(self._schemas)
        return self._guarded(lambda: self._joined(none, reached))

    @_alone
    def close(self) -> list[pa.RecordBatch]:
        """End every stream; give the matches that could not be decided before."""
        if self._closed:
            return []
        none: list[Block | None] = [None] * len(self._schemas)
        given = self._guarded(lambda: self.cores.finish(*self._stamped(none, END)))
        self._closed = True
        return given

    @_alone
    def late_rows(self) -> dict[str, pa.Table]:
        """The late rows of each stream since the last call."""
        return self._drained(self._late)

    @_alone
    def rejected_rows(self) -> dict[str, pa.Table]:
        """The rows of each stream without a valid time since the last call."""
        return self._drained(self._rejected)

    @_alone
    def shed_rows(self) -> dict[str, pa.Table]:
        """The rows of each stream since the last call that were shed because there was too much to do."""
        return self._drained(self._shed)

    @_alone
    def poll(self) -> list[pa.RecordBatch]:
        """The matches that have been found since the last call, where `push` does not wait for them."""
        if self._closed:
            return []
        return self._guarded(self.cores.poll)

    @_alone
    def metrics(self) -> Metrics:
        """What became of every row so far."""
        streams = {name: self._stream_metrics(k, name) for k, name in enumerate(self._schemas)}
        watermark = END if self._closed else self._admission.watermark
        reached = None if watermark == NEVER else watermark
        newest = self._admission.progress.reached(list(streams))
        return Metrics(streams, self._matches, reached, self.cores.metrics(), self.cores.held, newest)

    @_alone
    def explain(self) -> str:
        """The plan and the reason for each choice, as text; with three and more streams, as it stands by now."""
        return describe(self._plan, engine="local", cores=described(self._plan), algorithm=self.cores.algorithm())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if os.getpid() == self._process:
            self._leave(failed=error is not None)

    # -- pieces ----------------------------------------------------------------------------------

    @_alone
    def _leave(self, *, failed: bool) -> None:
        self._left = True  # takes no more rows; `close` still gives the matches that waited
        if failed:
            self._abandon()

    def _push(self, streams: Mapping[str, Any]) -> list[pa.RecordBatch]:
        self._check_open()
        positions = {name: self._position(name) for name in streams}
        batches = {name: self._fittings[name](rows) for name, rows in streams.items()}
        self._check_memory(batches.values())
        parted = {name: split(self._bound, positions[name], batch) for name, batch in batches.items()}
        # up to here nothing has changed
        return self._guarded(lambda: self._taken_in(batches, parted))

    def _taken_in(
        self,
        batches: Mapping[str, pa.RecordBatch],
        parted: Mapping[str, tuple[Block | None, pa.RecordBatch | None]],
    ) -> Iterable[pa.RecordBatch]:
        """The matches that batches bring; each batch comes split into rows with a valid time and rows without."""
        blocks: list[Block | None] = [None] * len(self._schemas)
        for name, (block, rejected) in parted.items():
            self._rows_in[name] += batches[name].num_rows
            blocks[self._positions[name]] = block
            if rejected is not None:
                self._set_aside("rejected", self._rejected, name, rejected)
        self._shed_from(blocks)
        return self._joined(blocks, progress_of(blocks))

    def _joined(self, blocks: list[Block | None], reached: Progress) -> Iterable[pa.RecordBatch]:
        """The matches of the tuples that are not late; afterwards the streams have come as far as `reached` says."""
        admitted, late = self._admission.admit(blocks, reached, self._now())
        for name, block in zip(self._schemas, late, strict=True):
            if block is not None:
                self._set_aside("late", self._late, name, block.batch)
        feed = self.cores.offer if self._control.never_stalls else self.cores.feed
        return feed(*self._stamped(admitted, self._admission.watermark))

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _shed_from(self, blocks: list[Block | None]) -> None:
        """Take out of the blocks the rows that are shed because there is too much to do."""
        if not self._control.never_stalls:
            return
        self._control.observe(sum(len(b) for b in blocks if b is not None), self._clock(), self.cores.busiest())
        backlog = self.cores.backlog()
        for stream, (name, block) in enumerate(zip(self._schemas, blocks, strict=True)):
            if block is None:
                continue
            shed = self._control.shed(block.times, backlog, self.cores.room())
            backlog += int(np.count_nonzero(~shed))
            if shed.any():
                self._set_aside("shed", self._shed, name, block.take(shed).batch)
                blocks[stream] = block.take(~shed) if not shed.all() else None

    def _stamped(self, admitted: Sequence[Block | None], watermark: int) -> tuple[Sequence[Block | None], Horizon]:
        """The tuples whose place in the order is final, and the horizon: no later tuple is below it."""
        if self._stamper is not None:
            return self._stamper.stamp(admitted, watermark)
        return admitted, Horizon(watermark, (0,) * len(admitted))

    def _waiting(self, stream: int) -> list[Block]:
        """The tuples of a stream whose place in the order is not final yet."""
        return self._stamper.waiting[stream] if self._stamper is not None else []

    def _guarded(self, give: Callable[[], Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """What is given. An error closes the session, since rows were admitted and what became of them is not known."""
        try:
            matches = list(narrowed(give(), self._schema))
        except Exception as error:
            self._abandon()
            what = str(error) or type(error).__name__
            raise EngineError(f"The session failed and is closed; open a new one: {what}") from error
        self._matches += sum(batch.num_rows for batch in matches)
        return matches

    def _abandon(self) -> None:
        """Close the session, though it may still have matches to give."""
        self._closed = True
        self.cores.stop()

    def _set_aside(self, what: str, kept: dict[str, list[pa.RecordBatch]], stream: str, rows: pa.RecordBatch) -> None:
        """Count rows that do not join, and keep them to be read."""
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
        tally = self.cores.tally(position)
        waiting = sum(map(len, self._waiting(position))) + tally.waiting
        late, shed, rejected = (self._counts[what][name] for what in ("late", "shed", "rejected"))
        return StreamMetrics(self._rows_in[name], waiting, tally.live, tally.expired, late, shed, rejected)

    def _position(self, stream: str) -> int:
        position = self._positions.get(stream) if isinstance(stream, str) else None
        if position is None:
            raise SpecError(f"The session has no stream {stream!r}; it has {', '.join(self._schemas)}")
        return position

    def _check_memory(self, batches: Iterable[pa.RecordBatch]) -> None:
        limit = self._options.memory_limit
        if limit is None:
            return
        stored = self.cores.stored_bytes()
        stored += sum(b.batch.nbytes for k in range(len(self._schemas)) for b in self._waiting(k))
        kept = sum(
            b.nbytes for own in (*self._late.values(), *self._rejected.values(), *self._shed.values()) for b in own
        )
        needed = stored + kept + sum(batch.nbytes for batch in batches) * self._options.cores
        if needed > limit:
            raise EngineError(
                f"The batch would take the session to {needed:,} bytes, over its memory_limit of {limit:,}; nothing "
                "was lost: push smaller batches, shorten the windows, read late_rows(), or raise the limit"
            )

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # its threads have stayed behind
            raise EngineError("The session belongs to the process that opened it; open one in this process")

    def _check_open(self) -> None:
        if self._closed or self._left:
            raise EngineError("The session is closed; open a new one with hf.session(…)")


def _make_cores(plan: Plan, options: LocalOptions) -> Cores:
    """The cores of a join, with the forwarding that its plan asks for."""
    if plan.routing.is_handshake:
        return make_chain(plan, ChainTopology(plan.cores), options.chain_block)
    return LowLatency(plan, options)
