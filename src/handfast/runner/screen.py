"""What a running pipeline shows: live on a terminal, a line for every step anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Status:
    """How far a pipeline has come since it was started.

    Attributes:
        steps: How many batches had rows.
        rows: Rows in, by stream.
        matches: Matches out.
        watermark: The join's watermark in microseconds, if it is known.
        waiting: Rows that wait for the watermark before they join; late, rejected, corrupt: rows that never will. None
            where the engine does not say.
        some_late: Whether there were late rows, where the engine does not say how many.
    """

    steps: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    matches: int = 0
    watermark: int | None = None
    waiting: int | None = None
    late: int | None = None
    some_late: bool = False
    rejected: int = 0
    corrupt: int = 0

    def __str__(self) -> str:
        rows = ", ".join(f"{count:,} of {name}" for name, count in self.rows.items())
        parts = [f"{rows or 'no rows'} in, {self.matches:,} match{'' if self.matches == 1 else 'es'} out"]
        if self.watermark is not None:
            parts.append(f"watermark {moment(self.watermark)}")
        for name in ("waiting", "late", "rejected", "corrupt"):
            count = getattr(self, name)
            if count:
                parts.append(f"{count:,} {name}")
        if self.some_late:
            parts.append("some rows came too late")
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


def moment(micros: int) -> str:
    """A time as people read it."""
    try:
        time = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    except OverflowError:
        return f"{micros} us"
    return time.isoformat(sep=" ", timespec="milliseconds" if time.microsecond else "seconds")


def _panel(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("steps", f"{status.steps:,}")
    for name, count in status.rows.items():
        table.add_row(f"rows of {name}", f"{count:,}")
    table.add_row("matches", f"{status.matches:,}")
    table.add_row("watermark", moment(status.watermark) if status.watermark is not None else "not known yet")
    for name in ("waiting", "late", "rejected", "corrupt"):
        count = getattr(status, name)
        if count is not None:
            table.add_row(name, f"{count:,}")
    if status.some_late:
        table.add_row("late", "some")
    return table
