"""What the demo shows: live on a terminal, plain lines anywhere else."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from handfast import __version__
from handfast.demo.judge import Judged, Match, Verdict
from handfast.demo.scenario import Scenario
from handfast.spec.window import format_duration, parse_window

_WIDTH = 100  # the widest line of running text
_EXAMPLES = 3  # matches to look at
_EXPLAIN_INDENT = 13  # where the second column of `hf.explain` begins


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch of Spark's did."""

    number: int
    rows: int
    matches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Summary:
    """All that the last page needs."""

    scenario: Scenario
    batches: Sequence[Batch]
    matches: Sequence[Match]
    judged: Judged
    verdict: Verdict
    seconds: float


class Screen:
    """Where the demo is shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal

    def introduce(self, scenario: Scenario) -> None:
        """Say in plain words what is joined."""
        workload = scenario.workload
        window = format_duration(parse_window(scenario.window, stream="r").length)
        self._title(f"handfast {__version__} demo: a join that Spark alone refuses")
        self._say(
            "Two streams of points: r with coordinates (x, y), s with coordinates (a, b). A row of r and a row of s match "
            f"if they are near each other in both coordinates, at most 10 apart, and less than {window} apart in time. "
            "This is the join by which CellJoin and handshake join were measured [HSJ §5.2]:"
        )
        self._code(_call(scenario))
        self._say(
            "Spark's own join of two streams needs an equality to find partners by. Here is none, so Spark stops with "
            "'Stream-stream join without equality predicate is not supported'. handfast runs the join inside Spark's "
            "stateful operator instead: with Spark's checkpoints and retries, and exact."
        )
        self._say(
            f"Each stream brings {scenario.rows:,} rows, {scenario.rate:,} a second for {_span(scenario.seconds)} of event "
            f"time, replayed as fast as Spark takes them. They arrive up to {scenario.DISORDER} out of order; lateness is "
            f"just that, so no row comes too late. About {_short(scenario.pairs)} pairs meet in the windows, and one in "
            f"{round(1 / workload.match_rate):,} matches: expect about {round(scenario.expected):,} matches. At the end "
            "they are compared with the oracle's, the definition of the join executed in plain Python, pair by pair."
        )

    def plan(self, settings: str, explained: str) -> None:
        """Show what `hf.configure` has set, and the plan with its reasons."""
        self._title("The plan")
        self._say(f"hf.configure(spark, cores=…) has set:\n{settings}")
        self._say(f"hf.explain(…) says:\n{explained}")

    @contextmanager
    def streaming(self, scenario: Scenario) -> Iterator[Callable[[Batch], None]]:
        """Show the progress of the run, batch by batch."""
        self._title("The run")
        if self._is_live:
            with _Dashboard(self._console, scenario) as dashboard:
                yield dashboard.show
            return
        rows = matches = 0

        def show(batch: Batch) -> None:
            nonlocal rows, matches
            rows, matches = rows + batch.rows, matches + batch.matches
            self._print(_line(batch, rows, scenario.rows_in, matches))

        self._print(_FIRST)
        yield show

    def waiting(self, why: str) -> AbstractContextManager[object]:
        """Show that something is under way."""
        if self._is_live:
            return self._console.status(why)
        self._print(f"… {why}")
        return nullcontext()

    def conclude(self, summary: Summary) -> None:
        """Show the summary, the verdict and the ways on."""
        self._title("The result")
        self._print(_figures(summary))
        if summary.matches:
            self._print(_examples(summary))
        self._verdict(summary)
        if summary.verdict.equal:
            self._next()

    def _verdict(self, summary: Summary) -> None:
        missing, extra = summary.verdict.missing, summary.verdict.extra
        if summary.verdict.equal:
            said = f"Equal: Spark, streaming, found exactly the oracle's {len(summary.matches):,} matches"
            self._print(Text(f"✔ {said}, in every column.", style="bold green"), "")
            return
        self._print(
            Text("✘ Not equal: Spark's matches are not the oracle's. This is a bug of handfast.", style="bold red"),
            *(f"  missing {len(missing):,}, e.g. {missing[0]}" for _ in missing[:1]),
            *(f"  too many {len(extra):,}, e.g. {extra[0]}" for _ in extra[:1]),
            f"  Please report it with this line: {_command(summary.scenario)}",
        )

    def _next(self) -> None:
        table = Table.grid(padding=(0, 2))
        for what, why in (
            ("README.md", "your own join in five minutes: on Spark, or on tables in this process"),
            ("docs/architecture.md", "how a tuple travels from the input to its matches"),
            ("src/handfast/oracle.py", "the definition that has just judged Spark, in plain Python"),
            ("hf.explain(…)", "in place of hf.join(…): the plan of your join, as above"),
            ("handfast demo --help", "other rows, rates, windows, seeds, cores"),
        ):
            table.add_row(Text(f"  {what}", style="bold"), why)
        self._print("Where to look next:", table)

    def _title(self, text: str) -> None:
        self._print("", Text(text, style="bold cyan"), Text("─" * len(text), style="cyan"))

    def _say(self, text: str) -> None:
        """Print running text; lines that belong to a column stay in it."""
        width = min(self._console.width, _WIDTH) if self._is_live else _WIDTH
        for line in text.rstrip().splitlines():
            indent = _EXPLAIN_INDENT if line.startswith("  ") else 2 if line.startswith("handfast: ") else 0
            self._print(textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False))
        self._print("")

    def _code(self, text: str) -> None:
        self._print(
            "", Syntax(text, "python", theme="ansi_dark", background_color="default") if self._is_live else text, ""
        )

    def _print(self, *what: Any) -> None:
        for one in what:
            self._console.print(one, markup=False, highlight=False, soft_wrap=not isinstance(one, Table))


class _Dashboard:
    """The progress of a run on a terminal: a bar over the input, and the last batch in a line below."""

    def __init__(self, console: Console, scenario: Scenario) -> None:
        self._scenario = scenario
        self._bar = Progress(
            SpinnerColumn(), BarColumn(bar_width=None), TaskProgressColumn(), TimeElapsedColumn(), expand=True
        )
        self._task = self._bar.add_task("", total=scenario.rows_in)
        self._rows = self._matches = 0
        self._line = Text(_FIRST, style="dim")
        self._live = Live(get_renderable=lambda: Group(self._bar, self._line), console=console)

    def __enter__(self) -> _Dashboard:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, batch: Batch) -> None:
        """Show a batch that has come to its end."""
        self._rows, self._matches = self._rows + batch.rows, self._matches + batch.matches
        self._line = Text(_line(batch, self._rows, self._scenario.rows_in, self._matches))
        self._bar.update(self._task, completed=self._rows)


_FIRST = "  the first batch takes longest: Spark starts its Python workers, and the predicate is compiled"


def _line(batch: Batch, rows: int, rows_in: int, matches: int) -> str:
    speed = batch.rows / batch.seconds
    width = len(f"{rows_in:,}")
    return f"  batch {batch.number + 1:>2}   {rows:>{width},} of {rows_in:,} rows in   {matches:>5,} matches   {speed:>7,.0f} rows/s"


def _call(scenario: Scenario) -> str:
    lines = [f"    {name}={value!r}," for name, value in scenario.keywords.items()]
    return "\n".join(["matches = hf.join(", '    {"r": r, "s": s},', *(line.replace("'", '"') for line in lines), ")"])


def _command(scenario: Scenario) -> str:
    s = scenario
    return f"handfast demo --rows {s.rows} --rate {s.rate} --window '{s.window}' --seed {s.seed} --cores {s.cores}"


def _figures(summary: Summary) -> Table:
    scenario, judged, batches = summary.scenario, summary.judged, summary.batches
    first, others = batches[0], batches[1:] or batches
    seconds = sum(batch.seconds for batch in others)
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("rows in", f"{scenario.rows_in:,}, {scenario.rows:,} of each stream")
    table.add_row("matches", f"{len(summary.matches):,} of about {_short(scenario.pairs)} pairs in the windows")
    table.add_row(
        "batches",
        f"{len(batches)}; the first took {first.seconds:.1f} s, the others {seconds / len(others):.2f} s each",
    )
    table.add_row("speed", f"{sum(batch.rows for batch in others) / seconds:,.0f} rows/s after the first batch")
    table.add_row("oracle", f"{len(judged.matches):,} matches, after {judged.seconds:.0f} s in plain Python")
    table.add_row("time", f"{summary.seconds:.0f} s in all, Spark's start and the oracle included")
    return table


def _examples(summary: Summary) -> Table:
    """The matches that came first, in the columns that are compared."""
    table = Table(title="the first of them", title_justify="left", title_style="")
    for title in ("r.id", "s.id", "x and a", "y and b", "ts of r and of s", "apart"):
        table.add_column(title, justify="right")
    columns = summary.scenario.bound.output_names
    rows = [dict(zip(columns, match, strict=True)) for match in summary.matches]
    for row in sorted(rows, key=lambda row: (row["match_time"], row["r_id"], row["s_id"]))[:_EXAMPLES]:
        table.add_row(
            f"{row['r_id']}",
            f"{row['s_id']}",
            f"{row['r_x']}  {row['s_a']}",
            f"{row['r_y']:.2f}  {row['s_b']:.2f}",
            f"{_clock(row['r_ts'])}  {_clock(row['s_ts'])}",
            f"{abs(row['r_ts'] - row['s_ts']) / 1e6:.3f} s",
        )
    return table


def _clock(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, UTC):%M:%S.%f}"[:-3]


def _span(seconds: float) -> str:
    return format_duration(round(seconds * 1_000_000))


def _short(count: float) -> str:
    return f"{count / 1e6:,.1f} million" if count >= 1e6 else f"{count:,.0f}"
