"""What the engine asks of its cores, whichever way tuples are forwarded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from handfast.flow.block import Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.time import Horizon


@dataclass(frozen=True, slots=True)
class Tally:
    """The tuples of a stream, each counted once: on its way to a core, stored at a core, or removed when it expired."""

    waiting: int
    live: int
    expired: int


class Cores(Protocol):
    """The cores of one join and what moves between them."""

    @property
    def held(self) -> float:
        """For how long, at most, a match was held back for the sake of the order, in seconds."""
        ...

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Take in new blocks, at most one of each stream; give the matches found by now.

        No later tuple is below the `horizon`.
        """
        ...

    def offer(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """As `feed`, but without waiting for the blocks to be joined."""
        ...

    def poll(self) -> Iterator[pa.RecordBatch]:
        """The matches that have been found since the last call."""
        ...

    def busiest(self) -> tuple[int, float]:
        """How many new tuples the busiest core has joined so far, and in how many seconds of work."""
        ...

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Take in the last blocks, give all matches that are left, and stop."""
        ...

    def tally(self, stream: int) -> Tally:
        """Where the tuples of a stream are at this moment."""
        ...

    def backlog(self) -> int:
        """How many tuples were offered and have not been joined."""
        ...

    def room(self) -> float:
        """How many tuples can be taken in without waiting, as far as the cores know."""
        ...

    def stored_bytes(self) -> int:
        """How many bytes the stored tuples take."""
        ...

    def metrics(self) -> tuple[CoreMetrics, ...]:
        """What each core holds and has done."""
        ...

    def algorithm(self) -> tuple[str, str] | None:
        """How three and more streams are joined, and why; None for two, and before the first tuples."""
        ...

    def stop(self) -> None:
        """End every thread; nothing more can be fed."""
        ...
