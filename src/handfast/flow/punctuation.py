"""Punctuations: what every core is told with a run of a stream's rows, whether it gets any of them or not."""

from __future__ import annotations

import json
from dataclasses import dataclass

from handfast.flow.time import Horizon, Progress


@dataclass(frozen=True, slots=True)
class Punctuation:
    """How far the streams have come, and what came to the door.

    Attributes:
        rows: How many rows of the stream came to the door.
        progress: The highest times of the run.
        place: Of the run among those of its batch and stream, where arrival orders: input partition, number in it.
        horizon: What no tuple still to come can fall below, where a sequencer knows it.
        waiting: How many tuples of the stream wait there for their place to be final.
    """

    rows: int
    progress: Progress
    place: tuple[int, int] = (0, 0)
    horizon: Horizon | None = None
    waiting: int = 0

    def encode(self) -> bytes:
        horizon = [self.horizon.time, self.horizon.counts] if self.horizon is not None else None
        return json.dumps([self.rows, self.progress.highest, self.place, horizon, self.waiting]).encode()

    @staticmethod
    def decode(data: bytes) -> Punctuation:
        rows, highest, place, horizon, waiting = json.loads(data)
        at = Horizon(horizon[0], tuple(horizon[1])) if horizon is not None else None
        return Punctuation(rows, Progress(tuple(highest)), tuple(place), at, waiting)
