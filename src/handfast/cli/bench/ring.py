"""A model of the ring of stages that joins many streams, for more stages than a machine has CPUs [CMJ Fig. 7].

Nothing is measured here. What a pair, a row and a piece of rows cost was measured before, and comes in with `Machine`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heapify, heapreplace

from handfast.errors import SpecError
from handfast.flow.ring import RingTopology


@dataclass(frozen=True, slots=True)
class Machine:
    """What a stage needs for its work, as measured on the machine that the model extrapolates.

    Attributes:
        pair_seconds: What trying one pair costs: other stages go on meanwhile, on other CPUs.
        piece_seconds: What taking a piece to a stage costs; Python does it for one stage at a time.
        row_seconds: What a new row costs before it goes to its first stage, and when it expires.
    """

    pair_seconds: float
    piece_seconds: float
    row_seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.pair_seconds < math.inf:
            raise SpecError(f"A pair must cost a positive number of seconds, not {self.pair_seconds!r}")
        if not (0 <= self.piece_seconds < math.inf and 0 <= self.row_seconds < math.inf):
            raise SpecError(
                f"A piece and a row must cost zero seconds or more, not {self.piece_seconds!r} and {self.row_seconds!r}"
            )


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes at a time: rows of each stream, in pieces, against windows in which each finds so many partners."""

    window: int
    rows: int
    piece: int
    partners: float


def throughput(machine: Machine, stages: int, cpus: int, feed: Feed) -> float:
    """New rows in a second, of all streams together, that so many stages join on so many CPUs."""
    if stages < 2:
        raise SpecError(f"The number of stages must be at least 2, not {stages!r}")
    if cpus < 1:
        raise SpecError(f"The number of CPUs must be at least 1, not {cpus!r}")
    ahead = machine.row_seconds * stages * feed.rows
    return stages * feed.rows / (ahead + _round_trip(machine, RingTopology(tuple(range(stages))), cpus, feed))


def _round_trip(machine: Machine, ring: RingTopology, cpus: int, feed: Feed) -> float:
    """The seconds until all pieces of all streams have gone round.

    A stage takes what has come furthest first, and does one thing at a time; a CPU takes the stage that has waited
    longest. What a stage finds is with the next one as soon as it has finished a piece.
    """
    stages = len(ring.order)
    waiting: list[list[tuple[int, float, float]]] = [[] for _ in ring.order]  # hop, rows, when they came
    for origin in ring.order:
        first = ring.way(origin)[0]
        waiting[first] += [(0, min(feed.piece, feed.rows - at), 0.0) for at in range(0, feed.rows, feed.piece)]
    free = [0.0] * cpus
    heapify(free)
    idle_from = [0.0] * stages  # when each stage has finished what it did last
    python, end = 0.0, 0.0  # when the interpreter is free; when the last piece was finished
    while any(waiting):
        now = free[0]
        ready = [
            max(idle_from[k], min(came for _, _, came in own)) if own else math.inf for k, own in enumerate(waiting)
        ]
        stage = min(range(stages), key=ready.__getitem__)
        now = max(now, ready[stage])
        hop, rows, came = max((own for own in waiting[stage] if own[2] <= now), key=lambda own: (own[0], -own[2]))
        waiting[stage].remove((hop, rows, came))
        python = max(python, now) + machine.piece_seconds
        done = python + rows * feed.window * machine.pair_seconds
        heapreplace(free, done)
        idle_from[stage], end = done, max(end, done)
        if hop + 2 < stages and rows * feed.partners >= 1:  # one hop more than this, and only if anyone is left
            waiting[(stage + 1) % stages].append((hop + 1, rows * feed.partners, done))
    return end
