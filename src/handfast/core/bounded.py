"""Bounded inputs: a core run once from start to end in order of time, its state as small as the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from handfast.core.join_core import JoinCore
from handfast.flow.block import Block
from handfast.flow.time import END, Horizon
from handfast.plan import Plan

_SLICE = 1 << 16  # tuples of all streams that a core is fed at a time


def run_bounded(plan: Plan, pieces: Sequence[Sequence[Block]]) -> Iterator[pa.RecordBatch]:
    """The matches at one core of all its blocks, given by stream."""
    core = JoinCore(plan)
    blocks = [_sorted(own) for own in pieces]
    times = [block.times for block in blocks if block is not None]
    if len(times) < len(pieces) and not plan.join.gives_unmatched:
        return
    cuts = np.sort(np.concatenate(times))[_SLICE::_SLICE].tolist() if times else []
    starts = [0] * len(blocks)
    for cut in [*cuts, END]:
        arrivals: list[Block | None] = []
        for stream, block in enumerate(blocks):
            if block is None:
                arrivals.append(None)
                continue
            stop = len(block) if cut == END else int(np.searchsorted(block.times, cut))
            arrivals.append(block.slice(starts[stream], stop) if stop > starts[stream] else None)
            starts[stream] = stop
        # in rank order no later tuple has seen less than one of these
        seen = [block.seen for block in arrivals if block is not None and block.seen]
        counts = tuple(max(int(own[k].max()) for own in seen) if seen else 0 for k in range(len(blocks)))
        yield from core.step(arrivals, Horizon(cut, counts))


def _sorted(blocks: Sequence[Block]) -> Block | None:
    if not blocks:
        return None
    block = Block.concat(blocks)
    return block.take(np.argsort(block.times, kind="stable"))
