"""What the demo says, page by page: what is joined, the plan, the batches, the backfill, and what was verified."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from handfast import __version__
from handfast.cli.demo import buckets
from handfast.cli.demo.backfill import BUCKETS, OURS, Backfill, Run
from handfast.cli.demo.live import Batch, Live
from handfast.cli.demo.scenario import Scenario
from handfast.cli.screen import NO, YES, Screen
from handfast.spec.window import format_duration

_EXAMPLES = 3  # matches to look at
_EXPLAIN_INDENT = 13  # where the second column of `hf.explain` begins


def introduce(screen: Screen, scenario: Scenario) -> None:
    """Say in plain words what is joined."""
    window = format_duration(scenario.window_micros)
    screen.title(f"handfast {__version__} demo: a join that Spark alone refuses")
    screen.paragraph(
        "Two streams of points: r with coordinates (x, y), s with coordinates (a, b). A row of r and a row of s "
        f"match if they are near each other, at most {scenario.near} apart in both coordinates, and less than {window} "
        "apart in time. CellJoin and handshake join were measured by this join [HSJ §5.2]:"
    )
    screen.code(_call(scenario))
    screen.paragraph(
        "Spark's own join of two streams needs an equality to find partners by. There is none here, so Spark stops "
        "with 'Stream-stream join without equality predicate is not supported'. handfast runs the join inside Spark's "
        "stateful operator instead: with Spark's checkpoints and retries, and exact."
    )
    screen.paragraph(
        f"Each stream brings {scenario.rows:,} rows, {scenario.rate:,} a second for {scenario.seconds:,.6g} s of "
        f"event time, replayed as fast as Spark takes them. They arrive up to {scenario.DISORDER} out of order; "
        "the lateness is just that, so no row comes too late. The values are random: of some "
        f"{_about(scenario.pairs)} pairs that meet in the windows, one in {_about(1 / scenario.match_rate)} should "
        f"match, which makes about {_about(scenario.pairs * scenario.match_rate)}. At the end the matches are "
        "compared with those of the oracle: the definition of the join, executed in plain Python, pair by pair."
    )


def plan(screen: Screen, settings: str, explained: str) -> None:
    """Show what `hf.configure` has set, and the plan with its reasons."""
    screen.title("The plan")
    screen.paragraph("hf.configure(spark, cores=…) has set", settings.removeprefix("handfast: "))
    screen.paragraph("hf.explain(…) says", *explained.splitlines(), indent=_EXPLAIN_INDENT)


@contextmanager
def batches(screen: Screen, rows: int) -> Iterator[Callable[[Sequence[Batch]], None]]:
    """Show the progress over so many rows; the function given takes the batches so far, after every one."""
    screen.title("Live")
    hint = "  first batch: Spark starts its Python workers, and the predicate is compiled"
    with screen.bar(rows, hint) as show:
        yield lambda done: show(sum(batch.rows for batch in done), _line(done, rows))
    screen.say()


def live(screen: Screen, scenario: Scenario, lived: Live) -> None:
    """Show what the live part found, and what the oracle says of it."""
    screen.facts(_facts(scenario, lived))
    if lived.matches:
        screen.say("The first matches")
        headings = ("r.id", "s.id", "r.x, s.a", "r.y, s.b", "r.ts, s.ts", "apart")
        screen.table(headings, _examples(scenario, lived))
    missing, extra = lived.verdict.missing, lived.verdict.extra
    if lived.verdict.equal:
        screen.verdict(True, f"Equal: Spark's streaming result is the oracle's, all {len(lived.matches):,} matches")
    else:
        screen.verdict(False, "Not equal: Spark's streaming result is not the oracle's")
        if missing:
            screen.say(f"  {len(missing):,} missing, the first: {missing[0]}")
        if extra:
            screen.say(f"  {len(extra):,} too many, the first: {extra[0]}")
    screen.say()


def introduce_backfill(screen: Screen, scenario: Scenario) -> None:
    """Say what the backfill joins, and what it is compared with."""
    history = scenario.history
    screen.title("The backfill")
    screen.paragraph(
        f"The same condition and window over history in Parquet files: {scenario.backfill:,} rows of each stream, "
        f"{history.rate:,} a second. Some {_about(scenario.history_pairs)} pairs meet in the windows, too many for "
        "the oracle. But tables at rest Spark can join by itself, if its user cuts space and time into buckets by "
        "hand, so that there is an equality:"
    )
    screen.code(buckets.query(scenario), language="sql")
    screen.paragraph(
        "hf.join takes the same call as before, now with batch DataFrames. Both joins run twice, in turns, and the "
        "faster run of each counts. Spark reduces each result to a count and a checksum: the sum of xxhash64 over all "
        "columns of all matches, which is the same in any order."
    )


def ran(screen: Screen, run: Run) -> None:
    """Show one run of the backfill."""
    found = f"{run.matches:>9,} matches, checksum {_short(run.checksum)}"
    screen.say(f"{run.join:<{len(BUCKETS)}} {run.seconds:5.1f} s {found}")


@dataclass(frozen=True, slots=True)
class Summary:
    """All that the last page needs."""

    scenario: Scenario
    live: Live
    backfill: Backfill | None
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether both parts found what is right."""
        return self.live.verdict.equal and (self.backfill is None or self.backfill.equal)


def conclude(screen: Screen, summary: Summary) -> None:
    """Show the verdict on the backfill, the table of all that was joined, and the ways on."""
    scenario, filled = summary.scenario, summary.backfill
    if filled is not None:
        _judge_backfill(screen, filled)
    screen.title("The result")
    headings = ("what was joined", "rows", "matches", "seconds", "rows/s", "verified")
    screen.table(headings, _result(summary.live, filled), left=1)
    if filled is not None:
        screen.say(f"{OURS} takes {filled.ratio:.1f} times as many rows/s as {BUCKETS}")
    screen.say(f"The demo took {summary.seconds:.0f} s with {scenario.cores} cores, Spark's start included")
    screen.say()
    if summary.equal:
        _next(screen)
    else:
        screen.say(f"This is a bug of handfast; please report it with this line: {_command(scenario)}")


