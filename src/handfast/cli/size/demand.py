"""A demand, and the clock that circuits need to meet it [HSJ §6.5, 000 A.5]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from handfast.engines.hardware.options import EAGER
from handfast.errors import SpecError

_STATES = 5  # cycles of a step beside its two scans, which come one after the other [OGE Fig. 4.1.1]
_EAGER = 1  # cycles of a step beside its two scans at the same time
_MOST_CORES = 256  # that are proposed


@dataclass(frozen=True, slots=True)
class Demand:
    """So many tuples a second of each stream, against windows of so many tuples of R and of S."""

    rate: float
    windows: tuple[int, int]

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if min(self.windows) < 1:
            raise SpecError(f"A window has at least 1 tuple, not {min(self.windows)}")

    @staticmethod
    def of(rate: float, window: str) -> Demand:
        """The demand from its text: one window for both streams, or those of R and S with a comma between them."""
        try:
            sizes = [int(part.replace("_", "")) for part in window.split(",")]
        except ValueError:
            sizes = []
        if len(sizes) not in (1, 2):
            raise SpecError(f"A window is a number of tuples, or two with a comma between them, not {window!r}")
        return Demand(rate, (sizes[0], sizes[-1]))

    @property
    def pairs(self) -> float:
        """How many pairs of tuples have to be compared in a second: each new tuple meets the other stream's window."""
        return self.rate * sum(self.windows)

    def segments(self, cores: int) -> tuple[int, int]:
        """How many tuples of R and of S each of so many cores holds."""
        r, s = (-(-window // cores) for window in self.windows)
        return r, s

    def paper_mhz(self, cores: int) -> float:
        """The clock by the paper's formula: throughput = f ÷ the longer of both scans [000 A.5]."""
        return self.rate * max(self.segments(cores)) / 1e6

    def mhz(self, cores: int, scan: str) -> float:
        """The clock of a circuit of handfast: a step, which brings a tuple of each stream, takes so many cycles."""
        r, s = self.segments(cores)
        return self.rate * (_EAGER + max(r, s) if scan == EAGER else _STATES + r + s) / 1e6

    def proposed_cores(self, segment: int) -> list[int]:
        """Numbers of cores to look at: powers of two, and as many as it takes for segments of this size."""
        most = min(_MOST_CORES, max(self.windows))
        powers = [1 << k for k in range(most.bit_length()) if 1 << k <= most]
        fitting = -(-max(self.windows) // segment)
        return sorted({*powers, *([fitting] if fitting <= most else [])})


def check_rate(rate: float) -> None:
    """Refuse what is no rate."""
    if not 0 < rate < math.inf:
        raise SpecError(f"A rate is more than 0 tuples a second of each stream, not {rate:g}")


def check_clock(mhz: float) -> None:
    """Refuse what is no clock."""
    if not 0 < mhz < math.inf:
        raise SpecError(f"A clock is more than 0 MHz, not {mhz:g}")
