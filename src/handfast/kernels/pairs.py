"""Finds pairs of tuples that are in their windows and fulfil a condition; checks conditions on more than two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.compiler.compile import blank, check_kernel, derive_kernel, scan_kernel
from handfast.kernels.compiler.program import Program
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.course import Courses, Pairs, Positions, Ranges, reach
from handfast.kernels.filters import Filters
from handfast.kernels.sizes import USUAL, KernelSizes
from handfast.kernels.values import addresses
from handfast.spec.expression import number_literals


class PairKernels:
    """The kernels of one program, with the constants of one join. A pair is a position in stream 0 and one in 1."""

    def __init__(self, program: Program, rule: WindowRule, sizes: KernelSizes = USUAL) -> None:
        condition, self.literals = number_literals(program.condition)
        parts = blank(condition), program.slots, rule.counted
        # a shape is looked up once: its hash goes through the whole tree
        self._scan_kernel = cache(partial(scan_kernel, *parts, sizes.vectors))
        self._check_kernel = cache(partial(check_kernel, *parts))
        self._rule = rule
        self._sizes = sizes
        self._filters = Filters(program)

    def reach(self, side: int, probing: Columns, stored: Columns, oldest: int) -> Ranges:
        """Where the partners of tuples on one side can lie among the stored ones of the other."""
        return reach(self._rule, side, probing, stored.courses or Courses.of(stored), oldest)

    def scan(self, r: Columns, s: Columns, literals: NDArray[np.uint8], oldest: tuple[int, int]) -> Iterator[Pairs]:
        """Every pair that holds, by trying all that can be in a window together; the longer run is read in vectors.

        `oldest` is where the tuples begin that still count, in each of the runs.
        """
        runs = (r, s)
        outer = 0 if len(r) - oldest[0] <= len(s) - oldest[1] else 1
        o_columns, i_columns = runs[outer], runs[1 - outer]
        ranges = self.reach(outer, o_columns, i_columns, oldest[1 - outer])
        order: Positions | None = None
        if oldest[outer] or not (goes_up(ranges.starts) and goes_up(ranges.stops)):
            order = oldest[outer] + np.lexsort((ranges.stops[oldest[outer] :], ranges.starts[oldest[outer] :]))
            o_columns, ranges = o_columns.take(order), ranges.take(order)
        nullable = r.nullable or s.nullable
        o_tables, i_tables = _Tables(o_columns, nullable), _Tables(i_columns, nullable)
        capacity = self._sizes.pairs
        o_out, i_out = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        resume = np.zeros(1, np.int64)
        for tile in self._tiles(o_columns, i_columns, ranges):
            kernel = self._scan_kernel(outer, nullable, tile.windowed)
            position = tile.outer_start
            while position < tile.outer_stop:
                found = kernel(
                    *o_tables.words, position, tile.outer_stop, *i_tables.words, tile.start, tile.stop,
                    ranges.starts.ctypes.data, ranges.stops.ctypes.data, *self._rule.lengths,
                    literals.ctypes.data, o_out.ctypes.data, i_out.ctypes.data, capacity, resume.ctypes.data,
                )  # fmt: skip
                position = int(resume[0])
                if found:
                    at = o_out[:found].copy() if order is None else order[o_out[:found]]
                    pair = at, i_out[:found].copy()
                    yield self._filtered(r, s, pair if outer == 0 else (pair[1], pair[0]))

    def check(self, r: Columns, s: Columns, literals: NDArray[np.uint8], candidates: Pairs) -> Pairs:
        """The candidates that are in their windows and fulfil the condition; the given arrays are overwritten."""
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
        """The pairs for which the conditions that no kernel can compute are true as well."""
        if not self._filters:
            return pairs
        kept = self._filters.holding((r, s), pairs)
        return pairs[0][kept], pairs[1][kept]

    def _tiles(self, outer: Columns, inner: Columns, ranges: Ranges) -> Iterator[_Tile]:
        """The inner tuples run by run, each with the outer ones that reach into it, and whether stamps must be read.

        Neighbours for which they need not be are one tile, as long as it stays in the cache: fewer calls, so that
        threads seldom wait for each other's.
        """
        if not len(ranges.starts):
            return
        longest = min(self._sizes.long_run, self._sizes.pairs)  # a kernel needs room for all of a tile
        size = longest if ranges.exact else min(self._sizes.run, longest)
        starts = np.minimum.accumulate(ranges.starts[::-1])[::-1]
        stops = np.maximum.accumulate(ranges.stops)
        last: _Tile | None = None
        for start in range(int(starts[0]), int(stops[-1]), size):
            stop = min(start + size, int(stops[-1]))
            first = int(np.searchsorted(stops, start, side="right"))
            end = int(np.searchsorted(starts, stop, side="left"))
            if first >= end:
                continue
            windowed = not ranges.exact and not self._inside(inner.times[start:stop], outer.times[first:end])
            tile = _Tile(start, stop, first, end, windowed)
            if last is not None and last.joins(tile, longest):
                last = _Tile(last.start, stop, first, end, windowed)
                continue
            if last is not None:
                yield last
            last = tile
        if last is not None:
            yield last

    def _inside(self, inner: NDArray[np.int64], outer: NDArray[np.int64]) -> bool:
        """Whether the times tell that all of these tuples are in their windows; in count windows they never do."""
        shortest = min(self._rule.lengths)
        least, most = int(inner.min()) - int(outer.max()), int(inner.max()) - int(outer.min())
        return not self._rule.stamped and -shortest < least and most < shortest


@dataclass(frozen=True, slots=True)
class _Tile:
    """Inner tuples from `start` up to `stop`, and the outer ones that meet them."""

    start: int
    stop: int
    outer_start: int
    outer_stop: int
    windowed: bool

    def joins(self, other: _Tile, longest: int) -> bool:
        """Whether this and its neighbour can be scanned as one."""
        return (
            not self.windowed
            and not other.windowed
            and self.stop == other.start
            and (self.outer_start, self.outer_stop) == (other.outer_start, other.outer_stop)
            and other.stop - self.start <= longest
        )


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
