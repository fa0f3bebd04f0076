"""The choice of an algorithm, of the ring's order and of the stash's two streams, by what each is expected to cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from handfast.core.workload import Workload
from handfast.plan import CIRCULAR, PLAIN, STASHED

# Nanoseconds to take a piece of tuples from stage to stage: to store it apart, to hand it on, to look it up there.
HAND_ON = 750_000.0
_OVERLAP = 0.35  # of the work that one more CPU could take over: Python's lock keeps the rest, as measured there too
_PIECE, _SMALLEST = 1 << 14, 1 << 10  # how many tuples go from stage to stage together, at the most and at the least
_TURNS = 4  # pieces for each stage, so that all of them have something to do
_LONG = 4  # a piece is so large that it costs a stage so many times what handing it on does
_WORTH = 0.85  # what is better must cost no more than this part of what is there: each change has a price


@dataclass(frozen=True, slots=True)
class Layout:
    """How the streams are joined.

    Attributes:
        order: The streams along the ring; or the two of the stash, and then the others. Nothing for plain probing.
        cost: What a new tuple is expected to cost, in nanoseconds.
        least: Of how many tuples a piece is, at the least, that goes from stage to stage.
    """

    algorithm: str
    order: tuple[int, ...]
    cost: float = field(compare=False)
    least: int = field(compare=False, default=_SMALLEST)

    @property
    def stages(self) -> list[tuple[int, ...]]:
        """The streams whose windows are at each stage."""
        if self.algorithm == CIRCULAR:
            return [(stream,) for stream in range(len(self.order))]
        return [self.order[:2], *((stream,) for stream in self.order[2:])] if self.order else []


@dataclass(frozen=True, slots=True)
class Seen:
    """What a layout was chosen by.

    Attributes:
        arriving: How many new tuples came together.
        tuples: How many had come by then, of all streams.
    """

    workload: Workload
    arriving: int
    tuples: int


def choose(workload: Workload, algorithm: str | None, present: Layout | None, arriving: int) -> Layout:
    """The best layout for what comes: the present one, unless another is clearly better."""
    offered = [
        layout_for(workload, own, arriving) for own in ([algorithm] if algorithm else [PLAIN, CIRCULAR, STASHED])
    ]
    best = min(offered, key=lambda own: own.cost)
    if present == best:
        return best
    kept = laid_out(workload, present.algorithm, present.order, arriving) if present is not None else offered[0]
    return best if best.cost < _WORTH * kept.cost else kept


def layout_for(workload: Workload, algorithm: str, arriving: int) -> Layout:
    """The best layout of one algorithm."""
    order: tuple[int, ...] = ()
    if algorithm == CIRCULAR:
        order = workload.best_ring()
    elif algorithm == STASHED:
        pair = workload.best_stash()
        order = (*pair, *workload.others(pair))
    return laid_out(workload, algorithm, order, arriving)


def laid_out(workload: Workload, algorithm: str, order: tuple[int, ...], arriving: int) -> Layout:
    """The layout with what a new tuple is expected to cost, if so many come at a time."""
    if algorithm == PLAIN:
        return Layout(algorithm, order, workload.plain_cost())
    loads = ring_loads(workload, order) if algorithm == CIRCULAR else stash_loads(workload, order)
    hops = len(workload.live) - 1
    least = int(min(_PIECE, max(_SMALLEST, _LONG * HAND_ON * hops / sum(loads))))
    handed = handed_on(workload, len(loads), least, arriving) * HAND_ON
    at_once = 1 + _OVERLAP * (len(os.sched_getaffinity(0)) - 1)
    return Layout(algorithm, order, max(max(loads), sum(loads) / at_once) + handed, least)


def handed_on(workload: Workload, stages: int, least: int, arriving: int) -> float:
    """How often a piece is taken to a stage, for each new tuple."""
    together = max(1, arriving // len(workload.live))  # of one stream
    return (len(workload.live) - 1) / min(together, cut(together, stages, least))


def cut(count: int, stages: int, least: int) -> int:
    """Of how many tuples the pieces are in which so many new ones of a stream go through so many stages."""
    return min(_PIECE, max(least, -(-count // (_TURNS * stages))))


def ring_loads(workload: Workload, ring: Sequence[int]) -> list[float]:
    """What a new tuple costs at each stage of a ring."""
    loads = [0.0] * len(ring)
    for k, origin in enumerate(ring):
        for to, cost, _ in workload.hops((*ring[k:], *ring[:k])):
            loads[to] += workload.arriving[origin] * cost
    return loads


def stash_loads(workload: Workload, order: Sequence[int]) -> list[float]:
    """What a new tuple costs at the stage of the stash and at each other."""
    pair = (order[0], order[1])
    costs = [workload.stashed_hops(pair, origin) for origin in workload.streams]
    weighted = ([workload.arriving[origin] * cost for cost in own] for origin, own in enumerate(costs))
    return [sum(own) for own in zip(*weighted, strict=True)]
