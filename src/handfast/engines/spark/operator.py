"""The stateful operator: one JoinCore for each key, its blocks in Spark's state store.

The state is a manifest and the blocks it names, and what was counted so far. A worker keeps the cores it ran last; they
are only a cache: each is found by the digest of the manifest that Spark's state holds, so a core that has run ahead
of it (a task that failed later on) or behind it (another worker had its turn) is never taken for the right one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.core.bounded import sorted_slices
from handfast.core.join_core import JoinCore
from handfast.core.manifest import Manifest
from handfast.engines.spark import blocks
from handfast.engines.spark.arrivals import Arrivals, Refused, admit, gather
from handfast.engines.spark.blocks import BlockStore
from handfast.engines.spark.checkpoint import about, check
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.output import (
    COLUMNS,
    LATE,
    MATCHES,
    METRICS,
    REJECTED,
    Output,
    as_share,
    count_rows,
    pack_rows,
)
from handfast.flow.admission import Admission
from handfast.flow.block import HOME, Block
from handfast.flow.metrics import Metrics, StreamMetrics, latest
from handfast.flow.order import by_rank
from handfast.flow.pieces import LIMIT, Limit, gathered, together
from handfast.flow.time import END, NEVER, Attention, Horizon
from handfast.plan import Plan

FIRST = 0  # the core that counts what came to the door: the punctuations tell it to all of them
_KEPT = 2  # cores that a worker remembers

_cores: OrderedDict[str, JoinCore] = OrderedDict()  # by the digest of their manifest


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
        self._state = handle.getValueState("core", "manifest binary, attention string, metrics string, about string")
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """What one core does with a batch."""
        for few in together(self._run(self._numbers[key[0]], rows), _measure, self._limit):
            yield _frame(few)

    def _run(self, number: int, rows: Iterator[pd.DataFrame]) -> Iterator[Output]:
        arrivals = gather(rows, len(self._plan.join.schemas), self._limit)
        before, admission, share, core = self._recall()
        admitted, refused, horizon = self._admit(admission, arrivals)
        gone = list(core.expired)
        matches = 0
        given = _steps(core, admitted, horizon, self._limit)
        for batch in gathered(by_rank(given) if self._plan.join.spec.in_order else given, self._limit):
            matches += batch.num_rows
            yield MATCHES, None, pack_rows(batch), None
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
        for kind, stream, data in refused:
            yield kind, stream, data, None
        yield METRICS, None, None, as_share(number, self._plan.cores, share)
        self._remember(before, admission, share, core)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _admit(self, admission: Admission, arrivals: Arrivals) -> tuple[list[list[Block]], list[Refused], Horizon]:
        """The tuples that join, the rows that are refused, and what no tuple still to come can fall below."""
        if self._plan.join.stamped:  # the sequencer was the door
            told = (p.horizon for own in arrivals.punctuations for p in own if p.horizon is not None)
            return arrivals.blocks, arrivals.refused, reduce(Horizon.advanced, told)
        admitted, late = admit(admission, arrivals)
        horizon = Horizon(admission.watermark, (0,) * len(admitted))
        return admitted, [*arrivals.refused, *late_at_home(late)], horizon

    def _recall(self) -> tuple[Manifest | None, Admission, Metrics, JoinCore]:
        """The core in the state that Spark holds, out of the cache while it runs, its door, and what it has counted."""
        join, state = self._plan.join, self._state.get()
        if state is None:
            return None, Admission(join), Metrics.start(join.spec.names), JoinCore(self._plan)
        manifest = Manifest.decode(bytes(state[0]))
        check(manifest.fingerprint, state[3], self._plan)
        manifest = replace(manifest, fingerprint=self._plan.fingerprint)
        admission = Admission(join, manifest.progress, Attention.decode(json.loads(state[1])))
        core = _cores.pop(manifest.digest, None)
        if core is None:
            core = JoinCore.restore(self._plan, manifest, self._blocks.load)
        return manifest, admission, Metrics.decode(json.loads(state[2])), core

    def _remember(self, before: Manifest | None, admission: Admission, share: Metrics, core: JoinCore) -> None:
        """Write what has changed to the state, and keep the core for the next batch."""
        after = core.manifest(admission.progress)
        self._blocks.replace(before.ids if before is not None else (), core.blocks())
        attention, counted = json.dumps(Attention.encode(admission.attention)), json.dumps(share.encode())
        self._state.update((after.encode(), attention, counted, self._about))
        _cores[after.digest] = core
        while len(_cores) > _KEPT:
            _cores.popitem(last=False)


def _steps(
    core: JoinCore, admitted: Sequence[Sequence[Block]], horizon: Horizon, limit: Limit
) -> Iterator[pa.RecordBatch]:
    """What a core gives for a batch in pieces: in order, step by step, and only the last one reaches the horizon."""
    if all(len(own) <= 1 for own in admitted):
        yield from core.step([own[0] if own else None for own in admitted], horizon)
        return
    for arrivals, until in sorted_slices(admitted, limit):
        yield from core.step(arrivals, horizon if until == END else Horizon.start(len(admitted)))


def late_at_home(late: Sequence[Sequence[Block]]) -> list[Refused]:
    """The late rows whose home is here: every one of them has just one."""
    found: list[Refused] = []
    for stream, own in enumerate(late):
        for block in own:
            home = block.take((block.flags & HOME) != 0)
            if len(home):
                found.append((LATE, stream, pack_rows(home.batch)))
    return found


def _count(refused: Sequence[Refused], kind: str, stream: int) -> int:
    return sum(count_rows(rows) for what, of, rows in refused if (what, of) == (kind, stream))


def _measure(row: Output) -> tuple[int, int]:
    return 1, len(row[2] or b"")


def _frame(rows: Sequence[Output]) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(COLUMNS, (np.array(c, object) for c in zip(*rows, strict=True)), strict=True)))
