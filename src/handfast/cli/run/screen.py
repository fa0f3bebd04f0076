"""What a running pipeline shows: live on a terminal, a line for every step anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table

from handfast.flow.metrics import Metrics
from handfast.spec.moment import format_moment

_UNJOINED = ("waiting", "late", "rejected", "corrupt")


@dataclass(frozen=True, slots=True)
class Status:
    """How far a pipeline has come: since it was started, on Spark since its checkpoint was.

    Attributes:
        steps: How many batches had rows.
        rows: Rows in, by stream.
        matches: Matches out.
        watermark: The join's watermark in microseconds, if it is known.
        waiting: Rows that wait for the watermark before they join; late, rejected, corrupt: rows that never will.
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
        """From a join's counters, and the rows that never came to it."""
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


class Screen:
    """Where a pipeline is shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal

    def say(self, line: str) -> None:
        """One line."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """While something takes its time."""
        if self._is_live:
            with self._console.status(what):
                yield
        else:
            self.say(what)
            yield

    @contextmanager
    def running(self) -> Iterator[Callable[[Status], None]]:
        """While steps are joined: call with how far it has come."""
        if not self._is_live:
            yield lambda status: self.say(f"step {status.steps}: {status}")
            return
        with Live(console=self._console, refresh_per_second=8, transient=True) as live:
            yield lambda status: live.update(_panel(status))

    def conclude(self, how: str, status: Status) -> None:
        """The last line."""
        self.say(f"{how}: {status}")


def _panel(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("steps", f"{status.steps:,}")
    for name, count in status.rows.items():
        table.add_row(f"rows of {name}", f"{count:,}")
    table.add_row("matches", f"{status.matches:,}")
    table.add_row("watermark", format_moment(status.watermark) if status.watermark is not None else "not known yet")
    for name in _UNJOINED:
        table.add_row(name, f"{getattr(status, name):,}")
    return table
