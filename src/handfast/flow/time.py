"""Times as microseconds, and how far each stream has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NEVER = -(2**63)  # before every time: how far a stream has come that has sent nothing
END = 2**63 - 1  # after every time: how far a stream has come that has ended

_PER_MICRO = {"s": 1_000_000, "ms": 1_000, "us": 1}


def micros(column: pa.Array) -> NDArray[np.int64]:
    """A timestamp column in microseconds: finer times are floored, NULL is 0, what int64 cannot hold is at its ends."""
    unit = column.type.unit
    raw = _numbers(column.view(pa.int64()))
    if unit == "ns":
        return raw // 1_000
    scale = _PER_MICRO[unit]
    if scale == 1:
        return raw
    limit = np.iinfo(np.int64).max // scale
    return np.where((raw >= -limit) & (raw <= limit), raw * scale, np.sign(raw) * np.iinfo(np.int64).max)


def _numbers(column: pa.Array) -> NDArray[np.int64]:
    """Integers with 0 for NULL, seen in place where none is."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    numbers: NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
    return numbers


def days(column: pa.Array) -> NDArray[np.int64]:
    """A column of dates in days since 1970: the time of day that a date64 may have is floored, and NULL is 0."""
    raw = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    numbers: NDArray[np.int64] = pc.fill_null(raw, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers if pa.types.is_date32(column.type) else numbers // 86_400_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """The lower bound of all tuples that are still to come: of their time, and of their place in each stream.

    None of them has a time below `time`; `counts[i]` tuples of stream i come before each of them.
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
class LastHeard:
    """When each stream last sent something, by the clock, and the watermark by then: where `idle_timeout` is set.

    The watermark does not wait for a stream that has been silent for too long. It is kept because it never goes back,
    also not when such a stream sends again.
    """

    when: tuple[int, ...]
    watermark: int

    @staticmethod
    def encode(last: LastHeard | None) -> Any:
        """What JSON can hold."""
        return [last.when, last.watermark] if last is not None else None

    @staticmethod
    def decode(data: Any) -> LastHeard | None:
        return LastHeard(tuple(data[0]), data[1]) if data is not None else None


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
        """The highest time of each stream by its name, leaving out streams that have sent nothing or have ended."""
        return {name: high for name, high in zip(names, self.highest, strict=True) if high not in (NEVER, END)}

    def watermark(self, lateness: Sequence[int]) -> int:
        """The join's watermark: the least, over its streams, of the highest time minus the lateness."""
        return min(
            high if high in (NEVER, END) else high - late for high, late in zip(self.highest, lateness, strict=True)
        )
