"""Times as microseconds, and how far each stream has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NEVER = -(2**63)  # before every time: what a stream has reached that has sent nothing
END = 2**63 - 1  # after every time: what a stream has reached that has ended

_PER_MICRO = {"s": 1_000_000, "ms": 1_000, "us": 1}


def micros(column: pa.Array) -> NDArray[np.int64]:
    """A timestamp column as microseconds, finer ones floored; NULL's is 0. What int64 cannot hold goes to its ends."""
    unit = column.type.unit
    raw: NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if unit == "ns":
        return raw // 1_000
    scale = _PER_MICRO[unit]
    if scale == 1:
        return raw
    limit = np.iinfo(np.int64).max // scale
    return np.where((raw >= -limit) & (raw <= limit), raw * scale, np.sign(raw) * np.iinfo(np.int64).max)


def days(column: pa.Array) -> NDArray[np.int64]:
    """A column of dates as days, the time of day floored that a date64 may have; NULL's is 0."""
    raw = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    numbers: NDArray[np.int64] = pc.fill_null(raw, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers if pa.types.is_date32(column.type) else numbers // 86_400_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """What no tuple still to come can fall below: a time, and in every stream a place.

    `counts[i]` is how many tuples of stream i are known to come before every one that is still to come.
    """

    time: int
    counts: tuple[int, ...]

    @staticmethod
    def start(streams: int) -> Horizon:
        return Horizon(NEVER, (0,) * streams)

    def advanced(self, other: Horizon) -> Horizon:
        """The further of the two."""
        return Horizon(max(self.time, other.time), tuple(map(max, self.counts, other.counts)))


@dataclass(frozen=True, slots=True)
class Attention:
    """Where the watermark does not wait for idle streams: when each was last heard of, by the clock, and the watermark.

    The watermark never goes back, though a stream that it did not wait for sends again.
    """

    heard: tuple[int, ...]
    watermark: int

    @staticmethod
    def encode(attention: Attention | None) -> Any:
        """As JSON takes it."""
        return [attention.heard, attention.watermark] if attention is not None else None

    @staticmethod
    def decode(data: Any) -> Attention | None:
        return Attention(tuple(data[0]), data[1]) if data is not None else None


@dataclass(frozen=True, slots=True)
class Progress:
    """The highest time seen of each stream: `NEVER` before its first tuple, `END` after its last."""

    highest: tuple[int, ...]

    @staticmethod
    def start(streams: int) -> Progress:
        return Progress((NEVER,) * streams)

    def advanced(self, other: Progress) -> Progress:
        """The further of the two, stream by stream."""
        return Progress(tuple(map(max, self.highest, other.highest)))

    def reached(self, names: Sequence[str]) -> dict[str, int]:
        """The highest times by the streams' names; of those that have sent something, and have not ended."""
        return {name: high for name, high in zip(names, self.highest, strict=True) if high not in (NEVER, END)}

    def watermark(self, lateness: Sequence[int]) -> int:
        """The join's watermark: the minimum over its streams of the highest time minus the lateness."""
        return min(
            high if high in (NEVER, END) else high - late for high, late in zip(self.highest, lateness, strict=True)
        )
