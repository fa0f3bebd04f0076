"""What the demo shows: live on a terminal, plain lines anywhere else."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from handfast import __version__
from handfast.cli.demo.judge import Judged, Verdict
from handfast.cli.demo.scenario import Scenario
from handfast.judge.rows import Values
from handfast.spec.window import format_duration, parse_duration

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
    matches: Sequence[Values]
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
        window = format_duration(parse_duration(scenario.window, what="The window"))
        self._title(f"handfast {__version__} demo: a join that Spark alone refuses")
        self._say(
            "Two streams of points: r with coordinates (x, y), s with coordinates (a, b). A row of r and a row of s "
            f"match if they are near each other, at most 10 apart in both coordinates, and less than {window} apart in "
            "time. CellJoin and handshake join were measured by this join [HSJ §5.2]:"
        )
        self._code(_call(scenario))
        self._say(
            "Spark's own join of two streams needs an equality to find partners by. Here is none, so Spark stops with "
            "'Stream-stream join without equality predicate is not supported'. handfast runs the join inside Spark's "
            "stateful operator instead: with Spark's checkpoints and retries, and exact."
        )
        self._say(
            f"Each stream brings {scenario.rows:,} rows, {scenario.rate:,} a second for {scenario.seconds:,.6g} s of "
            f"event time, replayed as fast as Spark takes them. They arrive up to {scenario.DISORDER} out of order; "
            "the lateness is just that, so no row comes too late. The values are random: of some "
            f"{_about(scenario.pairs)} pairs that meet in the windows, one in {_about(1 / scenario.match_rate)} should "
            f"match, which makes about {_about(scenario.pairs * scenario.match_rate)}. At the end the matches are "
            "compared with those of the oracle: the definition of the join, executed in plain Python, pair by pair."
        )

    def plan(self, settings: str, explained: str) -> None:
        """Show what `hf.configure` has set, and the plan with its reasons."""
        self._title("The plan")
        self._say("hf.configure(spark, cores=…) has set", settings.removeprefix("handfast: "))
        self._say("hf.explain(…) says", *explained.splitlines(), indent=_EXPLAIN_INDENT)

    @contextmanager
    def streaming(self, rows: int) -> Iterator[Callable[[Sequence[Batch]], None]]:
        """Show the progress over so many rows; the function given takes the batches so far, after every one."""
        self._title("The run")
        hint = "  first batch: Spark starts its Python workers, and the predicate is compiled"
        if self._is_live:
            bar = Progress(
                SpinnerColumn(), BarColumn(bar_width=None), TaskProgressColumn(), TimeElapsedColumn(), expand=True
            )
            task = bar.add_task("", total=rows)
            with Live(Group(bar, Text(hint, style="dim")), console=self._console) as live:

                def show(batches: Sequence[Batch]) -> None:
                    bar.update(task, completed=sum(batch.rows for batch in batches))
                    live.update(Group(bar, Text(_line(batches, rows))))

                yield show
        else:
            self._print(hint)
            yield lambda batches: self._print(_line(batches, rows))
        self._print("")

    def waiting(self, why: str) -> AbstractContextManager[object]:
        """Show that something is under way."""
        if self._is_live:
            return self._console.status(why)
        self._print(f"… {why}", "")
        return nullcontext()

    def conclude(self, summary: Summary) -> None:
        """Show the summary, the verdict and the ways on."""
        self._title("The result")
        self._print(_figures(summary))
        if summary.matches:
            self._print("The first matches", _examples(summary))
        missing, extra = summary.verdict.missing, summary.verdict.extra
        if summary.verdict.equal:
            said = f"Equal: Spark's streaming result is the oracle's, all {len(summary.matches):,} matches"
            self._print(Text(f"✔ {said}", style="bold green"), "")
            self._next()
            return
        self._print(Text("✘ Not equal: Spark's streaming result is not the oracle's", style="bold red"))
        if missing:
            self._print(f"  {len(missing):,} missing, the first: {missing[0]}")
        if extra:
            self._print(f"  {len(extra):,} too many, the first: {extra[0]}")
        self._print(f"  This is a bug of handfast; please report it with this line: {_command(summary.scenario)}")

    def _next(self) -> None:
        self._print("Where to look next")
        for what, why in (
            ("README.md", "your own join in five minutes, on Spark or without"),
            ("docs/architecture.md", "how a tuple travels from the input to its matches"),
            ("src/handfast/judge/oracle.py", "what has just judged Spark"),
            ("hf.explain(…)", "in place of hf.join(…): the plan of your own join"),
            ("handfast demo --help", "other rows, rates, windows, seeds, cores"),
        ):
            self._print(Text.assemble("  ", (f"{what:<24}", "bold"), why))

    def _title(self, text: str) -> None:
        self._print(Text(text, style="bold cyan"), Text("─" * len(text), style="cyan"))

    def _say(self, first: str, *lines: str, indent: int = 2) -> None:
        """Print running text, then lines with their continuations so far to the right."""
        width = min(self._console.width, _WIDTH) if self._is_live else _WIDTH
        self._print(textwrap.fill(first, width))
        for line in lines:
            rest = " " * (indent + 2)
            self._print(textwrap.fill("  " + line, width, subsequent_indent=rest, break_long_words=False))
        self._print("")

    def _code(self, text: str) -> None:
        self._print(
            Syntax(text, "python", theme="ansi_dark", background_color="default") if self._is_live else text, ""
        )

    def _print(self, *what: Any) -> None:
        for one in what:
            self._console.print(one, markup=False, highlight=False, soft_wrap=not isinstance(one, Table))


def _line(batches: Sequence[Batch], rows: int) -> str:
    """The last batch and the sums so far."""
    rows_in, matches = sum(batch.rows for batch in batches), sum(batch.matches for batch in batches)
    taken = f"{rows_in:>{len(f'{rows:,}')},} of {rows:,} rows in"
    return f"  batch {len(batches):>2}   {taken}   {matches:>5,} matches   {_speed(batches[-1:]):>9,.0f} rows/s"


def _speed(batches: Sequence[Batch]) -> float:
    return sum(batch.rows for batch in batches) / sum(batch.seconds for batch in batches)


def _call(scenario: Scenario) -> str:
    """The call of `hf.join` as a user would write it."""
    on, *others = (f'{name}="{value}"' for name, value in scenario.keywords.items())
    head, *tail = textwrap.wrap(on, 44, drop_whitespace=False)
    lines = ['{"r": r, "s": s},', f'{head}"', *(f'   "{part}"' for part in tail)]
    lines[-1] = lines[-1].removesuffix('"') + ","
    return "\n    ".join(["matches = hf.join(", *lines, *(f"{line}," for line in others)]) + "\n)"


def _command(scenario: Scenario) -> str:
    s = scenario
    return f"handfast demo --rows {s.rows} --rate {s.rate} --window '{s.window}' --seed {s.seed} --cores {s.cores}"


def _figures(summary: Summary) -> Table:
    scenario, judged, (first, *others) = summary.scenario, summary.judged, summary.batches
    table = Table(show_header=False, box=box.ROUNDED)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("rows in", f"{scenario.rows_in:,}, {scenario.rows:,} of each stream")
    table.add_row("matches", f"{len(summary.matches):,} of about {_about(scenario.pairs)} pairs in the windows")
    table.add_row("first batch", f"{first.seconds:.1f} s for {first.rows:,} rows")
    if others:
        each = sum(batch.seconds for batch in others) / len(others)
        table.add_row(f"{len(others)} more", f"{each:.1f} s each, {_speed(others):,.0f} rows/s")
    table.add_row(
        "oracle", f"{len(judged.matches):,} matches, after {judged.seconds:.0f} s of plain Python beside Spark"
    )
    table.add_row("time", f"{summary.seconds:.0f} s in all, Spark's start included")
    return table


def _examples(summary: Summary) -> Table:
    """The matches of lowest match_time, in the columns that are compared."""
    table = Table(box=box.ROUNDED)
    for title in ("r.id", "s.id", "r.x, s.a", "r.y, s.b", "r.ts, s.ts", "apart"):
        table.add_column(title, justify="right")
    columns = summary.scenario.bound.output_names
    rows = [dict(zip(columns, match, strict=True)) for match in summary.matches]
    for row in sorted(rows, key=lambda row: (row["match_time"], row["r_id"], row["s_id"]))[:_EXAMPLES]:
        table.add_row(
            str(row["r_id"]),
            str(row["s_id"]),
            f"{row['r_x']}, {row['s_a']}",
            f"{row['r_y']:.2f}, {row['s_b']:.2f}",
            f"{_clock(row['r_ts'])}, {_clock(row['s_ts'])}",
            f"{abs(row['r_ts'] - row['s_ts']) / 1_000_000:.3f} s",
        )
    return table


def _clock(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, UTC):%M:%S.%f}"[:-3]


def _about(count: float) -> str:
    """A number in two digits: 24 million, 60,000, 400."""
    rough = float(f"{count:.2g}")
    return f"{rough / 1_000_000:g} million" if rough >= 1_000_000 else f"{rough:,.0f}"
