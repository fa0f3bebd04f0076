"""A core's share of one stream's window: blocks, their columns as kernels read them, and the indexes over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.flow.block import EVERYWHERE, Block, Seen
from handfast.flow.gather import gather, goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.course import Courses, Positions
from handfast.kernels.growing import Growing, GrowingStamps
from handfast.kernels.index.protocol import Index, Keys
from handfast.plan import Pair

Marks = NDArray[np.bool_]

_FAN = 8  # so many neighbouring blocks of one size become one
_SMALLEST = 256  # tuples of a block of the lowest size
_LARGEST = 1 << 26  # bytes of a merged block
_SPARE = 4096  # expired tuples that may always linger


class Segment:
    """The stored tuples of one stream at one core, in order of arrival; a position is a place in that order.

    `marks` says, block by block, which tuples are settled: they have matched, or have been given as unmatched.
    `indexes` are over its tuples, one for each pair of streams that has an index.
    """

    def __init__(self, indexes: Mapping[Pair, Index[Any]]) -> None:
        self.indexes = indexes
        self.blocks: list[Block] = []
        self.marks: list[Marks] = []
        self._starts: list[int] = []  # of each block, its first tuple's position
        self._columns: list[Growing] = []
        self._statuses: list[Growing | None] = []
        self._times = GrowingStamps()
        self._seen: list[GrowingStamps] = []
        self._flags = Growing(np.dtype(np.uint8))
        self._live = 0
        self.everywhere = False  # whether some of these tuples went to every core
        self._torn = False  # a merged block's tuples do not stand side by side

    @property
    def live(self) -> int:
        """How many tuples the blocks hold."""
        return self._live

    @property
    def is_worn(self) -> bool:
        """Whether it is time to build the segment anew: too many expired tuples linger, or merging tore it."""
        return self._torn or len(self._times) - self._live > self._live + _SPARE

    @property
    def flags(self) -> NDArray[np.uint8]:
        return self._flags.values  # type: ignore[return-value]

    @property
    def times(self) -> NDArray[np.int64]:
        return self._times.values

    @property
    def seen(self) -> Seen:
        return tuple(known.values for known in self._seen)

    @property
    def first(self) -> int:
        """The position of the oldest tuple that still counts."""
        return self._starts[0] if self._starts else len(self._times)

    def keys(self, columns: Columns) -> dict[Pair, Keys]:
        """What its indexes make of tuples of this stream."""
        return {pair: index.keys(columns) for pair, index in self.indexes.items()}

    def insert(self, block: Block, columns: Columns, keys: Mapping[Pair, Keys], marks: Marks) -> None:
        """Store a block behind the others."""
        if not len(block):
            return
        start = len(self._times)
        if not start:
            self._columns = [Growing(value.dtype) for value in columns.values]
            self._statuses = [None for _ in columns.values]
            self._seen = [GrowingStamps() for _ in block.seen]
        for k, (value, status) in enumerate(zip(columns.values, columns.statuses, strict=True)):
            self._columns[k].append(value)
            known = self._statuses[k]
            if status is not None and known is None:
                known = self._statuses[k] = Growing(np.dtype(np.uint8))
                known.append(np.zeros(start, np.uint8))
            if known is not None:
                known.append(status if status is not None else np.zeros(len(block), np.uint8))
        self._times.append(block.times)
        for stamps, seen in zip(self._seen, block.seen, strict=True):
            stamps.append(seen)
        self._flags.append(block.flags)
        self.everywhere = self.everywhere or bool((block.flags & EVERYWHERE).any())
        for pair, index in self.indexes.items():
            index.insert(keys[pair])
        self.blocks.append(block)
        self.marks.append(marks)
        self._starts.append(start)
        self._live += len(block)

    @property
    def widest_row(self) -> int:
        """What a stored tuple takes at the most."""
        return max((block.widest_row for block in self.blocks), default=0)

    def columns(self) -> Columns:
        """The columns of every position so far."""
        statuses = [status.values if status is not None else None for status in self._statuses]
        courses = Courses(self._times.course, tuple(known.course for known in self._seen))
        values = [column.values for column in self._columns]
        return Columns(values, statuses, self.times, self.seen, courses=courses)  # type: ignore[arg-type]

    def expire(self, is_over: Callable[[Block], bool]) -> list[Block]:
        """Free the blocks all of whose tuples have left the window, and give them back."""
        over = [is_over(block) for block in self.blocks]
        kept = [k for k, gone in enumerate(over) if not gone]
        freed = [block for block, gone in zip(self.blocks, over, strict=True) if gone]
        self.blocks = [self.blocks[k] for k in kept]
        self.marks = [self.marks[k] for k in kept]
        self._starts = [self._starts[k] for k in kept]
        self._live = sum(map(len, self.blocks))
        for index in self.indexes.values():
            index.expire(self.first)
        return freed

    def remove(self, block: Block) -> None:
        """Let one block go: the oldest, or one near it."""
        k = next((k for k, held in enumerate(self.blocks) if held is block), None)
        assert k is not None, "only what is stored can be removed"
        del self.blocks[k], self.marks[k], self._starts[k]
        self._live -= len(block)
        for index in self.indexes.values():
            index.expire(self.first)

    def merge(self, fits: Callable[[Sequence[Block]], bool]) -> None:
        """Merge runs of small neighbouring blocks, where the merged one `fits`: it spans only a part of the window.

        The blocks alone decide, so a core restored from them merges as this one does and comes to the same state.
        """
        end = len(self.blocks)
        while end >= _FAN:
            run = self.blocks[end - _FAN : end]
            start = self._starts[end - _FAN]
            alike = len({_size(block) for block in run}) == 1
            if not (alike and fits(run) and sum(block.size for block in run) <= _LARGEST):
                return
            self._torn |= self._starts[end - 1] + len(run[-1]) - start != sum(map(len, run))
            self.blocks[end - _FAN : end] = [Block.concat(run)]
            self.marks[end - _FAN : end] = [np.concatenate(self.marks[end - _FAN : end])]
            self._starts[end - _FAN : end] = [start]
            end = len(self.blocks)

    def take(self, positions: Positions, places: list[int]) -> pa.RecordBatch:
        """The stored tuples at these positions: the columns with these places."""
        owners = self._owners(positions)
        starts = np.array(self._starts)
        return gather([block.batch.select(places) for block in self.blocks], owners, positions - starts[owners])

    def grouped(self, positions: Positions) -> Positions | None:
        """An order of these positions in which those of a block stand together; None if they already do."""
        owners = self._owners(positions)
        return None if goes_up(owners) else np.argsort(owners, kind="stable")

    def settle(self, positions: Positions) -> Positions:
        """Mark these tuples as settled; give back those that were not settled before, each once."""
        positions = np.unique(positions)
        owners = self._owners(positions)
        fresh = np.zeros(len(positions), np.bool_)
        for k in np.unique(owners):
            own = owners == k
            places = positions[own] - self._starts[k]
            fresh[own] = ~self.marks[k][places]
            self.marks[k][places] = True
        return positions[fresh]

    def _owners(self, positions: Positions) -> NDArray[np.int64]:
        """The number of each position's block."""
        if len(self._starts) < 2:
            return np.zeros(len(positions), np.int64)
        return np.searchsorted(np.array(self._starts), positions, side="right") - 1


def _size(block: Block) -> int:
    """The block's size on a scale of powers of the fan."""
    size, limit = 0, _SMALLEST
    while len(block) > limit:
        size, limit = size + 1, limit * _FAN
    return size
