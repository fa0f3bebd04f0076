"""The join in this process: a door, a way to the cores, and the cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from handfast.core.join_core import JoinCore
from handfast.core.route import Router
from handfast.flow.batch import admit_times, as_batch
from handfast.flow.time import END, NEVER, Progress
from handfast.plan import Plan

_SLICE = 1 << 16  # tuples of all streams that a bounded input is fed by


class LocalJoin:
    """A join fed batch by batch, every batch one step of all its cores."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._names = plan.join.spec.names
        self._routers = [Router(plan, stream) for stream in range(len(self._names))]
        self.cores = [JoinCore(plan) for _ in range(plan.cores)]

    def push(self, tables: Mapping[str, pa.Table], reached: int = NEVER) -> Iterator[pa.RecordBatch]:
        """Take in one batch of some of the streams and give the matches.

        `reached` is a time that every stream is known to have come to, whatever the batch holds of it.
        """
        routed = [
            router.route(as_batch(tables[name])) if name in tables else None
            for name, router in zip(self._names, self._routers, strict=True)
        ]
        progress = Progress(tuple(max(r.highest, reached) if r is not None else reached for r in routed))
        for number, core in enumerate(self.cores):
            arrivals = [r.blocks.get(number) if r is not None else None for r in routed]
            yield from core.step(arrivals, progress)


def join_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of bounded inputs: fed in order of time, in slices, so that the state stays as small as the windows."""
    join = LocalJoin(plan)
    matches: list[pa.RecordBatch] = []
    for step, reached in in_order_of_time(plan, tables):
        matches.extend(join.push(step, reached))
    return pa.Table.from_batches(matches, schema=result_schema(plan, tables))


def in_order_of_time(plan: Plan, tables: Mapping[str, pa.Table]) -> Iterator[tuple[dict[str, pa.Table], int]]:
    """The rows that have a usable time, sorted by it and cut where that divides the tuples of all streams evenly.

    With each slice comes a time below which no later slice has a row.
    """
    ordered, times = {}, {}
    for name, column in zip(plan.join.spec.names, plan.join.times, strict=True):
        batch = as_batch(tables[name])
        own, refused = admit_times(batch.column(column))
        rows = np.flatnonzero(~refused)
        rows = rows[np.argsort(own[rows], kind="stable")]
        ordered[name], times[name] = pa.Table.from_batches([batch.take(pa.array(rows))]), own[rows]
    cuts = np.sort(np.concatenate(list(times.values())))[_SLICE::_SLICE]
    bounds = {name: [0, *np.searchsorted(own, cuts, side="left").tolist(), len(own)] for name, own in times.items()}
    for k, cut in enumerate([*cuts.tolist(), END]):
        yield {name: ordered[name].slice(b[k], b[k + 1] - b[k]) for name, b in bounds.items()}, cut


def result_schema(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Schema:
    """The Arrow schema of the result."""
    join = plan.join
    types = [field.type for name in join.spec.names for field in tables[name].schema]
    first = tables[join.spec.names[0]].schema.field(join.times[0]).type
    return pa.schema(list(zip(join.output_names, [*types, pa.timestamp("us", first.tz)], strict=True)))
