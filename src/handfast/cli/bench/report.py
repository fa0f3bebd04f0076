"""What `handfast bench scaling` runs, and what it says: sizes, and lines of figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MINUTES_15 = 900.0


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: enough to measure, or only enough to see that it runs."""

    turns: int
    samples: int
    scan_window: int
    blocks: int
    latencies: int
    slow_window: int
    steps: int
    clocked: float


WHOLE = Size(
    turns=5, samples=80, scan_window=800_000, blocks=12, latencies=300, slow_window=60_000, steps=40, clocked=15.0
)
QUICK = Size(turns=2, samples=4, scan_window=100_000, blocks=3, latencies=40, slow_window=6_400, steps=4, clocked=0.1)


@dataclass
class Report:
    """What was measured, as it is printed and written down."""

    setting: dict[str, Any]
    lines: list[tuple[str, str, str]] = field(default_factory=list)  # what, figure, goal
    figures: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, figure: str, goal: str = "", values: Mapping[str, Any] | None = None) -> None:
        self.lines.append((what, figure, goal))
        self.figures.update(values or {})
