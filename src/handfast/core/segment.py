"""A core's share of one stream's window: blocks, their columns as kernels read them, and the indexes over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.flow.block import EVERYWHERE, HOME, Block, Seen
from handfast.flow.gather import gather, goes_up
from handfast.flow.same import joined, same
from handfast.kernels.columns import Columns
from handfast.kernels.course import Positions
from handfast.kernels.growing import Growing, GrowingColumns
from handfast.kernels.index.protocol import Index, Keys
from handfast.kernels.taking import Blocks
from handfast.plan import Pair

Marks = NDArray[np.bool_]

_FAN = 8  # so many neighbouring blocks of one size become one
_SMALLEST = 256  # tuples of a block of the lowest size
_LARGEST = 1 << 26  # bytes of a merged block
_SPARE = 4096  # expired tuples that may linger


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
        self._columns = GrowingColumns()
        self._flags: Growing | None = None  # as long as all tuples are at home and nowhere else, nothing tells so
        self._live = 0
        self.at_home = 0  # how many of them have their home at this core
        self.everywhere = False  # whether some of these tuples went to every core
        self._known: Blocks | None = None
        self._torn = False  # a merged block's tuples do not stand side by side

    @property
    def live(self) -> int:
        """How many tuples the blocks hold."""
        return self._live

    @property
    def is_worn(self) -> bool:
        """Whether it is time to build the segment anew: too many expired tuples linger, or merging tore it."""
        return self._torn or len(self._columns) - self._live > self._live + _SPARE

    @property
    def is_torn(self) -> bool:
        """Whether merging tore it: positions do not tell any more where its tuples are in their blocks."""
        return self._torn

    @property
    def has_gaps(self) -> bool:
        """Whether expired tuples linger behind the first one that counts: their windows alone leave them out."""
        return self.stop - self.first > self._live

    @property
    def flags(self) -> NDArray[np.uint8]:
        if self._flags is None:
            return same(np.uint8(HOME), len(self._columns))
        return self._flags.values  # type: ignore[return-value]

    @property
    def times(self) -> NDArray[np.int64]:
        return self._columns.times

    @property
    def seen(self) -> Seen:
        return self._columns.seen

    @property
    def first(self) -> int:
        """The position of the oldest tuple that still counts."""
        return self._starts[0] if self._starts else len(self._columns)

    @property
    def stop(self) -> int:
        """The position behind the youngest tuple."""
        return len(self._columns)

    def keys(self, columns: Columns) -> dict[Pair, Keys]:
        """What its indexes make of tuples of this stream."""
        return {pair: index.keys(columns) for pair, index in self.indexes.items()}

    def reserve(self, count: int) -> None:
        """Make room for so many tuples."""
        for index in self.indexes.values():
            index.reserve(count)

    def insert(self, block: Block, columns: Columns, keys: Mapping[Pair, Keys], marks: Marks) -> None:
        """Store a block behind the others."""
        if not len(block):
            return
        start = len(self._columns)
        self._starts.append(start)
        self._columns.append(columns)
        if self._flags is None and np.count_nonzero(block.flags != HOME):
            self._flags = Growing(np.dtype(np.uint8))
            self._flags.append(np.full(start, HOME, np.uint8))
        if self._flags is not None:
            self._flags.append(block.flags)
            self.everywhere = self.everywhere or bool(np.count_nonzero(block.flags & EVERYWHERE))
        for pair, index in self.indexes.items():
            index.insert(keys[pair])
        self.blocks.append(block)
        self.marks.append(marks)
        self._known = None
        self._live += len(block)
        self.at_home += block.at_home

    @property
    def widest_row(self) -> int:
        """What a stored tuple takes at the most."""
        return max((block.widest_row for block in self.blocks), default=0)

    def columns(self) -> Columns:
        """The columns of every position so far."""
        return self._columns.all()

    def expire(self, is_over: Callable[[Block], bool]) -> list[Block]:
        """Free the blocks all of whose tuples have left the window, and give them back."""
        over = list(map(is_over, self.blocks))
        return self._free(over) if True in over else []

    def free_first(self, count: int) -> None:
        """Free so many of the first blocks."""
        self._free([k < count for k in range(len(self.blocks))])

    def _free(self, over: Sequence[bool]) -> list[Block]:
        self._known = None
        kept = [k for k, gone in enumerate(over) if not gone]
        freed = [block for block, gone in zip(self.blocks, over, strict=True) if gone]
        self.blocks = [self.blocks[k] for k in kept]
        self.marks = [self.marks[k] for k in kept]
        self._starts = [self._starts[k] for k in kept]
        self._live -= sum(map(len, freed))
        self.at_home -= sum(block.at_home for block in freed)
        for index in self.indexes.values():
            index.expire(self.first)
        return freed

    def drop(self) -> None:
        """Forget the expired tuples at the start, if they are many: the positions of all others become lower."""
        count = self.first
        if count <= _SPARE:
            return
        self._columns.drop(count)
        if self._flags is not None:
            self._flags.drop(count)
        self._starts = [start - count for start in self._starts]
        self._known = None
        for index in self.indexes.values():
            index.drop(count)

    def remove(self, block: Block) -> None:
        """Let one block go: the oldest, or one near it."""
        k = next((k for k, held in enumerate(self.blocks) if held is block), None)
        assert k is not None, "only what is stored can be removed"
        del self.blocks[k], self.marks[k], self._starts[k]
        self._known = None
        self._live -= len(block)
        self.at_home -= block.at_home
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
            size = _size(run[-1])
            alike = all(_size(block) == size for block in run)
            if not (alike and fits(run) and sum(block.size for block in run) <= _LARGEST):
                return
            self._torn |= self._starts[end - 1] + len(run[-1]) - start != sum(map(len, run))
            self.blocks[end - _FAN : end] = [Block.concat(run)]
            self.marks[end - _FAN : end] = [joined(self.marks[end - _FAN : end])]
            self._starts[end - _FAN : end] = [start]
            self._known = None
            end = len(self.blocks)

    def take(self, positions: Positions, places: list[int]) -> list[pa.Array]:
        """The stored tuples at these positions: the columns with these places."""
        together = self._together
        quick = [place for place in places if together.takes(place)]
        others = [place for place in places if place not in quick]
        positions = np.ascontiguousarray(positions)
        owners = together.owners(positions) if quick else None
        columns = {place: together.take(place, owners, positions) for place in quick}
        if others:
            numbers, starts = self._owners(positions), np.array(self._starts)
            batches = [block.batch.select(others) for block in self.blocks]
            columns |= zip(others, gather(batches, numbers, positions - starts[numbers]).columns, strict=True)
        return [columns[place] for place in places]

    def grouped(self, positions: Positions, places: list[int]) -> Positions | None:
        """An order in which positions are taken fast, with the columns with these places; None if any is as good."""
        if all(map(self._together.takes, places)):
            return None
        owners = self._owners(positions)
        return None if goes_up(owners) else np.argsort(owners, kind="stable")

    @property
    def _together(self) -> Blocks:
        """The blocks as values are taken from them: known as long as the blocks are the same."""
        if self._known is None:
            self._known = Blocks(tuple(self.blocks), np.array(self._starts, np.int64))
        return self._known

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

    def moved(self, positions: Positions, to: Segment) -> Positions:
        """Where tuples are in another segment that has the same blocks; -1 for those that are in none any more."""
        if not self.blocks:
            return np.full(len(positions), -1)
        owners = self._owners(positions)
        places = positions - np.array(self._starts)[owners]
        lengths = np.array([len(block) for block in self.blocks])
        there: Positions = np.array(to._starts)[owners] + places
        there[(owners < 0) | (places < 0) | (places >= lengths[owners])] = -1
        return there

    def last_moved(self, position: int, to: Segment) -> int:
        """Where the youngest tuple up to a position is in another segment with the same blocks; -1 if there is none."""
        owner = int(np.searchsorted(np.array(self._starts), position, side="right")) - 1
        if owner < 0:
            return -1
        return to._starts[owner] + min(position - self._starts[owner], len(self.blocks[owner]) - 1)

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
