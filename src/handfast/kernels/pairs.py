"""Finds pairs of tuples that are in their windows and fulfil a condition; checks conditions on more than two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from handfast.flow.gather import goes_up
from handfast.kernels.columns import Columns
from handfast.kernels.compiler.compile import blank, check_kernel, derive_kernel
from handfast.kernels.compiler.native import Native, address_of
from handfast.kernels.compiler.program import Program, Slot
from handfast.kernels.compiler.scan import SPARE, Form, Scan, scan_kernel, tile_of
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.course import Courses, Pairs, Positions, Ranges, reach
from handfast.kernels.filters import Filters
from handfast.kernels.sizes import USUAL, KernelSizes, Vectors
from handfast.kernels.values import address, addresses
from handfast.spec.expression import Expr, number_literals

_SPAN = 1 << 30  # inner tuples of a call: the distances that it writes have 32 bits


class PairKernels:
    """The kernels of one program, with the constants of one join. A pair is a position in stream 0 and one in 1."""

    def __init__(self, program: Program, rule: WindowRule, sizes: KernelSizes = USUAL) -> None:
        condition, self.literals = number_literals(program.condition)
        parts = blank(condition), program.slots, rule.counted
        # a shape is looked up once: its hash goes through the whole tree
        self._tiles = [tile_of(own, sizes.tile, sizes.pairs) for own in program.slots]
        self._scan_kernel = cache(partial(self._compiled, *parts))
        self._check_kernel = cache(partial(check_kernel, *parts, target=sizes.target))
        self._rule = rule
        self._sizes = sizes
        self._filters = Filters(program)

    def _compiled(
        self,
        shape: Expr,
        slots: tuple[tuple[Slot, ...], ...],
        counted: tuple[bool, bool],
        outer: int,
        form: Form,
        nullable: bool,
        windowed: bool,
        vectors: Vectors,
    ) -> Native:
        scan = Scan(shape, slots, counted, outer, form, nullable, windowed)
        return scan_kernel(scan, vectors, self._tiles[1 - outer], self._sizes.target)

    @property
    def lengths(self) -> tuple[int, int]:
        """The windows of both streams, as kernels take them."""
        return self._rule.lengths

    @property
    def rare(self) -> int:
        """A match in so many pairs, or fewer, is rare."""
        return self._sizes.rare

    def room(self, rows: int) -> int:
        """For how many matches there must be room when so many tuples, at most, are tried by `scan_address`."""
        return max(self._tiles) * self._vectors_for(rows).block

    def scan_address(self, outer: int, rows: int, *, dense: bool, nullable: bool) -> int:
        """The address of the kernel that tries up to so many tuples of stream `outer`, for whoever calls it himself."""
        form = Form.DENSE if dense else Form.RARE
        return address_of(self._scan_kernel(outer, form, nullable, True, self._vectors_for(rows)))

    def _vectors_for(self, rows: int) -> Vectors:
        vectors = self._sizes.vectors
        return replace(vectors, block=1) if rows < vectors.block else vectors

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
        if oldest[outer] or not goes_up(ranges.starts):
            order = oldest[outer] + np.argsort(ranges.starts[oldest[outer] :], kind="stable")
            o_columns, ranges = o_columns.take(order), ranges.take(order)
        if not len(ranges.starts):
            return
        for at, found in self._scanned(outer, o_columns, i_columns, ranges, literals):
            pair = (at if order is None else order[at]), found
            yield self._filtered(r, s, pair if outer == 0 else (pair[1], pair[0]))

    def _scanned(
        self, outer: int, outers: Columns, inners: Columns, ranges: Ranges, literals: NDArray[np.uint8]
    ) -> Iterator[Pairs]:
        """Places of outer tuples, which are in the order of their ranges' starts, and of inner ones in these ranges."""
        start, stop = int(ranges.starts[0]), int(ranges.stops.max())
        nullable = outers.nullable or inners.nullable
        o_tables, i_tables = _Tables(outers, nullable), _Tables(inners.padded(SPARE), nullable)
        tile = self._tiles[1 - outer]
        vectors = self._vectors_for(len(outers))
        least = tile * vectors.block
        # beyond what is to be found, for the kernel stops where there is no room for a whole tile of it
        capacity = self._sizes.sample + least
        form = Form.RARE
        state = np.array([start, 0, 0, 0], np.int64)
        while state[0] < stop:
            o_out, i_out = np.empty(capacity + SPARE, np.int32), np.empty(capacity + SPARE, np.int32)
            state[2:] = 0
            base = int(state[0])
            until = min(stop, base + _SPAN)
            kernel = self._scan_kernel(outer, form, nullable, not ranges.exact, vectors)
            found = kernel(
                *o_tables.words, 0, len(outers), *i_tables.words, base, until, max(len(inners), SPARE),
                address(ranges.starts), address(ranges.stops), *self._rule.lengths,
                address(literals), address(o_out), address(i_out), capacity, address(state),
            )  # fmt: skip
            capacity = self._sizes.pairs + least
            form = Form.DENSE if state[2] * self._sizes.rare > state[3] else Form.RARE
            if found:
                yield o_out[:found].astype(np.int64), np.add(i_out[:found], base, dtype=np.int64)

    def check(self, r: Columns, s: Columns, literals: NDArray[np.uint8], candidates: Pairs) -> Pairs:
        """The candidates that are in their windows and fulfil the condition; the given arrays are overwritten."""
        r_at, s_at = candidates
        nullable = r.nullable or s.nullable
        kernel = self._check_kernel(nullable)
        r_tables, s_tables = _Tables(r, nullable), _Tables(s, nullable)
        kept = kernel(
            *r_tables.words, *s_tables.words, *self._rule.lengths,
            address(literals), address(r_at), address(s_at), len(r_at),
        )  # fmt: skip
        return self._filtered(r, s, (r_at[:kept], s_at[:kept]))

    def _filtered(self, r: Columns, s: Columns, pairs: Pairs) -> Pairs:
        """The pairs for which the conditions that no kernel can compute are true as well."""
        if not self._filters:
            return pairs
        kept = self._filters.holding((r, s), pairs)
        return pairs[0][kept], pairs[1][kept]


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
        self._kernel()(*(address(word) for word in words), count)
        held: NDArray[np.bool_] = (truth != 0) & (failed == 0)
        if self._filters:
            places = np.flatnonzero(held)
            held[:] = False
            held[places[self._filters.holding(rows, [places] * len(rows))]] = True
        return held


class _Tables:
    """The addresses of a run's columns; alive as long as the kernel reads them."""

    def __init__(self, columns: Columns, nullable: bool) -> None:
        self._columns = columns
        zeros = np.zeros(len(columns) if nullable else 0, np.uint8)
        self._statuses = [status if status is not None else zeros for status in columns.statuses]
        self._tables = addresses([*columns.values, *self._statuses, columns.times, *columns.seen])
        first, each = address(self._tables), 8 * len(columns.values)
        self.words = first, first + each, first + 2 * each
