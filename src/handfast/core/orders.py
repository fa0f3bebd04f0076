"""The order in which new tuples seek their partners, decided again while the join runs, from the match rates seen."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.core.rates import Rates
from handfast.core.segment import Segment
from handfast.core.workload import Step

_FIRST, _MOST = 256, 1 << 14  # new tuples until the next decision: few at first, then more


class Review:
    """Says when it is time to decide again: after more and more new tuples, up to a limit."""

    def __init__(self) -> None:
        self._due, self._wait = 0, _FIRST

    def is_due(self, tuples: int) -> bool:
        """Whether it is time, after so many new tuples; the next time is later."""
        if tuples < self._due:
            return False
        self._due, self._wait = tuples + self._wait, min(2 * self._wait, _MOST)
        return True


class Orders:
    """By stream, the steps in which its new tuples seek partners in the windows of all others."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._review = Review()
        self._orders: list[tuple[Step, ...]] = []

    def of(self, stream: int, segments: Sequence[Segment]) -> tuple[Step, ...]:
        """The steps for new tuples of a stream."""
        if len(segments) == 2:
            return ((stream, 1 - stream),)
        if self._review.is_due(self._rates.tuples):
            workload = self._rates.workload(segments)
            self._orders = [workload.steps(workload.best_way(origin)) for origin in workload.streams]
        return self._orders[stream]
