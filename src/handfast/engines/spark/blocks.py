"""Blocks in Spark's state: written once, found by their id; a worker keeps those that it uses decoded."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from handfast.engines.spark.deferred import BLOCKS
from handfast.errors import InternalError
from handfast.flow.block import Block

_known: WeakValueDictionary[str, Block] = WeakValueDictionary()


def forget() -> None:
    """Empty the cache of this process."""
    _known.clear()


class BlockStore:
    """The blocks in the state of one core, or of the sequencer."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState(*BLOCKS)

    def load(self, id_: str) -> Block:
        """A block by its id."""
        block = _known.get(id_)
        if block is None:
            state = self._state.getValue((id_,))
            if state is None:
                raise InternalError(f"The state has lost block {id_} that its manifest names")
            block = _known[id_] = Block.decode(bytes(state[0]))
        return block

    def replace(self, before: Iterable[str], after: Iterable[Block]) -> None:
        """Write the blocks of `after` that are new, and remove those of `before` that are gone."""
        held = {block.id: block for block in after}
        known = set(before)
        for id_ in known - held.keys():
            self._state.removeKey((id_,))
        for id_ in held.keys() - known:
            self._state.updateValue((id_,), (held[id_].encoded,))
        _known.update(held)
