"""Blocks in Spark's state: written once, found by their id, kept in this worker as long as someone here holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from handfast.errors import InternalError
from handfast.flow.block import Block

_known: WeakValueDictionary[str, Block] = WeakValueDictionary()


def forget() -> None:
    """Empty the cache of this process."""
    _known.clear()


class BlockStore:
    """The blocks of one key."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("blocks", "id string", "block binary")

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
        """Hold the blocks `after` instead of those `before`."""
        held = {block.id: block for block in after}
        known = set(before)
        for id_ in known - held.keys():
            self._state.removeKey((id_,))
        for id_ in held.keys() - known:
            self._state.updateValue((id_,), (held[id_].encoded,))
        _known.update(held)


def gather(rows: Iterator[pd.DataFrame], streams: int) -> tuple[list[Block | None], list[bytes]]:
    """What came for a key: one block of each stream, and the punctuations."""
    pieces: list[list[bytes]] = [[] for _ in range(streams)]
    punctuations: list[bytes] = []
    for frame in rows:
        for stream, punctuation, data in zip(frame["stream"], frame["punctuation"], frame["block"], strict=True):
            punctuations.append(bytes(punctuation))
            if data is not None:
                pieces[stream].append(bytes(data))
    # Sorted, since a task that runs again may get them in another order: all its attempts must write the same state, as
    # Spark may keep the snapshot of one and the changes that another made to its own.
    blocks = [Block.concat([Block.decode(data) for data in sorted(own)]) if own else None for own in pieces]
    return blocks, punctuations


def value_of(state: Any) -> bytes | None:
    """The bytes in a ValueState, if there are any."""
    value = state.get()
    return bytes(value[0]) if value is not None else None
