"""What the engine asks of its cores, however they pass tuples on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from handfast.flow.block import Block
from handfast.flow.metrics import CoreMetrics
from handfast.flow.time import Horizon


class Cores(Protocol):
    """The cores of one join and what moves between them."""

    @property
    def held(self) -> float:
        """For how long, at most, a match was held back for the sake of the order, in seconds."""
        ...

    def feed(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Take in new blocks, at most one of each stream; give the matches that are there now.

        `horizon` is what no later tuple can fall below.
        """
        ...

    def finish(self, admitted: Sequence[Block | None], horizon: Horizon) -> Iterator[pa.RecordBatch]:
        """Take in the last blocks, give all matches that are left, and stop."""
        ...

    def live(self, stream: int) -> int:
        """How many tuples of a stream are stored, each counted once."""
        ...

    def expired(self, stream: int) -> int:
        """How many tuples of a stream were taken in and are gone."""
        ...

    def stored_bytes(self) -> int:
        """How many bytes the stored tuples take."""
        ...

    def metrics(self) -> tuple[CoreMetrics, ...]:
        """What each core holds and has done."""
        ...

    def stop(self) -> None:
        """End every thread; nothing more can be fed."""
        ...
