"""The join in this process: a door, a way to the cores, and the cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from handfast.core.bounded import run_bounded
from handfast.core.join_core import JoinCore
from handfast.core.route import Router
from handfast.flow.batch import as_batch
from handfast.flow.time import NEVER, Progress
from handfast.plan import Plan


class LocalJoin:
    """A join fed batch by batch, every batch one step of all its cores."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._names = plan.join.spec.names
        self._routers = [Router(plan, stream) for stream in range(len(self._names))]
        self.cores = [JoinCore(plan) for _ in range(plan.cores)]

    def push(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.RecordBatch]:
        """Take in one batch of some of the streams and give the matches."""
        routed = [
            router.route(as_batch(tables[name])) if name in tables else None
            for name, router in zip(self._names, self._routers, strict=True)
        ]
        progress = Progress(tuple(r.highest if r is not None else NEVER for r in routed))
        for number, core in enumerate(self.cores):
            arrivals = [r.blocks.get(number) if r is not None else None for r in routed]
            yield from core.step(arrivals, progress)


def join_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of bounded inputs."""
    routed = [Router(plan, stream).route(as_batch(tables[name])) for stream, name in enumerate(plan.join.spec.names)]
    matches: list[pa.RecordBatch] = []
    for core in range(plan.cores):
        matches.extend(run_bounded(plan, [[r.blocks[core]] if core in r.blocks else [] for r in routed]))
    return pa.Table.from_batches(matches, schema=result_schema(plan, tables))


def result_schema(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Schema:
    """The Arrow schema of the result."""
    join = plan.join
    types = [field.type for name in join.spec.names for field in tables[name].schema]
    first = tables[join.spec.names[0]].schema.field(join.times[0]).type
    return pa.schema(list(zip(join.output_names, [*types, pa.timestamp("us", first.tz)], strict=True)))
