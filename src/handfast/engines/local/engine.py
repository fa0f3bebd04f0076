"""The join of tables in this process: they are stamped where windows count rows, then joined by the cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa

from handfast.core.bounded import run_bounded, slices
from handfast.core.join_core import JoinCore
from handfast.core.routing.router import Router, Share
from handfast.engines.local.chains import chain_words, make_chain
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.placement import pinned_threads, placement
from handfast.engines.local.planning import finder_of
from handfast.flow.admission import split
from handfast.flow.batch import as_batch
from handfast.flow.block import Block
from handfast.flow.order import by_rank
from handfast.flow.pieces import Limit
from handfast.flow.result import result_schema
from handfast.flow.stamper import Stamper
from handfast.flow.time import END
from handfast.flow.topology import ChainTopology
from handfast.flow.wide import narrowed
from handfast.plan import Plan

_PART, _PARTS = Limit(rows=1 << 11, bytes=1 << 26), 8  # the rows that `sampled` joins, and in how many steps
_ENOUGH = 1 << 20  # matches after which it ends


def described(plan: Plan) -> tuple[str, str] | None:
    """How the cores run, in words, and why; None for a single core that runs in the caller's thread."""
    if plan.cores == 1 and not plan.routing.is_handshake:
        return None
    reason = placement(plan.cores).reason
    if plan.routing.is_handshake:
        reason = f"{reason}; {chain_words(plan)}"
    return f"{plan.cores} thread{'s' * (plan.cores > 1)}", reason


def sampled(plan: Plan, tables: Mapping[str, pa.Table], options: LocalOptions) -> tuple[str, str] | None:
    """How three and more streams are joined, and why, by the match rates of their first rows; None for two."""
    finder = finder_of(plan, options)
    if finder is None:
        return None
    blocks = [[own] if own is not None else [] for own in _blocks(plan, tables)]
    core, given = JoinCore(replace(plan, cores=1), finder), 0
    try:
        for arrivals, horizon in islice(slices(plan, blocks, _PART), _PARTS):
            for batch in core.step(arrivals, horizon):
                given += batch.num_rows
                if given > _ENOUGH:
                    return finder.words()
        return finder.words()
    finally:
        finder.stop()


def _blocks(plan: Plan, tables: Mapping[str, pa.Table]) -> Sequence[Block | None]:
    """The admitted rows of each stream, stamped where windows count rows."""
    named = enumerate(plan.join.spec.names)
    blocks: Sequence[Block | None] = [split(plan.join, k, as_batch(tables[name]))[0] for k, name in named]
    return Stamper(plan.join).stamp(blocks, END)[0] if plan.join.stamped else blocks


def join_tables(plan: Plan, tables: Mapping[str, pa.Table], options: LocalOptions) -> pa.Table:
    """The matches of bounded inputs."""
    blocks = _blocks(plan, tables)
    rows = _by_handshake(plan, blocks, options) if plan.routing.is_handshake else _divided(plan, blocks, options)
    schema = result_schema(plan.join, {name: table.schema for name, table in tables.items()})
    return pa.Table.from_batches(narrowed(rows, schema), schema)


def _divided(plan: Plan, blocks: Sequence[Block | None], options: LocalOptions) -> Iterator[pa.RecordBatch]:
    """The matches of cores that each join their share from start to end, side by side."""
    routers = [Router(plan, stream, in_turn=True) for stream in range(len(blocks))]
    with pinned_threads(plan.cores) as pool:
        sent = list(pool.map(lambda router, b: router.shares(b) if b is not None else {}, routers, blocks))
        shares = [[own.get(core) for own in sent] for core in range(plan.cores)]
        found = list(pool.map(lambda own: _share_joined(plan, own, options), shares))
    given = (batch for own in found for batch in own)
    yield from by_rank(given) if plan.join.spec.in_order else given


def _share_joined(plan: Plan, shares: Sequence[Share | None], options: LocalOptions) -> list[pa.RecordBatch]:
    """The matches of one core."""
    finder = finder_of(plan, options)
    try:
        blocks = [[share.block()] if share is not None else [] for share in shares]
        return list(run_bounded(plan, blocks, finder=finder))
    finally:
        if finder is not None:
            finder.stop()


def _by_handshake(plan: Plan, blocks: Sequence[Block | None], options: LocalOptions) -> Iterator[pa.RecordBatch]:
    """The matches of a handshake chain that is fed in order."""
    cores = make_chain(plan, ChainTopology(plan.cores), options.chain_block)
    try:
        for arrivals, horizon in slices(plan, [[b] if b is not None else [] for b in blocks]):
            feed = cores.finish if horizon.time == END else cores.feed
            yield from feed(arrivals, horizon)
    finally:
        cores.stop()
