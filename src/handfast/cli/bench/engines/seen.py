"""What was seen of an engine: what it found, how fast, how soon, and how much of it switched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

ORACLE, LOCAL, SPARK, CIRCUIT = ENGINES = ("oracle", "local", "Spark", "circuit")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from a match's last row to the match."""

    median: float
    most: float  # the 99th percentile

    @staticmethod
    def of(seconds: Sequence[float]) -> Latency | None:
        """That of many matches; None of none."""
        if not len(seconds):
            return None
        return Latency(float(np.median(seconds)), float(np.quantile(seconds, 0.99)))


@dataclass(frozen=True, slots=True)
class Seen:
    """An engine on a workload.

    Attributes:
        engine: Its name.
        ran: What ran, in a few words.
        matches: What it found.
        rate: Rows of all streams in a second.
        latency: None where there is none.
        work: What a row costs it, in words; of a circuit, how much of it switches.
    """

    engine: str
    ran: str
    matches: pa.Table
    rate: float
    latency: Latency | None
    work: str = ""


def rate_of(rows: float) -> str:
    """Rows a second, for people."""
    return f"{rows:,.0f}"


def time_of(seconds: float) -> str:
    """A time, for people."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds * 1e9:,.3g} ns"
