"""The stateful operator: one JoinCore for each key, its blocks in Spark's state store.

The state is a manifest, the blocks that it names, and the counters so far. A worker keeps the cores that it ran last,
as a cache: one is the right one if the manifest in Spark's state has the digest that it had then. A core that is ahead
of the state (its task failed later on) or behind it (another worker had its turn) is never taken for the right one; but
one that is behind comes up to the state with the blocks that have changed, if it can, and else is restored from all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.core.bounded import sorted_slices
from handfast.core.join_core import JoinCore
from handfast.core.manifest import Manifest
from handfast.engines.spark import blocks
from handfast.engines.spark.arrivals import Arrivals, admit, gather
from handfast.engines.spark.blocks import BlockStore
from handfast.engines.spark.checkpoint import about, check
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.deferred import VALUE_OF_CORE
from handfast.engines.spark.kept import Kept, KeptCores, Owner, owner_of
from handfast.engines.spark.output import OutputRow, as_frame, measure
from handfast.engines.spark.residents import settle
from handfast.engines.spark.rows import LATE, REJECTED, RefusedRows, count_rows, pack_rows
from handfast.flow.admission import Admission
from handfast.flow.block import HOME, Block
from handfast.flow.metrics import Metrics, StreamMetrics, latest
from handfast.flow.order import by_rank
from handfast.flow.pieces import LIMIT, Limit, gathered, together
from handfast.flow.time import END, NEVER, Horizon, LastHeard
from handfast.plan import Plan

FIRST = 0  # the core that counts the rows that came in: the punctuations tell all cores the same number

_cores = KeptCores()


def forget() -> None:
    """Empty the caches of this process."""
    _cores.clear()
    blocks.forget()


class JoinProcessor(StatefulProcessor):
    """Runs the JoinCore of each key."""

    def __init__(self, plan: Plan, limit: Limit = LIMIT) -> None:
        self._plan = plan
        self._limit = limit
        self._about = about(plan)
        self._numbers = {core_key(core): core for core in range(plan.cores)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState(*VALUE_OF_CORE)
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """What one core does with a batch."""
        for few in together(self._run(self._numbers[key[0]], rows), measure, self._limit):
            yield as_frame(few)
        settle()

    def _run(self, number: int, rows: Iterator[pd.DataFrame]) -> Iterator[OutputRow]:
        arrivals = gather(rows, len(self._plan.join.schemas), self._limit)
        owner = owner_of(self._plan.digest, number)
        before, admission, share, core = self._recall(owner)
        admitted, refused, horizon = self._admit(admission, arrivals)
        gone = list(core.expired)
        matches = 0
        given = _steps(core, admitted, horizon, self._limit)
        for batch in gathered(by_rank(given) if self._plan.join.spec.in_order else given, self._limit):
            matches += batch.num_rows
            yield OutputRow.of_matches(batch)
        expired = [after - then for after, then in zip(core.expired, gone, strict=True)]
        share = Metrics(
            {
                name: StreamMetrics(
                    rows_in=own.rows_in + (arrivals.rows(stream) if number == FIRST else 0),
                    waiting=arrivals.waiting(stream) if number == FIRST else 0,
                    live=sum(block.at_home for block in core.segments[stream].blocks),
                    expired=own.expired + expired[stream],
                    late=own.late + _count(refused, LATE, stream),
                    rejected=own.rejected + _count(refused, REJECTED, stream),
                )
                for stream, (name, own) in enumerate(share.streams.items())
            },
            share.matches + matches,
            None if horizon.time == NEVER else horizon.time,
            newest=latest([share.newest, arrivals.progress.reached(self._plan.join.spec.names)]),
        )
        yield from map(OutputRow.of_refused, refused)
        yield OutputRow.of_metrics(number, self._plan.cores, share)
        self._remember(owner, before, admission, share, core)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _admit(self, admission: Admission, arrivals: Arrivals) -> tuple[list[list[Block]], list[RefusedRows], Horizon]:
        """The tuples that join, the rows that are refused, and the lower bound of all tuples still to come."""
        if self._plan.join.stamped:  # the sequencer has admitted them
            told = (p.horizon for own in arrivals.punctuations for p in own if p.horizon is not None)
            return arrivals.blocks, arrivals.refused, reduce(Horizon.advanced, told)
        admitted, late = admit(admission, arrivals)
        horizon = Horizon(admission.watermark, (0,) * len(admitted))
        return admitted, [*arrivals.refused, *late_at_home(late)], horizon

    def _recall(self, owner: Owner) -> tuple[Manifest | None, Admission, Metrics, JoinCore]:
        """What Spark's state holds: the manifest, the admission, the counters, and the core, taken out of the cache."""
        join, state = self._plan.join, self._state.get()
        if state is None:
            return None, Admission(join), Metrics.start(join.spec.names), JoinCore(self._plan)
        manifest = Manifest.decode(bytes(state[0]))
        check(manifest.fingerprint, state[3], self._plan)
        manifest = replace(manifest, fingerprint=self._plan.fingerprint)
        admission = Admission(join, manifest.progress, LastHeard.decode(json.loads(state[1])))
        kept = _cores.take(owner)
        if kept is not None and (kept.digest == manifest.digest or kept.core.follow(manifest, self._blocks.load)):
            core = kept.core
        else:
            core = JoinCore.restore(self._plan, manifest, self._blocks.load)
        return manifest, admission, Metrics.decode(json.loads(state[2])), core

    def _remember(
        self, owner: Owner, before: Manifest | None, admission: Admission, share: Metrics, core: JoinCore
    ) -> None:
        """Write what has changed to the state, and keep the core for the next batch."""
        after = core.manifest(admission.progress)
        self._blocks.replace(before.ids if before is not None else (), core.blocks())
        last_heard, counted = json.dumps(LastHeard.encode(admission.last_heard)), json.dumps(share.encode())
        self._state.update((after.encode(), last_heard, counted, self._about))
        _cores.keep(owner, Kept(after.digest, core))


def _steps(
    core: JoinCore, admitted: Sequence[Sequence[Block]], horizon: Horizon, limit: Limit
) -> Iterator[pa.RecordBatch]:
    """What a core gives for a batch in pieces: a step for each, in order; only the last one reaches the horizon."""
    if all(len(own) <= 1 for own in admitted):
        yield from core.step([own[0] if own else None for own in admitted], horizon)
        return
    for arrivals, until in sorted_slices(admitted, limit):
        yield from core.step(arrivals, horizon if until == END else Horizon.start(len(admitted)))


def late_at_home(late: Sequence[Sequence[Block]]) -> list[RefusedRows]:
    """The late rows whose home is this core: every row has one home, so each is given once."""
    found: list[RefusedRows] = []
    for stream, own in enumerate(late):
        for block in own:
            home = block.take((block.flags & HOME) != 0)
            if len(home):
                found.append(RefusedRows(LATE, stream, pack_rows(home.batch)))
    return found


def _count(refused: Sequence[RefusedRows], kind: str, stream: int) -> int:
    return sum(count_rows(own.rows) for own in refused if (own.kind, own.stream) == (kind, stream))
