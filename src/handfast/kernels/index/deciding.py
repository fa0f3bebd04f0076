"""Conditions decided where stored tuples lie side by side, in vectors: what panes and sorted blocks have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.compile import blank
from handfast.kernels.compiler.native import Native
from handfast.kernels.compiler.runs import LANES, run_kernel
from handfast.kernels.course import Pairs, Ranges
from handfast.kernels.index.protocol import PairConditions
from handfast.kernels.strings import StringTable
from handfast.kernels.values import Array, Status, address, addresses, literal_buffer
from handfast.spec.expression import Column, Expr, Literal, conjunction, number_literals, walk

_RUNS = 1 << 15  # that there is room for four times, at first


def decided(conditions: PairConditions) -> tuple[Expr, ...]:
    """The parts of the condition that can be decided where tuples are found: those without text."""
    return tuple(
        part
        for part in conditions.parts
        if not any(isinstance(node, Column | Literal) and node.type.is_text for node in walk(part))
    )


class Stored(Protocol):
    """Stored tuples side by side, with room for a vector behind the last one."""

    @property
    def value_words(self) -> list[int]:
        """What the kernel reads, but for the statuses: a number, and where the positions and values are."""
        ...

    @property
    def nullable(self) -> bool:
        """Whether some of their values are NULL or errors."""
        ...

    def status_words(self, zeros: Status) -> list[int]:
        """Where the statuses are; `zeros` in the place of those that are not there."""
        ...

    def __len__(self) -> int: ...


class Room:
    """What one search writes: its pairs, and the runs that it goes through.

    Of a run it keeps the place of the probing tuple, the number of the stored ones, and its first place and end there.
    """

    def __init__(self, capacity: int, runs: int = 4 * _RUNS) -> None:
        self.capacity = max(capacity, LANES)
        self.places, self.numbers = np.empty(self.capacity, np.int64), np.empty(self.capacity, np.int64)
        self.out = address(self.places), address(self.numbers)
        self._make(runs)

    def _make(self, count: int) -> None:
        self.runs = [np.empty(count, np.uint32) for _ in range(4)]
        self.words = [address(own) for own in self.runs]

    def grow(self) -> None:
        """Make room for twice as many runs."""
        self._make(2 * len(self.runs[0]))


class Deciding:
    """The condition over two streams as far as it can be decided, for stored tuples of `side`."""

    def __init__(self, conditions: PairConditions, side: int) -> None:
        streams = conditions.bands[0].streams
        condition, literals = number_literals(conjunction(decided(conditions)))
        self._literals = literal_buffer(literals, StringTable(), ordered=False)
        self._shape = blank(condition)
        named = {node for node in walk(self._shape) if isinstance(node, Column)}
        inputs = conditions.program.inputs
        self._known = [[k for k, own in enumerate(inputs[s]) if own.column in named] for s in streams]
        self._slots = tuple(
            tuple(inputs[stream][k].slot for k in own) for stream, own in zip(streams, self._known, strict=True)
        )
        self._side = side
        self._made: dict[bool, tuple[Native, Native]] = {}

    def read(self, columns: Columns, rows: NDArray[np.int64] | slice) -> tuple[list[Array], list[Status | None]]:
        """Values and statuses, by column that the condition reads, of tuples that are to be stored."""
        own = self._known[self._side]
        statuses = [columns.statuses[k] for k in own]
        return [columns.values[k][rows] for k in own], [None if own is None else own[rows] for own in statuses]

    def kernels(self, nullable: bool) -> tuple[Native, Native]:
        """The kernels of this condition: for stored tuples that lie in all ranges, and for others."""
        if nullable not in self._made:
            outer = 1 - self._side
            within, ranged = (run_kernel(self._shape, self._slots, outer, nullable, own) for own in (False, True))
            self._made[nullable] = within, ranged
        return self._made[nullable]

    def pairs(
        self,
        columns: Columns,
        ranges: Ranges,
        stored: Sequence[Stored],
        room: Room,
        chunks: Iterable[tuple[int, int]],
    ) -> Iterator[Pairs]:
        """Places of probing tuples with these columns and ranges, and numbers of stored ones they match.

        With each chunk, `room` has as many runs as the second number says; up to the first one, they lie in all ranges.
        """
        own = self._known[1 - self._side]
        values, statuses = [columns.values[k] for k in own], [columns.statuses[k] for k in own]
        nullable = any(status is not None for status in statuses) or any(one.nullable for one in stored)
        filled: list[Array] = []
        rows = [one.value_words for one in stored]
        if nullable:  # else no kernel reads any status
            zeros = np.zeros(max(len(columns), *(len(one) + LANES for one in stored)), np.uint8)
            filled = [zeros if status is None else status for status in statuses]
            rows = [[*row, *one.status_words(zeros)] for row, one in zip(rows, stored, strict=True)]
        probing, words = addresses([*values, *filled]), np.array(rows, np.int64)
        first = address(probing)
        before = first, first + 8 * len(values), address(words), words.shape[1]
        after = address(ranges.starts), address(ranges.stops), address(self._literals)
        kernels = self.kernels(nullable)
        found = 0
        for cut, count in chunks:
            for kernel, begin, end in zip(kernels, (0, cut), (cut, count), strict=True):
                if begin == end:
                    continue
                state = np.array([begin, -1, 0, 0], np.int64)
                word = address(state)
                while begin < end:
                    state[2:] = room.out[0] + 8 * found, room.out[1] + 8 * found
                    found += kernel(*before, *room.words, begin, end, *after, room.capacity - found, word)
                    begin = int(state[0])
                    if begin < end:
                        yield room.places[:found], room.numbers[:found]
                        found = 0
        if found:
            yield room.places[:found], room.numbers[:found]


def roomy(dtype: np.dtype[np.generic], count: int) -> Any:
    """An empty array with room for a vector behind so many values."""
    array = np.empty(count + LANES, dtype)
    array[count:] = np.zeros(LANES, dtype)
    return array
