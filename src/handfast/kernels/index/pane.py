"""Panes of the band index: runs of tuples that never change, side by side by cell, and how several become one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.compiler.runs import LANES
from handfast.kernels.index.deciding import roomy
from handfast.kernels.index.keys import Numbers
from handfast.kernels.values import Array, Status, address

CHUNK = 1 << 13  # tuples that a merge goes on by at a time

FAN = 4  # so many neighbouring panes of one size become one
_SMALLEST = 256  # tuples of a pane of the lowest size

Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a pane: so many bits of the stripe, and of the column but for its lowest ones."""

    stripes: int
    columns: int
    coarse: int

    @staticmethod
    def of(loops: ModuleType, codes: Sequence[Numbers]) -> Grid:
        """The grid for tuples with these codes."""
        total = sum(map(len, codes))
        step = max(1, total // loops.SAMPLE)
        sample = codes[0] if len(codes) == 1 and step == 1 else np.concatenate([own[::step] for own in codes])
        return Grid(*loops.grid(sample, total))

    @property
    def cells(self) -> int:
        return 1 << (self.stripes + self.columns)

    @property
    def words(self) -> tuple[int, int, int]:
        return self.stripes, self.columns, self.coarse


@dataclass  # made for every push: one that is frozen takes several times as long to make
class Pane:
    """Tuples with the numbers from `first` up to `end`, by cell, and in a cell in the order of their numbers.

    A tuple's number is `first` plus its position. Positions and values have room for a vector behind the last one. Only
    merging and cutting read `codes`: a pane that is `settled`, which will see neither, has none.
    """

    first: int
    end: int
    grid: Grid
    offsets: NDArray[np.uint32]
    codes: Numbers | None
    positions: Places
    values: list[Array]
    statuses: list[Status | None]

    @cached_property
    def _count(self) -> int:
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return self._count

    @property
    def settled(self) -> Pane:
        """The same tuples without their codes."""
        return replace(self, codes=None)

    @cached_property
    def size(self) -> int:
        """The size on a scale of powers of the fan."""
        size, limit = 0, _SMALLEST
        while len(self) > limit:
            size, limit = size + 1, limit * FAN
        return size

    @cached_property
    def cell_words(self) -> list[int]:
        """What the search of runs reads."""
        return [address(self.offsets), *self.grid.words, self.first, self.end]

    @cached_property
    def value_words(self) -> list[int]:
        """What the kernel reads, but for the statuses."""
        return [self.first, address(self.positions), *(address(value) for value in self.values)]

    @property
    def unsorted(self) -> Source:
        """Its tuples, cell by cell; of a pane that is not settled."""
        assert self.codes is not None, "a settled pane has no codes"
        return Source(self.first, self.codes, self.positions, self.values, self.statuses)

    @property
    def source(self) -> Source:
        """Its tuples in the order of their positions."""
        return self.unsorted.take(np.argsort(self.positions[: len(self)]))

    @cached_property
    def nullable(self) -> bool:
        return any(status is not None for status in self.statuses)

    def status_words(self, zeros: Status) -> list[int]:
        return [address(zeros if status is None else status) for status in self.statuses]


@dataclass(slots=True)  # made for every push: one that is frozen takes several times as long to make
class Source:
    """Tuples that a pane is made of; a number is `first` plus the position."""

    first: int
    codes: Numbers
    positions: NDArray[Any]
    values: list[Array]
    statuses: list[Status | None]

    def take(self, rows: NDArray[np.int64] | slice) -> Source:
        """The tuples at these places."""
        statuses = [None if status is None else status[rows] for status in self.statuses]
        return Source(self.first, self.codes[rows], self.positions[rows], [own[rows] for own in self.values], statuses)

    def part(self, start: int, stop: int) -> Source:
        """The tuples from one place up to another."""
        return self.take(slice(start, stop))


def building(loops: ModuleType, sources: Sequence[Source], first: int, end: int) -> Generator[int, None, Pane]:
    """Make a pane of neighbouring sources by a counting sort, bit by bit: each step tells of how many tuples it was."""
    codes = [source.codes for source in sources]
    total = sum(map(len, codes))
    grid = Grid.of(loops, codes)
    offsets = np.zeros(grid.cells + 1, np.uint32)
    for own in codes:
        for start in range(0, len(own), CHUNK):
            loops.count(own[start : start + CHUNK], *grid.words, offsets)
            yield min(CHUNK, len(own) - start)
    offsets.cumsum(out=offsets)
    following = offsets[:-1].copy()
    ordered = np.empty(total, np.uint64)
    pane = Pane(
        first,
        end,
        grid,
        offsets,
        ordered,
        roomy(np.dtype(np.int32), total),
        [roomy(value.dtype, total) for value in sources[0].values],
        [
            roomy(np.dtype(np.uint8), total) if any(source.statuses[k] is not None for source in sources) else None
            for k in range(len(sources[0].values))
        ],
    )
    for source in sources:
        for start in range(0, len(source.codes), CHUNK):
            part = slice(start, min(start + CHUNK, len(source.codes)))
            places = np.empty(part.stop - part.start, np.int64)
            loops.place(source.codes[part], *grid.words, following, places)
            ordered[places] = source.codes[part]
            pane.positions[places] = source.positions[part] + (source.first - first)
            for to, value in zip(pane.values, source.values, strict=True):
                to[places] = value[part]
            for mark, status in zip(pane.statuses, source.statuses, strict=True):
                if mark is not None:
                    mark[places] = status[part] if status is not None else 0
            yield len(places)
    return pane


def at_once(loops: ModuleType, source: Source, first: int, end: int) -> Pane:
    """A pane of neighbouring tuples, made in one go."""
    count = len(source.codes)
    offsets, codes = np.empty(count // loops.PER_CELL + 2, np.uint32), np.empty(count, np.uint64)
    order, positions = np.empty(count + LANES, np.int64), np.empty(count + LANES, np.int32)
    grid = Grid(*loops.in_order(source.codes, source.positions, source.first - first, offsets, order, codes, positions))
    statuses = [None if status is None else status[order] for status in source.statuses]
    values = [value[order] for value in source.values]
    return Pane(first, end, grid, offsets[: grid.cells + 1], codes, positions, values, statuses)
