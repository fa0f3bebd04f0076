"""Values of stored tuples taken from the blocks that they lie in: only what is asked for is copied, and in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.flow.block import Block
from handfast.flow.fixed import BITS, fixed_width
from handfast.kernels.compiler.gathering import gather_kernel, owner_kernel
from handfast.kernels.values import address

_PAGES = 1 << 12  # about how many pages the positions are cut into

Positions = NDArray[np.int64]
Owners = NDArray[np.int32]


@dataclass(frozen=True)
class Blocks:
    """Blocks one behind the other, each from a start on; a position is a place in that order."""

    blocks: Sequence[Block]
    starts: Positions
    _known: dict[int, Positions | None] = field(default_factory=dict, compare=False)

    def takes(self, place: int) -> bool:
        """Whether the values of a column can be taken here: all are as wide, and none is NULL."""
        return self._bases(place) is not None

    def owners(self, positions: Positions) -> Owners | None:
        """The number of the block that each position lies in; None if there is but one."""
        if len(self.blocks) == 1:
            return None
        pages, bits, starts = self._pages
        owners = np.empty(len(positions), np.int32)
        words = address(pages), bits, address(starts), address(positions), address(owners)
        owner_kernel()(*words, len(positions))
        return owners

    def take(self, place: int, owners: Owners | None, positions: Positions) -> pa.Array:
        """The values of a column at these positions; `positions` lie side by side in memory."""
        type_ = self.blocks[0].batch.schema.field(place).type
        width, bases = fixed_width(type_), self._bases(place)
        assert width is not None and bases is not None, "only what can be taken is asked for"
        out = np.empty(len(positions) * max(1, width), np.uint8)
        of_places = address(owners) if owners is not None else 0
        kernel = gather_kernel(width, owners is not None)
        kernel(address(bases), of_places, address(positions), address(out), len(positions))
        values = np.packbits(out, bitorder="little") if width == BITS else out
        return pa.Array.from_buffers(type_, len(positions), [None, pa.py_buffer(values)])

    def _bases(self, place: int) -> Positions | None:
        """By block, where a column would begin if the block began at position 0; None if some cannot be taken."""
        if place not in self._known:
            bases = [block.bases[place] for block in self.blocks]
            width = fixed_width(self.blocks[0].batch.schema.field(place).type)
            can = width is not None and None not in bases
            self._known[place] = np.array(bases, np.int64) - self.starts * max(1, width or 0) if can else None
        return self._known[place]

    @cached_property
    def _pages(self) -> tuple[Owners, int, Positions]:
        """By page, the block of its first position; the bits of a position in its page; the starts, with an end."""
        stop = int(self.starts[-1]) + len(self.blocks[-1])
        bits = max(4, (stop // _PAGES).bit_length())
        begins = np.maximum(np.arange((stop >> bits) + 1, dtype=np.int64) << bits, self.starts[0])
        pages = (np.searchsorted(self.starts, begins, side="right") - 1).astype(np.int32)
        return pages, bits, np.append(self.starts, np.iinfo(np.int64).max)
