"""What every core of one join shares: program, kernels, which indexes, and the order in which windows are probed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from handfast.kernels.columns import ColumnReader, Columns, Reading
from handfast.kernels.compiler.narrow import narrowed
from handfast.kernels.compiler.program import Program, make_program
from handfast.kernels.compiler.window import WindowRule
from handfast.kernels.compute import compares_order_of_strings, needs_ordinals
from handfast.kernels.course import Courses
from handfast.kernels.index.bands import band_terms
from handfast.kernels.index.choice import choose
from handfast.kernels.index.hashed import HashIndex, is_plain
from handfast.kernels.index.protocol import Index, PairConditions
from handfast.kernels.pairs import PairKernels, TupleKernel
from handfast.kernels.sizes import USUAL, KernelSizes
from handfast.kernels.strings import StringTable
from handfast.plan import SCAN, Pair, PairPlan, Plan
from handfast.spec.expression import Expr, conjunction, conjuncts, streams_of
from handfast.spec.window import CountWindow, Window

_TRUE = conjunction([])


@dataclass(frozen=True, slots=True)
class Pairing:
    """What joins tuples of two streams: the windows, and the conditions over these two alone.

    `kernels` are for all conditions, `left` for those that are left to be checked on what the index proposes; `settled`
    says that only the windows are.
    """

    streams: Pair
    kernels: PairKernels
    left: PairKernels
    settled: bool
    conditions: PairConditions
    index: type[Index[Any]] | None
    counted: bool

    def side(self, stream: int) -> int:
        """0 for the lower of the two streams, 1 for the other."""
        return self.streams.index(stream)

    def view(self, columns: Columns) -> Columns:
        """The columns of a run of tuples, with the stamps of these two streams only."""
        if not columns.seen:
            return columns
        courses = columns.courses
        if courses is not None:
            courses = Courses(courses.times, tuple(courses.seen[stream] for stream in self.streams))
        return replace(columns, seen=tuple(columns.seen[stream] for stream in self.streams), courses=courses)


class Recipe:
    """A plan made ready to run: everything that all cores of a join share."""

    def __init__(self, plan: Plan, sizes: KernelSizes = USUAL) -> None:
        join = plan.join
        self.plan = plan
        self._sizes = sizes
        streams = len(join.schemas)
        keys = [key for own in plan.keys for key in own]
        scans = plan.local_join == SCAN or not any(pair.equalities or pair.bands for pair in plan.pairs)
        if not scans:
            keys += [side for pair in plan.pairs for equality in pair.equalities for side in equality.sides]
            keys += [term for pair in plan.pairs for band in pair.bands for term in band_terms(band)]
        # where indexes propose what is tried, their keys are the columns that are compared: strings stay as they are
        self.program = make_program(narrowed(join.predicate, codes=scans), keys, streams)
        self.pairings = {pair.streams: self._pairing(pair) for pair in plan.pairs}
        self.rest = self._rest()
        self.shares_key = self._shares_key()
        self.keys = [[self.program.position(key) for key in own] for own in plan.keys]
        self._reading = Reading(
            self.program,
            ordered_strings=compares_order_of_strings(join.predicate),
            needs_ordinals=needs_ordinals(join.predicate),
        )

    def reader(self, strings: StringTable) -> ColumnReader:
        """A reader of Arrow batches for one core."""
        return ColumnReader(self._reading, strings)

    def pairing(self, a: int, b: int) -> Pairing:
        """What joins these two streams."""
        return self.pairings[min(a, b), max(a, b)]

    def new_indexes(self, stream: int) -> dict[Pair, Index[Any]]:
        """Empty indexes over the tuples of one stream, one for each pair of streams that has an index."""
        return {
            pair: own.index(own.conditions, own.side(stream), self._sizes.candidates)
            for pair, own in self.pairings.items()
            if own.index is not None and stream in pair
        }

    def _pairing(self, pair: PairPlan) -> Pairing:
        lower, upper = pair.streams
        inputs = self.program.inputs[lower], self.program.inputs[upper]
        condition, filters = self._condition(pair.streams), self._filters(pair.streams)
        rule = window_rule(self.plan, pair.streams)
        kernels = left = PairKernels(Program(inputs, condition, filters), rule, self._sizes)
        parts = tuple(part for part in conjuncts(condition) if part != _TRUE)
        conditions = PairConditions(self.program, pair.equalities, pair.bands, parts)
        index = choose(self.plan.local_join, conditions)
        unknown = index.left(conditions) if index is not None else parts
        if unknown != parts:
            read = inputs if unknown or filters else ((), ())
            left = PairKernels(Program(read, conjunction(unknown), filters), rule, self._sizes)
        settled = not unknown and not filters
        return Pairing(pair.streams, kernels, left, settled, conditions, index, any(rule.counted))

    @property
    def reads_values(self) -> bool:
        """Whether more than the stamps of stored tuples is read, even if an index can place all of them."""
        return len(self.pairings) > 1 or not all(own.settled for own in self.pairings.values())

    def _condition(self, pair: Pair) -> Expr:
        """The conditions over these two streams alone."""
        if len(self.plan.pairs) == 1:
            return self.program.condition
        parts = conjuncts(self.program.condition)
        return conjunction([part for part in parts if streams_of(part) <= set(pair)])

    def _filters(self, pair: Pair) -> tuple[Expr, ...]:
        return tuple(part for part in self.program.filters if streams_of(part) <= set(pair))

    def _rest(self) -> TupleKernel | None:
        """The conditions over three streams and more."""
        condition = [part for part in conjuncts(self.program.condition) if len(streams_of(part)) > 2]
        filters = tuple(part for part in self.program.filters if len(streams_of(part)) > 2)
        if not condition and not filters:
            return None
        return TupleKernel(Program(self.program.inputs, conjunction(condition), filters))

    def _shares_key(self) -> bool:
        """Whether all streams share one key, and every index finds those of equal keys and no others.

        Then all members of a partial match have one key, whichever of them each was found from.
        """
        keys: dict[int, Expr] = {}
        for pair, own in self.pairings.items():
            if own.index is not HashIndex or not is_plain(own.conditions):
                return False
            for stream, side in zip(pair, own.conditions.equalities[0].sides, strict=True):
                if keys.setdefault(stream, side) != side:
                    return False
        return True

    def cost(self, a: int, b: int) -> int:
        """How much a probe is expected to find, on a rough scale."""
        pair = next(pair for pair in self.plan.pairs if pair.streams == (min(a, b), max(a, b)))
        if pair.equalities:
            return 0
        if pair.bands:
            return 1
        return 2 if any(streams_of(part) == {a, b} for part in conjuncts(self.program.condition)) else 3


def window_rule(plan: Plan, pair: Pair) -> WindowRule:
    """The windows of two streams as the kernels take them."""
    r, s = (plan.join.spec.streams[stream].window for stream in pair)
    counted = isinstance(r, CountWindow), isinstance(s, CountWindow)
    return WindowRule((_length(r), _length(s)), counted)


def _length(window: Window) -> int:
    return window.rows if isinstance(window, CountWindow) else window.length


@lru_cache(maxsize=32)
def recipe(plan: Plan) -> Recipe:
    """The plan's recipe; made once in a process."""
    return Recipe(plan)
