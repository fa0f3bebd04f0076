"""The join of tables in this process: they are stamped where windows count rows, then joined by the cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from handfast.core.bounded import run_bounded, slices
from handfast.core.routing.router import Router
from handfast.engines.local.chain_driver import ChainDriver
from handfast.engines.local.placement import pinned_threads, placement
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.order import by_rank
from handfast.flow.result import result_schema
from handfast.flow.stamper import Stamper
from handfast.flow.time import END
from handfast.flow.topology import ChainTopology
from handfast.flow.wide import narrowed
from handfast.plan import Plan


def described(plan: Plan) -> tuple[str, str] | None:
    """How the cores run, in words, and why; None for a single core that runs in the caller's thread."""
    if plan.cores == 1 and not plan.routing.is_handshake:
        return None
    return f"{plan.cores} thread{'s' * (plan.cores > 1)}", placement(plan.cores).reason


def join_tables(plan: Plan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of bounded inputs."""
    named = enumerate(plan.join.spec.names)
    blocks: Sequence[Block | None] = [split(plan.join, k, as_batch(tables[name]))[0] for k, name in named]
    if plan.join.stamped:
        blocks, _ = Stamper(plan.join).stamp(blocks, END)
    rows = _by_handshake(plan, blocks) if plan.routing.is_handshake else _divided(plan, blocks)
    schema = result_schema(plan.join, {name: table.schema for name, table in tables.items()})
    return pa.Table.from_batches(narrowed(rows, schema), schema)


def _divided(plan: Plan, blocks: Sequence[Block | None]) -> Iterator[pa.RecordBatch]:
    """The matches of cores that each join their share from start to end, side by side."""
    routers = [Router(plan, stream, in_turn=True) for stream in range(len(blocks))]
    sent = [router.route(b) if b is not None else {} for router, b in zip(routers, blocks, strict=True)]
    shares = [[[own[core]] if core in own else [] for own in sent] for core in range(plan.cores)]
    with pinned_threads(plan.cores) as pool:
        found = list(pool.map(lambda share: list(run_bounded(plan, share)), shares))
    given = (batch for own in found for batch in own)
    yield from by_rank(given) if plan.join.spec.in_order else given


def _by_handshake(plan: Plan, blocks: Sequence[Block | None]) -> Iterator[pa.RecordBatch]:
    """The matches of a handshake chain that is fed in order."""
    cores = ChainDriver(plan, ChainTopology(plan.cores))
    try:
        for arrivals, horizon in slices(plan, [[b] if b is not None else [] for b in blocks]):
            feed = cores.finish if horizon.time == END else cores.feed
            yield from feed(arrivals, horizon)
    finally:
        cores.stop()
