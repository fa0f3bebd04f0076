"""What every core of one join shares: the program, its kernels, its keys."""

from __future__ import annotations

from functools import lru_cache

from handfast.kernels.bands import band_terms
from handfast.kernels.columns import ColumnReader
from handfast.kernels.compute import compares_order_of_strings
from handfast.kernels.keys import KeyMaker
from handfast.kernels.pairs import PairKernels
from handfast.kernels.program import make_program
from handfast.kernels.strings import StringTable
from handfast.kernels.window import WindowRule
from handfast.plan import Plan
from handfast.spec.window import CountWindow, Window


class Recipe:
    """A plan made ready to run."""

    def __init__(self, plan: Plan) -> None:
        join = plan.join
        self.plan = plan
        keys = [side for equality in plan.equalities for side in equality.sides]
        keys += [term for band in plan.bands for term in band_terms(band)]
        self.program = make_program(join.predicate, keys, len(join.schemas))
        self.keys = KeyMaker(self.program, plan.equalities, plan.bands) if plan.indexed else None
        self.rule = window_rule(plan)
        self.pairs = PairKernels(self.program, self.rule)
        self._ordered_strings = compares_order_of_strings(join.predicate)

    def reader(self, strings: StringTable) -> ColumnReader:
        """A reader of Arrow batches for one core."""
        return ColumnReader(self.program, strings, ordered_strings=self._ordered_strings)


def window_rule(plan: Plan) -> WindowRule:
    """The windows of both streams as the kernels take them."""
    r, s = (stream.window for stream in plan.join.spec.streams)
    counted = isinstance(r, CountWindow), isinstance(s, CountWindow)
    return WindowRule((_length(r), _length(s)), counted)


def _length(window: Window) -> int:
    return window.rows if isinstance(window, CountWindow) else window.length


@lru_cache(maxsize=32)
def recipe(plan: Plan) -> Recipe:
    """The plan's recipe; made once in a process."""
    return Recipe(plan)
