"""The stateful operator: one JoinCore for each key, its blocks in Spark's state store.

The state is a manifest and the blocks it names. A worker keeps the cores it ran last; they are only a cache: each is
found by the digest of the manifest that Spark's state holds, so a core that has run ahead of it (a task that failed
later on) or behind it (another worker had its turn) is never taken for the right one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from handfast.flow.block import Block
from handfast.core.join_core import JoinCore, Manifest
from handfast.engines.spark.matches import pack_matches
from handfast.errors import InternalError
from handfast.flow.time import NEVER, Progress
from handfast.plan import Plan

_KEPT = 2  # cores that a worker remembers

_cores: OrderedDict[str, JoinCore] = OrderedDict()  # by the digest of their manifest
_blocks: WeakValueDictionary[str, Block] = WeakValueDictionary()  # those that the remembered cores hold


def forget() -> None:
    """Empty the caches of this process."""
    _cores.clear()
    _blocks.clear()


class JoinProcessor(StatefulProcessor):
    """Runs the JoinCore of each key."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._manifest = handle.getValueState("manifest", "manifest binary")
        self._state = handle.getMapState("blocks", "id string", "block binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One step of one core."""
        arrivals, progress = gather(rows, len(self._plan.join.schemas))
        before, core = self._recall()
        for matches in pack_matches(core.step(arrivals, progress)):
            yield pd.DataFrame({"matches": [matches]})
        self._remember(before, core)

    def close(self) -> None:
        """Nothing to close: the state store is Spark's."""

    def _recall(self) -> tuple[Manifest | None, JoinCore]:
        """The core in the state that Spark holds, out of the cache while it runs."""
        state = self._manifest.get()
        if state is None:
            return None, JoinCore(self._plan)
        manifest = Manifest.decode(bytes(state[0]))
        # a core of another join is not ours, though it is in just this state: restoring says so
        core = _cores.pop(manifest.digest, None) if manifest.fingerprint == self._plan.fingerprint else None
        return manifest, core if core is not None else JoinCore.restore(self._plan, manifest, self._load)

    def _load(self, id_: str) -> Block:
        block = _blocks.get(id_)
        if block is None:
            state = self._state.getValue((id_,))
            if state is None:
                raise InternalError(f"The state has lost block {id_} that its manifest names")
            block = _blocks[id_] = Block.decode(bytes(state[0]))
        return block

    def _remember(self, before: Manifest | None, core: JoinCore) -> None:
        """Write what has changed to the state, and keep the core for the next batch."""
        after = core.manifest()
        held = {block.id: block for segment in core.segments for block in segment.blocks}
        known = {id_ for ids in before.blocks for id_ in ids} if before is not None else set()
        for id_ in known - held.keys():
            self._state.removeKey((id_,))
        for id_ in held.keys() - known:
            self._state.updateValue((id_,), (held[id_].encoded,))
        self._manifest.update((after.encode(),))
        _blocks.update(held)
        _cores[after.digest] = core
        while len(_cores) > _KEPT:
            _cores.popitem(last=False)


def gather(rows: Iterator[pd.DataFrame], streams: int) -> tuple[list[Block | None], Progress]:
    """The blocks that came for a core, one of each stream, and how far the streams have come."""
    pieces: list[list[bytes]] = [[] for _ in range(streams)]
    highest = [NEVER] * streams
    for frame in rows:
        for stream, high, data in zip(frame["stream"], frame["highest"], frame["block"], strict=True):
            highest[stream] = max(highest[stream], int(high))
            if data is not None:
                pieces[stream].append(bytes(data))
    # Sorted, since a task that runs again may get them in another order: all its attempts must write the same state, as
    # Spark may keep the snapshot of one and the changes that another made to its own.
    blocks = [Block.concat([Block.decode(data) for data in sorted(own)]) if own else None for own in pieces]
    return blocks, Progress(tuple(highest))
