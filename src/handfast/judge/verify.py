"""Whether engines agree with the definition: several of them and the oracle, on the same bounded data."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from handfast import api
from handfast.engines.hardware.options import HardwareOptions
from handfast.engines.local.options import LocalOptions
from handfast.errors import HandfastError, SpecError
from handfast.flow.batch import as_table, schema_of
from handfast.judge import oracle
from handfast.judge.difference import Difference, difference
from handfast.judge.grid import text
from handfast.judge.rows import Values, multiset, plain_values, result_of, table_of, tables_of
from handfast.spec.join import BoundJoin, JoinSpec, Stream
from handfast.spec.window import CountWindow, TimeWindow

LIMIT = 20_000_000  # pairs that the oracle tries
_PAIRS_A_SECOND = 1_000_000  # of the oracle, about
_PATIENCE = 60.0  # seconds to spend on making an example smaller
_SHOWN = 50  # rows of an example

Tables = Mapping[str, pa.Table]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Example:
    """Rows on which an engine differs from the oracle, as few as were found."""

    tables: dict[str, pa.Table]
    difference: Difference
    is_smallest: bool  # no single row can be left out

    def __str__(self) -> str:
        count = ", ".join(f"{len(rows)} of {name}" for name, rows in self.tables.items())
        smaller = "no row can be left out" if self.is_smallest else "there may be a smaller one"
        lines = [f"An example with few rows ({count}; {smaller}):"]
        for name, rows in self.tables.items():
            lines += ["", f"  {name}", *("    " + line for line in text(rows.slice(0, _SHOWN)).splitlines())]
            if len(rows) > _SHOWN:
                lines.append(f"    … and {len(rows) - _SHOWN} more")
        return "\n".join([*lines, "", *("  " + line if line else line for line in str(self.difference).splitlines())])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one engine made of the data."""

    engine: str
    seconds: float
    matches: int
    missing: int
    extra: int
    refusal: str = ""
    example: Example | None = None

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.extra or self.refusal)

    @property
    def verdict(self) -> str:
        if self.refusal:
            return f"cannot: {self.refusal}"
        return "the same" if self.agrees else f"differs: {self.missing:,} missing, {self.extra:,} extra"


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` found; true if all engines agree with the oracle."""

    rows: dict[str, int]
    matches: int
    pairs: int
    seconds: float
    outcomes: tuple[Outcome, ...]

    def __bool__(self) -> bool:
        return all(outcome.agrees for outcome in self.outcomes)

    def __str__(self) -> str:
        rows = ", ".join(f"{count:,} of {name}" for name, count in self.rows.items())
        wrong = [outcome.engine for outcome in self.outcomes if not outcome.agrees]
        heading = (
            "All engines agree with the oracle" if self else f"Not in agreement with the oracle: {'; '.join(wrong)}"
        )
        oracle_did = (
            "oracle",
            f"{self.matches:,} matches",
            f"{self.seconds:.2f} s",
            f"tried {self.pairs:,} pairs of {rows}",
        )
        table = [
            oracle_did,
            *(
                (o.engine, "" if o.refusal else f"{o.matches:,} matches", f"{o.seconds:.2f} s", o.verdict)
                for o in self.outcomes
            ),
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"  {name:<{widths[0]}}  {matches:>{widths[1]}}  {seconds:>{widths[2]}}  {verdict}"
            for name, matches, seconds, verdict in table
        ]
        examples = [f"\n{o.engine}. {o.example}" for o in self.outcomes if o.example is not None]
        return "\n".join([heading, *lines, *examples])


def verify(
    inputs: Mapping[str, Any],
    spec: JoinSpec | None = None,
    *,
    engines: Iterable[Any] = ("local", "local:3"),
    limit: int = LIMIT,
    progress: Progress | None = None,
    **asked: Any,
) -> Report:
    """Run a join on several engines and by its definition, and report whether all find the same matches.

    An engine that differs is shown with an example of as few rows as can be found.

    Args:
        inputs: The streams by name: tables, or batch DataFrames of Spark, which are collected.
        spec: The join as a value, instead of `hf.join`'s keywords.
        engines: "local", "local:3" (three cores), `hf.LocalOptions(…)`; "hardware", `hf.HardwareOptions(…)`; "spark" or
            "spark:3" for inputs that are DataFrames; a Spark session.
        limit: How many pairs the oracle may try: it tries all that meet in the windows, one by one, in plain Python.
        progress: Told what is going on; by default it is written to stderr if that is a terminal.
        **asked: The join as `hf.join`'s keywords.
    """
    say = progress or _to_terminal
    join_spec = api.spec_of(inputs, spec, asked)
    runs = [_run(engine, inputs) for engine in engines]
    if not runs:
        raise SpecError("verify needs at least one engine: engines=['local']")
    tables = {name: _collected(inputs[name], name) for name in join_spec.names}
    bound = join_spec.bind({name: schema_of(table.schema) for name, table in tables.items()})
    pairs = count_pairs(bound, tables)
    if pairs > limit:
        raise SpecError(
            f"The oracle would try {pairs:,} pairs, some {_time(pairs / _PAIRS_A_SECOND)}, and the limit is {limit:,}; "
            f"give fewer rows (a few minutes of the data), shorter windows, or limit={pairs}"
        )
    say(f"the oracle tries {pairs:,} pairs, some {_time(pairs / _PAIRS_A_SECOND)}")
    start = perf_counter()
    expected = oracle.result(bound, tables_of(tables))
    seconds = perf_counter() - start
    judged = [_judge(name, run, bound, tables, expected, say) for name, run in runs]
    rows = {name: len(table) for name, table in tables.items()}
    return Report(rows, len(expected), pairs, seconds, tuple(judged))


def count_pairs(join: BoundJoin, tables: Tables) -> int:
    """How many combinations of tuples meet in the windows: what the oracle tries."""
    named = zip(join.spec.streams, join.times, strict=True)
    times = [_times(tables[stream.name], stream, column) for stream, column in named]
    total = 0
    for origin, arrivals in enumerate(times):
        met = np.ones(len(arrivals))
        for stream, others in enumerate(times):
            if stream != origin:
                window = join.spec.streams[stream].window
                # at equal times the stream named first came first
                came = np.searchsorted(others, arrivals, side="right" if stream < origin else "left")
                if isinstance(window, CountWindow):
                    met *= np.minimum(came, window.rows)
                else:
                    met *= came - np.searchsorted(others, arrivals - window.length, side="right")
        total += int(met.sum())
    return total


# --- engines --------------------------------------------------------------------------------------------------------

_Run = Callable[[JoinSpec, Tables], pa.Table]


def _run(engine: Any, inputs: Mapping[str, Any]) -> tuple[str, _Run]:
    """An engine's name and the way to run it."""
    if isinstance(engine, LocalOptions):
        return _named(_cores("local", engine.cores), engine), lambda spec, tables: api.join(
            tables, spec, options=engine
        )
    if engine == "hardware":
        engine = HardwareOptions()
    if isinstance(engine, HardwareOptions):
        return _named("hardware", engine), lambda spec, tables: api.join(
            tables, spec, engine="hardware", options=engine
        )
    known = "'local', 'local:3', 'hardware', 'spark' or a Spark session"
    if not isinstance(engine, str):
        if not type(engine).__module__.startswith("pyspark."):
            raise SpecError(f"An engine is {known}, not {engine!r}")
        return _on_spark(engine, 2)
    name, colon, said = engine.partition(":")
    if name not in ("local", "spark") or (colon and not said.isdigit()):
        raise SpecError(f"An engine is {known}, not {engine!r}")
    if name == "local":
        return _run(LocalOptions(cores=int(said or 1)), inputs)
    session = next((data.sparkSession for data in inputs.values() if _is_spark(data)), None)
    if session is None:
        raise SpecError("The inputs are no Spark DataFrames; give the session itself: engines=['local', spark]")
    return _on_spark(session, int(said or 2))


def _on_spark(spark: Any, cores: int) -> tuple[str, _Run]:
    own = spark.newSession()  # its settings are ours, the caller's stay as they are
    own.conf.set("spark.sql.session.timeZone", "UTC")
    api.configure(own, cores=cores, quiet=True)

    def run(spec: JoinSpec, tables: Tables) -> pa.Table:
        frames = {name: own.createDataFrame(table) for name, table in tables.items()}
        joined: pa.Table = api.join(frames, spec).toArrow()
        return joined

    return _cores("spark", cores), run


def _named(name: str, options: LocalOptions | HardwareOptions) -> str:
    """An engine's name, and whatever is not as usual."""
    usual = type(options)()
    said = "cores" if isinstance(options, LocalOptions) else ""  # by the name
    names = [field.name for field in fields(options) if field.name != said]
    asked = [(own, getattr(options, own)) for own in names if getattr(options, own) != getattr(usual, own)]
    return ", ".join([name, *(f"{own}={value!r}" for own, value in asked)])


def _cores(engine: str, cores: int) -> str:
    return f"{engine}, {cores} core{'' if cores == 1 else 's'}"


def _judge(name: str, run: _Run, join: BoundJoin, tables: Tables, expected: list[Values], say: Progress) -> Outcome:
    say(f"{name} joins")
    start = perf_counter()
    try:
        found = run(join.spec, tables)
    except SpecError:
        raise
    except HandfastError as error:
        return Outcome(name, perf_counter() - start, 0, 0, 0, refusal=str(error))
    seconds = perf_counter() - start
    ours, right = multiset(result_of(found)), multiset(expected)
    missing, extra = right - ours, ours - right
    example = None
    if missing or extra:
        wrong = next(iter(missing or extra))
        example = _example(run, join, tables, found.schema, wrong, say)
    return Outcome(name, seconds, len(found), missing.total(), extra.total(), example=example)


# --- the smallest example -------------------------------------------------------------------------------------------


def _example(run: _Run, join: BoundJoin, tables: Tables, schema: pa.Schema, wrong: Values, say: Progress) -> Example:
    """As few rows as can be found on which an engine still differs."""
    end = perf_counter() + _PATIENCE

    def differs(fewer: Tables) -> bool:
        return multiset(result_of(run(join.spec, fewer))) != multiset(oracle.result(join, tables_of(fewer)))

    near = _near(join, tables, wrong)
    start = near if near is not None and differs(near) else tables
    cut, is_smallest = smallest(start, differs, lambda: perf_counter() > end, say)
    right = table_of(oracle.result(join, tables_of(cut)), schema)
    shown = run(join.spec, cut)
    readable = table_of(result_of(shown), shown.schema)
    return Example(cut, difference(readable, right), is_smallest)


def smallest(
    tables: Tables, differs: Callable[[Tables], bool], is_over: Callable[[], bool], say: Progress
) -> tuple[dict[str, pa.Table], bool]:
    """Cut rows away while the difference remains; whether it came to where no single row can be left out."""
    left = dict(tables)
    cut = max(map(len, left.values()), default=0)
    told = perf_counter()
    while cut:
        changed = False
        for name in left:
            start = 0
            while start < len(left[name]):
                if is_over():
                    return left, False
                table = left[name]
                fewer = {**left, name: pa.concat_tables([table.slice(0, start), table.slice(start + cut)])}
                if differs(fewer):
                    left, changed = fewer, True
                else:
                    start += cut
                if perf_counter() - told > 1:
                    told = perf_counter()
                    say(f"cutting rows away: {sum(map(len, left.values())):,} are left")
        if not (cut == 1 and changed):  # at the end again, until no row can go
            cut //= 2
    return left, True


def _near(join: BoundJoin, tables: Tables, wrong: Values) -> dict[str, pa.Table] | None:
    """The rows in the windows before one wrong match, where windows go by time."""
    windows = [stream.window for stream in join.spec.streams]
    at = wrong[-1]
    if not isinstance(at, int) or not all(isinstance(window, TimeWindow) for window in windows):
        return None
    longest = max(window.length for window in windows if isinstance(window, TimeWindow))
    chosen = {}
    for name, column in zip(join.spec.names, join.times, strict=True):
        times = plain_values(tables[name][column])
        chosen[name] = tables[name].filter(pa.array([t is not None and at - longest < t <= at for t in times]))
    return chosen


# --- pieces ---------------------------------------------------------------------------------------------------------


def _is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.")


def _collected(data: Any, name: str) -> pa.Table:
    if _is_spark(data):
        if data.isStreaming:
            raise SpecError(
                f"Stream {name!r} is a streaming DataFrame, and verify needs all rows at once; use spark.read"
            )
        data = data.toArrow()
    return as_table(data, name)


def _times(table: pa.Table, stream: Stream, column: str) -> NDArray[np.int64]:
    known = [time for time in plain_values(table[column]) if not oracle.is_rejected(stream, time)]
    return np.sort(np.array(known, np.int64))


def _time(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _to_terminal(line: str) -> None:
    if sys.stderr.isatty():
        print(f"handfast: {line}", file=sys.stderr)
