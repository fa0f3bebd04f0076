"""Rows in order: what a core has decided is held until nothing that stands before it can still be given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from handfast.core.span import window_span
from handfast.flow.block import Block
from handfast.flow.time import Horizon
from handfast.spec.join import BoundJoin

_MOST_BLOCKS = 64  # that are held before small ones are put together
_SMALL = 1 << 24  # bytes that blocks put together may have


class Held:
    """Rows of the result that wait, in blocks with the time and the `seen` of each row's `at`.

    A match is known as soon as its `at` has come. That an earlier preserved tuple matches nothing is known only after
    its last chance to match. So a row waits until every preserved tuple that can stand before its `at` has had its
    last chance. Stamps and the horizon alone decide that, so all cores give rows of the same ranks in the same step.
    """

    def __init__(self, join: BoundJoin) -> None:
        waits = join.spec.in_order and join.gives_unmatched
        self._spans = [window_span(join.spec.streams[k].window, k) for k in join.preserved] if waits else []
        self.blocks: list[Block] = []

    def release(self, decided: Iterable[Block], horizon: Horizon) -> Iterator[Block]:
        """The rows that can be given now, of those held so far and those just decided; the others are held."""
        if not self._spans:
            yield from decided
            return
        held: list[Block] = []
        for rows in self.blocks:
            yield from self._sift(rows, horizon, held)
        fresh: list[Block] = []
        for rows in decided:
            yield from self._sift(rows, horizon, fresh)
        held += _gathered(fresh)
        self.blocks = held if len(held) < _MOST_BLOCKS else _gathered(held)

    def _sift(self, rows: Block, horizon: Horizon, waiting: list[Block]) -> Iterator[Block]:
        """The rows that can be given; the others wait."""
        ready = np.logical_and.reduce([span.over_before(rows, horizon) for span in self._spans])
        if ready.any():
            yield rows.take(ready)
        if not ready.all():
            waiting.append(rows.take(~ready))


def _gathered(blocks: Iterable[Block]) -> list[Block]:
    """The same rows in fewer blocks: neighbours are merged as long as the result is small."""
    runs: list[list[Block]] = []
    size = _SMALL
    for block in blocks:
        size += block.batch.nbytes
        if size > _SMALL:
            runs.append([])
            size = block.batch.nbytes
        runs[-1].append(block)
    return [Block.concat(run) for run in runs]
