"""The join in this process: a door, stamps where windows count, a way to the cores, and the cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from handfast.core.bounded import run_bounded
from handfast.core.join_core import JoinCore
from handfast.core.route import Router
from handfast.flow.admission import Admission, progress_of, split
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.order import by_rank
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, Horizon
from handfast.plan import Plan


class LocalJoin:
    """A join fed batch by batch, every batch one step of all its cores."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.admission = Admission(plan.join)
        self._stamper = Stamper(plan.join) if plan.join.stamped else None
        self._routers = [Router(plan, stream) for stream in range(len(plan.join.schemas))]
        self.cores = [JoinCore(plan) for _ in range(plan.cores)]

    def push(self, tables: Mapping[str, pa.Table], now: int = 0) -> Iterator[pa.RecordBatch]:
        """Take in one batch of some of the streams, at a time by the clock; give the matches that are decided now."""
        blocks = _take_in(self.plan, tables)
        admitted, _ = self.admission.admit(blocks, progress_of(blocks), now)
        yield from self.join(admitted, self.admission.watermark)

    def close(self) -> Iterator[pa.RecordBatch]:
        """Every stream has ended: give the matches that waited for what might still come."""
        yield from self.join([None] * len(self._routers), END)

    def waiting(self, stream: int) -> list[Block]:
        """The tuples of a stream that wait for their place to be final."""
        return self._stamper.waiting[stream] if self._stamper is not None else []

    def live(self, stream: int) -> int:
        """How many tuples of a stream are stored."""
        return sum(block.at_home for core in self.cores for block in core.segments[stream].blocks)

    def expired(self, stream: int) -> int:
        """How many tuples of a stream were admitted and are gone."""
        return sum(core.expired[stream] for core in self.cores)

    def join(self, admitted: Sequence[Block | None], watermark: int) -> Iterator[pa.RecordBatch]:
        """What admitted tuples bring, with the join's watermark where it is now."""
        horizon = Horizon(watermark, (0,) * len(self._routers))
        if self._stamper is not None:
            admitted, horizon = self._stamper.stamp(admitted, watermark)
        sent = _send(self._routers, admitted)
        given = (
            batch
            for number, core in enumerate(self.cores)
            for batch in core.step([own.get(number) for own in sent], horizon)
        )
        yield from by_rank(given) if self.plan.join.spec.in_order else given


def join_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of bounded inputs."""
    blocks = _take_in(plan, tables)
    if plan.join.stamped:
        blocks, _ = Stamper(plan.join).stamp(blocks, END)
    sent = _send([Router(plan, stream) for stream in range(len(blocks))], blocks)
    given = (
        batch
        for core in range(plan.cores)
        for batch in run_bounded(plan, [[own[core]] if core in own else [] for own in sent])
    )
    rows = by_rank(given) if plan.join.spec.in_order else given
    return pa.Table.from_batches(rows, schema=result_schema(plan, tables))


def _take_in(plan: Plan, tables: Mapping[str, pa.Table]) -> list[Block | None]:
    named = enumerate(plan.join.spec.names)
    return [split(plan.join, k, as_batch(tables[name]))[0] if name in tables else None for k, name in named]


def _send(routers: Sequence[Router], blocks: Sequence[Block | None]) -> list[dict[int, Block]]:
    pairs = zip(routers, blocks, strict=True)
    return [router.route(block) if block is not None else {} for router, block in pairs]


def result_schema(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Schema:
    """The Arrow schema of the result."""
    join = plan.join
    first = tables[join.spec.names[0]].schema.field(join.times[0]).type
    types = [
        pa.timestamp("us", first.tz)
        if f.stream is None
        else tables[join.spec.names[f.stream]].schema.field(f.column).type
        for f in join.fields
    ]
    return pa.schema(list(zip(join.output_names, types, strict=True)))
