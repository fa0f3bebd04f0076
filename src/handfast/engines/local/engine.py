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
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, Horizon
from handfast.plan import Plan


class LocalJoin:
    """A join fed batch by batch, every batch one step of all its cores."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.admission = Admission(plan.join)
        self._stamper = Stamper(plan.join) if plan.join.counted else None
        self._routers = [Router(plan, stream) for stream in range(len(plan.join.schemas))]
        self.cores = [JoinCore(plan) for _ in range(plan.cores)]
        self._unsent = [0] * len(self._routers)  # tuples that can never match, and so went nowhere

    def push(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        """Take in one batch of some of the streams and give the matches that are decided now."""
        blocks = _take_in(self.plan, tables)
        admitted, _ = self.admission.admit(blocks, progress_of(blocks))
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
        return self._unsent[stream] + sum(core.expired[stream] for core in self.cores)

    def join(self, admitted: Sequence[Block | None], watermark: int) -> Iterator[pa.RecordBatch]:
        """The matches that admitted tuples bring, with the join's watermark where it is now."""
        horizon = Horizon(watermark, (0,) * len(self._routers))
        if self._stamper is not None:
            admitted, horizon = self._stamper.stamp(admitted, watermark)
        sent = _send(self._routers, admitted)
        for stream, (block, own) in enumerate(zip(admitted, sent, strict=True)):
            if block is not None:
                self._unsent[stream] += len(block) - sum(part.at_home for part in own.values())
        for number, core in enumerate(self.cores):
            yield from core.step([own.get(number) for own in sent], horizon)


def join_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of bounded inputs."""
    blocks = _take_in(plan, tables)
    if plan.join.counted:
        blocks, _ = Stamper(plan.join).stamp(blocks, END)
    sent = _send([Router(plan, stream) for stream in range(len(blocks))], blocks)
    matches: list[pa.RecordBatch] = []
    for core in range(plan.cores):
        matches.extend(run_bounded(plan, [[own[core]] if core in own else [] for own in sent]))
    return pa.Table.from_batches(matches, schema=result_schema(plan, tables))


def _take_in(plan: Plan, tables: Mapping[str, pa.Table]) -> list[Block | None]:
    named = enumerate(plan.join.spec.names)
    return [split(plan.join, k, as_batch(tables[name]))[0] if name in tables else None for k, name in named]


def _send(routers: Sequence[Router], blocks: Sequence[Block | None]) -> list[dict[int, Block]]:
    pairs = zip(routers, blocks, strict=True)
    return [router.route(block) if block is not None else {} for router, block in pairs]


def result_schema(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Schema:
    """The Arrow schema of the result."""
    join = plan.join
    types = [field.type for name in join.spec.names for field in tables[name].schema]
    first = tables[join.spec.names[0]].schema.field(join.times[0]).type
    return pa.schema(list(zip(join.output_names, [*types, pa.timestamp("us", first.tz)], strict=True)))