def _judge_backfill(screen: Screen, filled: Backfill) -> None:
    if filled.equal:
        found = f"all {filled.best(OURS).matches:,} matches"
        screen.verdict(True, f"Equal: the backfill's result is that of Spark's own join, {found}")
    else:
        screen.verdict(False, "Not equal: the backfill's result is not that of Spark's own join")
        for run in filled.runs:
            screen.say(f"  {run.join}: {run.matches:,} matches, checksum {_short(run.checksum)}")
    screen.say()


def _result(lived: Live, filled: Backfill | None) -> Iterator[tuple[str, ...]]:
    """The rows of the last table."""
    rows, seconds = sum(batch.rows for batch in lived.batches), sum(batch.seconds for batch in lived.batches)
    mark = YES if lived.verdict.equal else NO
    figures = f"{rows:,}", f"{len(lived.matches):,}", f"{seconds:.1f}", _rate(rows, seconds)
    yield f"live: {OURS}", *figures, f"{mark} oracle"
    if filled is None:
        return
    mark = YES if filled.equal else NO
    for join, name in ((OURS, OURS), (BUCKETS, "Spark")):
        best = filled.best(join)
        figures = f"{filled.rows:,}", f"{best.matches:,}", f"{best.seconds:.1f}", _rate(filled.rows, best.seconds)
        yield f"backfill: {name}", *figures, f"{mark} checksum"


def _next(screen: Screen) -> None:
    screen.say("Where to look next")
    screen.list(
        (
            ("README.md", "your own join in five minutes, on Spark or without"),
            ("docs/architecture.md", "how a tuple travels from the input to its matches"),
            ("src/handfast/judge/oracle.py", "what has just judged Spark"),
            ("hf.explain(…)", "in place of hf.join(…): the plan of your own join"),
            ("handfast demo --help", "other rows, rates, windows, seeds, cores"),
        )
    )


def _short(checksum: int) -> str:
    """The last 64 bits of a checksum, as people compare them; all of its bits are compared by `Backfill.equal`."""
    return f"{checksum % 2**64:016x}"


def _line(done: Sequence[Batch], rows: int) -> str:
    """The last batch and the sums so far."""
    rows_in, matches = sum(batch.rows for batch in done), sum(batch.matches for batch in done)
    taken = f"{rows_in:>{len(f'{rows:,}')},} of {rows:,} rows in"
    return f"  batch {len(done):>2}   {taken}   {matches:>5,} matches   {_speed(done[-1:]):>9} rows/s"


def _speed(done: Sequence[Batch]) -> str:
    return _rate(sum(batch.rows for batch in done), sum(batch.seconds for batch in done))


def _rate(rows: int, seconds: float) -> str:
    return f"{rows / seconds:,.0f}"


def _call(scenario: Scenario) -> str:
    """The call of `hf.join` as a user would write it."""
    on, *others = (f'{name}="{value}"' for name, value in scenario.keywords.items())
    head, *tail = textwrap.wrap(on, 44, drop_whitespace=False)
    lines = ['{"r": r, "s": s},', f'{head}"', *(f'   "{part}"' for part in tail)]
    lines[-1] = lines[-1].removesuffix('"') + ","
    return "\n    ".join(["matches = hf.join(", *lines, *(f"{line}," for line in others)]) + "\n)"


def _command(scenario: Scenario) -> str:
    s = scenario
    return (
        f"handfast demo --rows {s.rows} --rate {s.rate} --window '{s.window}' --seed {s.seed} --cores {s.cores} "
        f"--backfill {s.backfill}"
    )


def _facts(scenario: Scenario, lived: Live) -> Iterator[tuple[str, str]]:
    judged, (first, *others) = lived.judged, lived.batches
    yield "rows in", f"{scenario.rows_in:,}, {scenario.rows:,} of each stream"
    yield "matches", f"{len(lived.matches):,} of about {_about(scenario.pairs)} pairs in the windows"
    yield "first batch", f"{first.seconds:.1f} s for {first.rows:,} rows"
    if others:
        each = sum(batch.seconds for batch in others) / len(others)
        yield f"{len(others)} more", f"{each:.1f} s each, {_speed(others)} rows/s"
    yield "oracle", f"{len(judged.matches):,} matches, after {judged.seconds:.0f} s of plain Python beside Spark"


def _examples(scenario: Scenario, lived: Live) -> Iterator[tuple[str, ...]]:
    """The matches of lowest match_time, in the columns that are compared."""
    columns = scenario.bound.output_names
    rows = [dict(zip(columns, match, strict=True)) for match in lived.matches]
    for row in sorted(rows, key=lambda row: (row["match_time"], row["r_id"], row["s_id"]))[:_EXAMPLES]:
        yield (
            str(row["r_id"]),
            str(row["s_id"]),
            f"{row['r_x']}, {row['s_a']}",
            f"{row['r_y']:.2f}, {row['s_b']:.2f}",
            f"{_clock(row['r_ts'])}, {_clock(row['s_ts'])}",
            f"{abs(row['r_ts'] - row['s_ts']) / 1_000_000:.3f} s",
        )


def _clock(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, UTC):%M:%S.%f}"[:-3]


def _about(count: float) -> str:
    """A number in two digits: 40 billion, 24 million, 60,000, 400."""
    rough = float(f"{count:.2g}")
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if rough >= size:
            return f"{rough / size:g} {name}"
    return f"{rough:,.0f}"
