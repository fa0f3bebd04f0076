"""Admission control: how many of the rows that come are admitted, decided before anything is stamped [OGE §4.4].

What is admitted is joined, however long that takes. What is not is shed: counted, kept to be read, and it moves no
watermark.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from handfast.engines.local.options import OLDEST, OVERFLOW, SHED, LocalOptions

_MEMORY = 0.8  # the weight of a rate so far against a new measurement


class Rate:
    """Something per second, as measured."""

    def __init__(self) -> None:
        self.value: float | None = None

    def measure(self, amount: float, seconds: float) -> None:
        """Take in a measurement: so much in so many seconds."""
        if seconds <= 0:
            return
        now = amount / seconds
        self.value = now if self.value is None else _MEMORY * self.value + (1 - _MEMORY) * now


class AdmissionControl:
    """Admits rows as its cores can take them, and sheds the others."""

    def __init__(self, options: LocalOptions) -> None:
        self._options = options
        self._chance = np.random.default_rng(0)
        self._offered, self._served = Rate(), Rate()
        self._last_time: float | None = None
        self._last_busiest = (0, 0.0)

    @property
    def never_stalls(self) -> bool:
        """Whether rows are shed rather than kept waiting."""
        return self._options.admission in (OVERFLOW, SHED)

    def observe(self, rows: int, now: float, busiest: tuple[int, float]) -> None:
        """Take in how many rows come now, and what the busiest core has done so far: rows joined, seconds of work."""
        if self._last_time is not None:
            self._offered.measure(rows, now - self._last_time)
        self._last_time = now
        joined, busy = busiest[0] - self._last_busiest[0], busiest[1] - self._last_busiest[1]
        if joined:
            self._served.measure(joined, busy)
            self._last_busiest = busiest

    @property
    def share(self) -> float:
        """The part of the rows that is admitted, so that the cores are as busy as they should be."""
        if self._options.admission != SHED or not self._offered.value or not self._served.value:
            return 1.0
        return min(1.0, self._options.target_load * self._served.value / self._offered.value)

    def shed(self, times: NDArray[np.int64], backlog: int, room: float) -> NDArray[np.bool_]:
        """Which of these rows are shed, with so many rows still to be joined, and room for so many more."""
        shed = np.zeros(len(times), np.bool_)
        if not self.never_stalls:
            return shed
        if self._options.admission == SHED:
            shed = self._beyond_share(times)
        admitted = np.flatnonzero(~shed)
        shed[admitted[int(max(0, min(room, self._options.capacity - backlog))) :]] = True
        return shed

    def _beyond_share(self, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        share = self.share
        if self._options.shedding != OLDEST:
            drawn: NDArray[np.bool_] = self._chance.random(len(times)) >= share
            return drawn
        shed = np.zeros(len(times), np.bool_)
        # the oldest will leave their window first, and so have the fewest partners still to come
        shed[np.argsort(times, kind="stable")[: len(times) - int(np.ceil(share * len(times)))]] = True
        return shed
