"""The stateful operator: one JoinCore for each key, its blocks in Spark's state store.

The state is a manifest and the blocks it names. A worker keeps the cores it ran last; they are only a cache: each is
found by the digest of the manifest that Spark's state holds, so a core that has run ahead of it (a task that failed
later on) or behind it (another worker had its turn) is never taken for the right one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.core.join_core import JoinCore, Manifest
from handfast.engines.spark import blocks
from handfast.engines.spark.blocks import BlockStore, gather, value_of
from handfast.engines.spark.matches import pack_matches
from handfast.flow.admission import Admission
from handfast.flow.block import Block
from handfast.flow.order import by_rank
from handfast.flow.time import Horizon, Progress
from handfast.plan import Plan

_KEPT = 2  # cores that a worker remembers

_cores: OrderedDict[str, JoinCore] = OrderedDict()  # by the digest of their manifest


def forget() -> None:
    """Empty the caches of this process."""
    _cores.clear()
    blocks.forget()


class JoinProcessor(StatefulProcessor):
    """Runs the JoinCore of each key."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._manifest = handle.getValueState("manifest", "manifest binary")
        self._blocks = BlockStore(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One step of one core."""
        arrivals, punctuations = gather(rows, len(self._plan.join.schemas))
        before, core = self._recall()
        admission = Admission(self._plan.join, before.progress if before is not None else None)
        admitted, horizon = self._admit(admission, arrivals, punctuations)
        given = core.step(admitted, horizon)
        for matches in pack_matches(by_rank(given) if self._plan.join.spec.in_order else given):
            yield pd.DataFrame({"matches": [matches]})
        self._remember(before, core, core.manifest(admission.progress))

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _admit(
        self, admission: Admission, arrivals: list[Block | None], punctuations: Sequence[bytes]
    ) -> tuple[list[Block | None], Horizon]:
        """The tuples that join, and what none still to come can fall below."""
        if self._plan.join.stamped:  # the sequencer was the door
            return arrivals, reduce(Horizon.advanced, map(Horizon.decode, punctuations))
        admitted = admission.admit(arrivals, reduce(Progress.advanced, map(Progress.decode, punctuations)))
        return admitted, Horizon(admission.watermark, (0,) * len(arrivals))

    def _recall(self) -> tuple[Manifest | None, JoinCore]:
        """The core in the state that Spark holds, out of the cache while it runs."""
        state = value_of(self._manifest)
        if state is None:
            return None, JoinCore(self._plan)
        manifest = Manifest.decode(state)
        # a core of another join is not ours, though it is in just this state: restoring says so
        core = _cores.pop(manifest.digest, None) if manifest.fingerprint == self._plan.fingerprint else None
        return manifest, core if core is not None else JoinCore.restore(self._plan, manifest, self._blocks.load)

    def _remember(self, before: Manifest | None, core: JoinCore, after: Manifest) -> None:
        """Write what has changed to the state, and keep the core for the next batch."""
        self._blocks.replace((id_ for ids in before.blocks for id_ in ids) if before is not None else (), core.blocks())
        self._manifest.update((after.encode(),))
        _cores[after.digest] = core
        while len(_cores) > _KEPT:
            _cores.popitem(last=False)
