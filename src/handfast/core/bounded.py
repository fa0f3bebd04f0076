"""Bounded inputs: a core run once from start to end in order, its state as small as the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast.core.join_core import JoinCore
from handfast.flow.block import Block
from handfast.flow.time import END, NEVER, Horizon
from handfast.plan import Plan
from handfast.spec.join import ARRIVAL

_SLICE = 1 << 16  # tuples of all streams that a core is fed at a time


def run_bounded(plan: Plan, pieces: Sequence[Sequence[Block]]) -> Iterator[pa.RecordBatch]:
    """The matches at one core of all its blocks, given by stream."""
    core = JoinCore(plan)
    for arrivals, horizon in slices(plan, pieces):
        yield from core.step(arrivals, horizon)


def slices(plan: Plan, pieces: Sequence[Sequence[Block]]) -> Iterator[tuple[list[Block | None], Horizon]]:
    """The blocks, given by stream, as they come in order: slice by slice, each with what no later tuple falls below."""
    by_arrival = plan.join.spec.order == ARRIVAL
    blocks = [Block.concat(own) if own else None for own in pieces]
    places = [_places(block, by_arrival=by_arrival) for block in blocks]
    blocks = [
        b.take(np.argsort(p, kind="stable")) if b is not None else None for b, p in zip(blocks, places, strict=True)
    ]
    places = [np.sort(own) for own in places]
    if any(block is None for block in blocks) and not plan.join.gives_unmatched:
        return
    cuts = np.sort(np.concatenate(places))[_SLICE::_SLICE].tolist()
    starts = [0] * len(blocks)
    for cut in [*cuts, END]:
        arrivals: list[Block | None] = []
        for stream, block in enumerate(blocks):
            if block is None:
                arrivals.append(None)
                continue
            stop = len(block) if cut == END else int(np.searchsorted(places[stream], cut))
            arrivals.append(block.slice(starts[stream], stop) if stop > starts[stream] else None)
            starts[stream] = stop
        # in rank order no later tuple has seen less than one of these
        seen = [block.seen for block in arrivals if block is not None and block.seen]
        counts = tuple(max(int(own[k].max()) for own in seen) if seen else 0 for k in range(len(blocks)))
        yield arrivals, Horizon(NEVER if by_arrival and cut != END else cut, counts)


def _places(block: Block | None, *, by_arrival: bool) -> NDArray[np.int64]:
    """What a core is fed in the order of: the tuples' times, or their ranks."""
    if block is None:
        return np.empty(0, np.int64)
    if not by_arrival:
        return block.times
    ranks: NDArray[np.int64] = np.sum(block.seen, axis=0)
    return ranks
