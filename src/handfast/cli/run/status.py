"""How far a running pipeline has come: rows in, matches out, and rows that did not join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from handfast.cli.screen import Screen
from handfast.flow.metrics import Metrics
from handfast.spec.moment import format_moment

_UNJOINED = ("waiting", "late", "rejected", "corrupt")


@dataclass(frozen=True, slots=True)
class Status:
    """How far a pipeline has come, counted since its start; on Spark, since the start of its checkpoint.

    Attributes:
        steps: Batches that had rows.
        rows: Rows in, by stream.
        matches: Matches out.
        watermark: The join's watermark in microseconds, if it is known.
        waiting: Rows that wait for the watermark before they join.
        late, rejected, corrupt: Rows that will never join.
    """

    steps: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    matches: int = 0
    watermark: int | None = None
    waiting: int = 0
    late: int = 0
    rejected: int = 0
    corrupt: int = 0

    @staticmethod
    def of(steps: int, metrics: Metrics, corrupt: int) -> Status:
        """From a join's counters, and the number of rows that could not be read."""
        streams = metrics.streams
        return Status(
            steps,
            {name: own.rows_in for name, own in streams.items()},
            metrics.matches,
            metrics.watermark,
            waiting=sum(own.waiting for own in streams.values()),
            late=sum(own.late for own in streams.values()),
            rejected=sum(own.rejected for own in streams.values()),
            corrupt=corrupt,
        )

    def __str__(self) -> str:
        if not self.steps:
            return "no rows came"
        rows = ", ".join(f"{count:,} of {name}" for name, count in self.rows.items())
        parts = [f"{rows} in, {self.matches:,} match{'' if self.matches == 1 else 'es'} out"]
        if self.watermark is not None:
            parts.append(f"watermark {format_moment(self.watermark)}")
        for name in _UNJOINED:
            count = getattr(self, name)
            if count:
                parts.append(f"{count:,} {name}")
        return "; ".join(parts)


@contextmanager
def running(screen: Screen) -> Iterator[Callable[[Status], None]]:
    """While steps are joined: call with how far the pipeline has come."""
    with screen.figures() as show:
        yield lambda status: show(f"step {status.steps}: {status}", _figures(status))


def _figures(status: Status) -> Iterator[tuple[str, str]]:
    yield "steps", f"{status.steps:,}"
    for name, count in status.rows.items():
        yield f"rows of {name}", f"{count:,}"
    yield "matches", f"{status.matches:,}"
    yield "watermark", format_moment(status.watermark) if status.watermark is not None else "not known yet"
    for name in _UNJOINED:
        yield name, f"{getattr(status, name):,}"
