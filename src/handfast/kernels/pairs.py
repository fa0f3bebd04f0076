"""Finding the tuples of several streams for which a condition holds: pairs within their windows, and aligned rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compile import blank, check_kernel, derive_kernel, scan_kernel
from handfast.kernels.compute import addresses
from handfast.kernels.filters import Filters
from handfast.kernels.program import Program
from handfast.kernels.window import WindowRule
from handfast.spec.expression import number_literals

Positions = NDArray[np.int64]
Pairs = tuple[Positions, Positions]  # positions in stream 0, positions in stream 1

_RUN = 1 << 13  # inner tuples scanned at a time: their columns stay in the cache, and most runs lie in all windows
_LONG_RUN = 1 << 16  # where all of them lie in all windows
_CAPACITY = 1 << 18  # pairs found before they are handed on


class PairKernels:
    """The kernels of one program, with the constants of one join."""

    def __init__(self, program: Program, rule: WindowRule) -> None:
        condition, self.literals = number_literals(program.condition)
        parts = blank(condition), program.slots, rule.counted
        # a shape is looked up once: its hash goes through the whole tree
        self._scan_kernel, self._check_kernel = (cache(partial(make, *parts)) for make in (scan_kernel, check_kernel))
        self._rule = rule
        self._filters = Filters(program)

    def scan(self, r: Columns, s: Columns, literals: NDArray[np.uint8]) -> Iterator[Pairs]:
        """Every pair that holds, by trying every pair: the longer run is read vector by vector."""
        outer = 0 if len(r) <= len(s) else 1
        runs = (r, s)
        o_columns, i_columns = runs[outer], runs[1 - outer]
        nullable = r.nullable or s.nullable
        o_tables, i_tables = _Tables(o_columns, nullable), _Tables(i_columns, nullable)
        o_out, i_out = np.empty(_CAPACITY, np.int64), np.empty(_CAPACITY, np.int64)
        resume = np.zeros(1, np.int64)
        for start, stop, windowed in self._runs(i_columns.times, o_columns.times):
            kernel = self._scan_kernel(outer, nullable, windowed)
            position = 0
            while position < len(o_columns):
                found = kernel(
                    *o_tables.words, position, len(o_columns), *i_tables.words, start, stop, *self._rule.lengths,
                    literals.ctypes.data, o_out.ctypes.data, i_out.ctypes.data, _CAPACITY, resume.ctypes.data,
                )  # fmt: skip
                position = int(resume[0])
                if found:
                    pair = o_out[:found].copy(), i_out[:found].copy()
                    yield self._filtered(r, s, pair if outer == 0 else (pair[1], pair[0]))

    def check(self, r: Columns, s: Columns, literals: NDArray[np.uint8], candidates: Pairs) -> Pairs:
        """The candidates that hold; the given arrays are overwritten."""
        r_at, s_at = candidates
        nullable = r.nullable or s.nullable
        kernel = self._check_kernel(nullable)
        r_tables, s_tables = _Tables(r, nullable), _Tables(s, nullable)
        kept = kernel(
            *r_tables.words, *s_tables.words, *self._rule.lengths,
            literals.ctypes.data, r_at.ctypes.data, s_at.ctypes.data, len(r_at),
        )  # fmt: skip
        return self._filtered(r, s, (r_at[:kept], s_at[:kept]))

    def _filtered(self, r: Columns, s: Columns, pairs: Pairs) -> Pairs:
        """The pairs for which every condition that no kernel can say is true, too."""
        if not self._filters:
            return pairs
        kept = self._filters.holding((r, s), pairs)
        return pairs[0][kept], pairs[1][kept]

    def _runs(self, inner: NDArray[np.int64], outer: NDArray[np.int64]) -> Iterator[tuple[int, int, bool]]:
        """The inner tuples run by run: where each starts and stops, and whether the windows have to be looked at.

        Neighbours for which they need not be are one run, as long as it stays in the cache: fewer calls, so that
        threads seldom wait for each other's.
        """
        longest = min(_LONG_RUN, _CAPACITY)  # a kernel needs room for all of a run
        low, high = int(outer.min()), int(outer.max())
        inside_from: int | None = None
        for start in range(0, len(inner), _RUN):
            stop = min(start + _RUN, len(inner))
            part = inner[start:stop]
            apart = int(part.min()) - high, int(part.max()) - low
            inside = self._inside(apart)
            if inside_from is not None and (not inside or stop - inside_from > longest):
                yield inside_from, start, False
                inside_from = None
            if inside:
                inside_from = start if inside_from is None else inside_from
            elif self._reachable(apart):
                yield start, stop, True
        if inside_from is not None:
            yield inside_from, len(inner), False

    def _reachable(self, apart: tuple[int, int]) -> bool:
        """Whether tuples so far apart can be in a window together; where tuples are counted, times do not tell."""
        least, most = apart
        longest = max(self._rule.lengths)
        return self._rule.stamped or (most > -longest and least < longest)

    def _inside(self, apart: tuple[int, int]) -> bool:
        """Whether all tuples so far apart are in a window together."""
        least, most = apart
        shortest = min(self._rule.lengths)
        return not self._rule.stamped and -shortest < least and most < shortest


class TupleKernel:
    """A condition on tuples of three streams and more."""

    def __init__(self, program: Program) -> None:
        condition, self.literals = number_literals(program.condition)
        slots = tuple(slot for own in program.slots for slot in own)
        self._kernel = cache(partial(derive_kernel, (blank(condition),), slots))
        self._filters = Filters(program)

    def holds(self, rows: list[Columns], literals: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """For which rows, made of the tuples at the same place in every stream's run, the condition holds."""
        count = len(rows[0])
        zeros = np.zeros(count, np.uint8)
        values = addresses([value for own in rows for value in own.values])
        every = [status if status is not None else zeros for own in rows for status in own.statuses]
        statuses = addresses(every)
        truth, failed = np.empty(count, np.uint8), np.empty(count, np.uint8)
        out, out_failed = addresses([truth]), addresses([failed])
        words = (values, statuses, literals, out, out_failed)
        self._kernel()(*(word.ctypes.data for word in words), count)
        held: NDArray[np.bool_] = (truth != 0) & (failed == 0)
        if self._filters:
            places = np.flatnonzero(held)
            held[:] = False
            held[places[self._filters.holding(rows, [places] * len(rows))]] = True
        return held


class _Tables:
    """The addresses of a run's columns; alive as long as the kernel reads them."""

    def __init__(self, columns: Columns, nullable: bool) -> None:
        zeros = np.zeros(len(columns) if nullable else 0, np.uint8)
        self._statuses = [status if status is not None else zeros for status in columns.statuses]
        self._tables = addresses(columns.values), addresses(self._statuses), addresses([columns.times, *columns.seen])
        self.words = tuple(table.ctypes.data for table in self._tables)
