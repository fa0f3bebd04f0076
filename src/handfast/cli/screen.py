"""The screen of every command: live on a terminal, plain lines in a pipe or a log. Nothing else knows which it is."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

YES, NO = "✔", "✘"
_COLOURS = {YES: "green", NO: "red"}  # of whatever begins with them
_WIDTH = 100  # the widest line of running text


class Screen:
    """Where a command shows what it does."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal

    @staticmethod
    def of_output() -> Screen:
        """The screen on standard output."""
        return Screen(Console())

    @staticmethod
    def of_errors() -> Screen:
        """The screen on standard error, for commands whose output is their answer."""
        # a copy of it: Spark's log takes its place while Spark runs
        return Screen(Console(file=os.fdopen(os.dup(2), "w", buffering=1)))

    # --- lines and text ---------------------------------------------------------------------------------------------

    def say(self, line: str = "") -> None:
        """Show one line as it is, however long."""
        self._print(line)

    def title(self, text: str) -> None:
        """Show the title of a part."""
        self._print(Text(text, style="bold cyan"))
        self._print(Text("─" * len(text), style="cyan"))

    def paragraph(self, text: str, *lines: str, indent: int = 2) -> None:
        """Show running text, then lines of their own whose continuations stand `indent` columns further right."""
        width = min(self._console.width, _WIDTH) if self._is_live else _WIDTH
        self._print(textwrap.fill(text, width))
        for line in lines:
            rest = " " * (indent + 2)
            self._print(textwrap.fill("  " + line, width, subsequent_indent=rest, break_long_words=False))
        self._print("")

    def code(self, text: str, language: str = "python") -> None:
        """Show code."""
        if self._is_live:
            self._print(Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True))
        else:
            self._print(text)
        self._print("")

    def verdict(self, is_good: bool, text: str) -> None:
        """Show the line that everything before it leads to."""
        mark = YES if is_good else NO
        self._print(Text(f"{mark} {text}", style=f"bold {_COLOURS[mark]}"))

    # --- tables -----------------------------------------------------------------------------------------------------

    def facts(self, rows: Iterable[tuple[str, str]]) -> None:
        """Show a box of names and what they are."""
        table = Table(show_header=False, box=box.ROUNDED)
        table.add_column(style="bold")
        table.add_column()
        for row in rows:
            table.add_row(*row)
        self._print(table)

    def list(self, rows: Iterable[tuple[str, str]]) -> None:
        """Show a plain list of names and what they are."""
        rows = tuple(rows)
        width = max(len(name) for name, _ in rows)
        for name, what in rows:
            self._print(Text.assemble("  ", (f"{name:<{width}}", "bold"), f"  {what}"))

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        left: int = 0,
        boxed: bool = True,
    ) -> None:
        """Show a table whose first `left` columns are words, and whose others are figures; ✔ is green and ✘ red."""
        table = Table(box=box.ROUNDED if boxed else None, header_style="bold")
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="left" if place < left else "right", style="" if place else "bold")
        for row in rows:
            table.add_row(*(Text(cell, style=_COLOURS.get(cell[:1], "")) for cell in row))
        self._print(table)

    # --- while something takes its time -----------------------------------------------------------------------------

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show that something is under way."""
        with self.stages() as begins:
            begins(what)
            yield

    @contextmanager
    def stages(self) -> Iterator[Callable[[str], None]]:
        """Show what is under way, one thing after the other; the function given takes what begins."""
        if self._is_live:
            with self._console.status("") as status:
                yield lambda what: status.update(what)
        else:
            yield lambda what: self.say(f"… {what}")

    @contextmanager
    def bar(self, total: int, hint: str) -> Iterator[Callable[[int, str], None]]:
        """Show a bar with a line below it, `hint` at first; the function given takes how much is done and the line."""
        if not self._is_live:
            self.say(hint)
            yield lambda _, line: self.say(line)
            return
        bar = Progress(
            SpinnerColumn(), BarColumn(bar_width=None), TaskProgressColumn(), TimeElapsedColumn(), expand=True
        )
        task = bar.add_task("", total=total)
        with Live(Group(bar, Text(hint, style="dim")), console=self._console) as live:

            def show(done: int, line: str) -> None:
                bar.update(task, completed=done)
                live.update(Group(bar, Text(line)))

            yield show

    @contextmanager
    def runs(self, total: int, hint: str) -> Iterator[Callable[[int], None]]:
        """Show how many of so many runs are done; the function given takes that number. In a log, ten lines at most."""
        said = 0
        with self.bar(total, hint) as show:

            def done(count: int) -> None:
                nonlocal said
                if self._is_live or count * 10 // total > said:
                    said = count * 10 // total
                    show(count, f"{count:,} of {total:,} runs")

            yield done

    @contextmanager
    def figures(self) -> Iterator[Callable[[str, Iterable[tuple[str, str]]], None]]:
        """Show figures that change; the function given takes them as one line, and as names and figures."""
        if not self._is_live:
            yield lambda line, _: self.say(line)
            return
        with Live(console=self._console, refresh_per_second=8, transient=True) as live:

            def show(line: str, rows: Iterable[tuple[str, str]]) -> None:
                table = Table.grid(padding=(0, 2))
                table.add_column(style="bold")
                table.add_column(justify="right")
                for row in rows:
                    table.add_row(*row)
                live.update(table)

            yield show

    def _print(self, what: RenderableType) -> None:
        self._console.print(what, markup=False, highlight=False, soft_wrap=isinstance(what, str | Text))
