"""The constants by which the algorithm of three and more streams is chosen, fitted to what `benchmarks.multiway` timed.

What a new row costs is taken as a sum of what is done for it, times what each of these costs, and something that every
algorithm pays. How much is done is what the engine expects of the match rates that it saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from handfast.core import workload
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.multiway import choice
from handfast.engines.local.session import Session
from handfast.plan import CIRCULAR, PLAIN

OF_WORK = ("PROBE", "PARTNER", "PAIR", "STASH")
NAMES = (*OF_WORK, "HAND_ON", "of every algorithm")
_ROUNDS = 20_000  # of descent: as many as are needed, and far more


def of(session: Session) -> dict[str, float]:
    """How often each of the constants is paid for a new row, of whichever stream, as the session does it by now."""
    cores = session.cores
    assert isinstance(cores, LowLatency)
    finder = cores.cores[0].finder
    assert finder is not None and finder.layout is not None and finder.seen is not None
    layout, seen = finder.layout, finder.seen
    known = seen.workload
    ways = [known.best_way(origin) for origin in known.streams]  # found by the true constants, and remembered
    paid = {}
    for name in OF_WORK:
        with mock.patch.multiple(workload, **{own: float(own == name) for own in OF_WORK}):
            if layout.algorithm == PLAIN:
                paid[name] = sum(known.arriving[way[0]] * known.cost(way) for way in ways)
            elif layout.algorithm == CIRCULAR:
                paid[name] = sum(choice.ring_loads(known, layout.order))
            else:
                paid[name] = sum(choice.stash_loads(known, layout.order))
    stages = len(layout.stages)
    paid["HAND_ON"] = choice.handed_on(known, stages, layout.least, seen.arriving) if stages else 0.0
    return paid | {"of every algorithm": 1.0}


def fitted(rows: Sequence[tuple[dict[str, float], float]]) -> dict[str, float]:
    """The constants, none below zero, that explain what was paid for what with the least squares of relative errors."""
    cost = np.array([own for _, own in rows])
    paid = np.array([[own[name] for name in NAMES] for own, _ in rows]) / cost[:, None]
    scale = np.linalg.norm(paid, axis=0)
    scaled = paid / scale
    square, wanted = scaled.T @ scaled, scaled.T @ np.ones(len(cost))
    values = np.zeros(len(NAMES))
    for _ in range(_ROUNDS):
        for k in range(len(NAMES)):
            values[k] = max(0.0, values[k] + wanted[k] - square[k] @ values)
    return {name: float(value) for name, value in zip(NAMES, values / scale, strict=True)}


def of_rows(results: dict[str, Any]) -> dict[str, float]:
    """The constants, fitted to the CPU times of every algorithm in all of these results."""
    paid = [
        (own["coefficients"][name], own["ns a row"][name]["cpu"]["median"])
        for own in results.values()
        for name in own["coefficients"]
        if name != "automatic"
    ]
    return fitted(paid)


def present() -> dict[str, float]:
    """The constants as they stand in the code."""
    return {name: getattr(workload, name) for name in OF_WORK} | {"HAND_ON": choice.HAND_ON}
