"""Punctuations: what every core is told about a run of a stream's rows, whether it gets any of them or not."""

from __future__ import annotations

import json
from dataclasses import dataclass

from handfast.flow.time import Horizon, Progress


@dataclass(frozen=True, slots=True)
class Punctuation:
    """How far the streams have come with a run of rows, and how many rows it had.

    Attributes:
        rows: How many rows of the stream were in the run, admitted or not.
        progress: The highest time of each stream in the run.
        place: The run's place among those of its stream in the batch: input partition, and number in it.
        horizon: The lower bound of all tuples still to come; only a sequencer knows it.
        waiting: How many tuples of the stream wait at the sequencer for their place to be final.
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
