"""Admission control: how many of the rows that come are taken in, decided before anything is stamped [OGE §4.4].

What is taken in is joined, however long it takes. What is not is counted, can be read, and moves no watermark.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handfast.engines.local.options import OLDEST, REJECT, SHED, LocalOptions

_MEMORY = 0.8  # of a rate so far, when a new measurement comes in


class Rate:
    """Something per second, as measured."""

    def __init__(self) -> None:
        self.value: float | None = None

    def measure(self, amount: float, seconds: float) -> None:
        """Take in that so much came in so many seconds."""
        if seconds <= 0:
            return
        now = amount / seconds
        self.value = now if self.value is None else _MEMORY * self.value + (1 - _MEMORY) * now


class Door:
    """Lets rows in as its cores can take them."""

    def __init__(self, options: LocalOptions) -> None:
        self._options = options
        self._chance = np.random.default_rng(0)
        self._offered, self._served = Rate(), Rate()
        self._last_time: float | None = None
        self._last_work = (0, 0.0)

    @property
    def never_stalls(self) -> bool:
        """Whether rows are refused rather than kept waiting."""
        return self._options.admission in (REJECT, SHED)

    def observe(self, rows: int, now: float, work: tuple[int, float]) -> None:
        """Take in that so many rows come now, and how many rows the busiest core has joined so far in how long."""
        if self._last_time is not None:
            self._offered.measure(rows, now - self._last_time)
        self._last_time = now
        joined, busy = work[0] - self._last_work[0], work[1] - self._last_work[1]
        if joined:
            self._served.measure(joined, busy)
            self._last_work = work

    @property
    def share(self) -> float:
        """Which part of the rows that come is let in, so that the cores are as busy as they should be."""
        if self._options.admission != SHED or not self._offered.value or not self._served.value:
            return 1.0
        return min(1.0, self._options.target_load * self._served.value / self._offered.value)

    def refused(self, times: NDArray[np.int64], backlog: int, room: float) -> NDArray[np.bool_]:
        """Which of these rows are not taken in, with so many rows still to be joined, and room for so many."""
        count = len(times)
        refused = np.zeros(count, np.bool_)
        if not self.never_stalls:
            return refused
        if self._options.admission == SHED:
            refused = self._shed(times)
        taken = np.flatnonzero(~refused)
        refused[taken[int(max(0, min(room, self._options.capacity - backlog))) :]] = True
        return refused

    def _shed(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        share = self.share
        if self._options.shedding != OLDEST:
            drawn: NDArray[np.bool_] = self._chance.random(len(times)) >= share
            return drawn
        refused = np.zeros(len(times), np.bool_)
        # the oldest have the shortest way to go in their window, and so the fewest to meet
        refused[np.argsort(times, kind="stable")[: len(times) - int(np.ceil(share * len(times)))]] = True
        return refused
