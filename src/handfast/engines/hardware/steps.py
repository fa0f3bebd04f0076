"""What a circuit is fed: stamped tuples in the order of their rank, in steps, then the flush."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from handfast.engines.hardware.layout import JoinLayout, numbers
from handfast.flow.block import Block
from handfast.flow.topology import R, S
from handfast.spec.window import CountWindow, Window

Places = NDArray[np.int64]
Tuple = tuple[int, int]  # a stream, and a tuple's place in it

EMPTY = 0  # a slot without a tuple


def lowest_held(window: Window, old: Block, at: Block, stream: int) -> Places:
    """For each tuple of `at`, the first place of the stream `old` that its window holds when the tuple arrives."""
    seen = at.seen[stream]
    if isinstance(window, CountWindow):
        return np.maximum(seen - window.rows, 0)
    return np.minimum(np.searchsorted(old.times, at.times - window.length, side="right"), seen)


def in_steps(blocks: Sequence[Block]) -> Iterator[tuple[Tuple | None, Tuple | None]]:
    """The tuples in the order of rank, in steps: one tuple, or one of R and the one of S that comes right after it."""
    ranks = [np.sum(block.seen, axis=0) for block in blocks]
    origins = np.repeat((R, S), [len(own) for own in ranks])
    places = np.concatenate([np.arange(len(own)) for own in ranks])
    order = np.argsort(np.concatenate(ranks), kind="stable")
    waiting: Tuple | None = None  # a tuple of R that may take the next one of S along
    for stream, place in zip(origins[order].tolist(), places[order].tolist(), strict=True):
        if stream == S:
            yield waiting, (S, place)
            waiting = None
            continue
        if waiting is not None:
            yield waiting, None
        waiting = (R, place)
    if waiting is not None:
        yield waiting, None


def brought(blocks: Sequence[Block], numbers: Iterable[int]) -> tuple[list[int], list[int]]:
    """The places of the tuples of R and of S that these steps bring."""
    steps = list(in_steps(blocks))
    places: tuple[list[int], list[int]] = ([], [])
    for number in numbers:
        for each in steps[number]:
            if each is not None:
                places[each[0]].append(each[1])
    return places


def flush_steps(cores: int, sizes: tuple[int, int]) -> int:
    """How many steps that shift both streams bring the last tuples of both past each other."""
    steps = 0
    while steps // sizes[R] + steps // sizes[S] < cores - 1:
        steps += 1
    return steps


def words(layout: JoinLayout, blocks: Sequence[Block], lows: Sequence[Places], flush: int) -> list[int]:
    """All steps as the numbers that enter the circuit."""
    slots = []
    for stream, (block, low) in enumerate(zip(blocks, lows, strict=True)):
        own = layout.of(stream)
        columns = [numbers(block.batch.column(column.name), column.type) for column in own.columns]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(block))
        slots.append(
            [own.pack(seq, at, values) for seq, (at, values) in enumerate(zip(low.tolist(), rows, strict=True))]
        )
    fed = [
        layout.pack_step(slots[R][r[1]] if r is not None else None, slots[S][s[1]] if s is not None else None)
        for r, s in in_steps(blocks)
    ]
    return fed + [layout.pack_step(EMPTY, EMPTY)] * flush
