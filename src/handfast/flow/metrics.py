"""What became of every row: counters that always add up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """What became of one stream's rows: rows_in = waiting + live + expired + late + shed + rejected, at every moment.

    Attributes:
        rows_in: How many came to the door.
        waiting: Admitted, but without a final place yet: only where windows count tuples.
        live: Stored in the window.
        expired: Joined and gone; also those that could never match and were not stored.
        late: Refused, because the watermark had passed them.
        shed: Refused, because there was too much to do.
        rejected: Refused, because they had no valid time.
    """

    rows_in: int
    waiting: int
    live: int
    expired: int
    late: int
    shed: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """A join's counters: by stream, and of the matches it has given."""

    streams: dict[str, StreamMetrics]
    matches: int
    watermark: int | None  # microseconds; None as long as a stream has sent nothing
