"""Conditions that no kernel can compute, tried last: on the tuples for which all others hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.kernels.columns import Columns
from handfast.kernels.compiler.program import Program
from handfast.kernels.compute import Computation

Rows = NDArray[np.int64]


class Filters:
    """The filters of one program."""

    def __init__(self, program: Program) -> None:
        self._conditions = [Computation([tree]) for tree in program.filters]
        self._places = {
            known.column: (side, k) for side, own in enumerate(program.inputs) for k, known in enumerate(own)
        }

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def holding(self, runs: Sequence[Columns], at: Sequence[Rows]) -> Rows:
        """The rows of `at` that fulfil every filter; a row is a position in each of the runs."""
        kept = np.arange(len(at[0]))
        for condition in self._conditions:
            if not len(kept):
                break
            sources = {}
            for column in condition.sources:
                side, k = self._places[column]
                positions, status = at[side][kept], runs[side].statuses[k]
                sources[column] = runs[side].codes[k][positions], None if status is None else status[positions]
            strings = runs[0].strings
            assert strings is not None, "ColumnReader.for_pairs brings them where there are filters"
            ((truth, unknown),) = condition.run(sources, strings.scratch(), len(kept))
            kept = kept[truth != 0 if unknown is None else (truth != 0) & (unknown == 0)]
        return kept
