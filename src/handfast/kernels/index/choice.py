"""Which index serves each `local_join=`: a new index is entered here."""

from __future__ import annotations

from typing import Any

from handfast.kernels.index.hashed import HashIndex
from handfast.kernels.index.panes import PaneIndex
from handfast.kernels.index.protocol import Index, PairConditions
from handfast.kernels.index.sorted_blocks import SortedBlocks

# by local join, the one to be preferred first; a scan has none
INDEXES: dict[str, tuple[type[Index[Any]], ...]] = {
    "index": (HashIndex, PaneIndex),
    "merge": (SortedBlocks, HashIndex),
}


def choose(local_join: str, conditions: PairConditions) -> type[Index[Any]] | None:
    """The first index that serves the conditions; without one, every pair in the windows is tried."""
    return next((index for index in INDEXES.get(local_join, ()) if index.serves(conditions)), None)
