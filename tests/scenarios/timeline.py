"""Reads the timelines beside it, and runs one through an engine.

A timeline is a table: one row per tuple, in the order of arrival. `batch` cuts it into steps, `at` is the event time in
seconds, `name` is what the expected rows call the tuple, and every other column is the tuple's own. Every other key of
a file is a keyword of `JoinSpec` (`lateness` is zero where it is not said), or: `section` of docs/semantics.md,
`title`, `columns` and their types, `note`, the rows that are `late` and `rejected`, what comes `after` every batch, and
all `matches`. A row of the result is written as the names of its tuples, `-` where it has none, and its match_time.
"""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import handfast as hf
import handfast.testing as hft
from handfast.judge import oracle
from handfast.spec.join import BoundJoin, JoinSpec
from tests.judges.rows import by_duckdb, result_of, rows_of, schemas_of, tables_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {"batch": "int", "stream": "string", "name": "string", "at": "timestamp"}
_KEYWORDS = inspect.signature(JoinSpec).parameters.keys() - {"streams", "on", "time", "valid_from", "valid_to"}
Rows = list[tuple[Any, ...]]
Names = list[tuple[str, ...]]


@dataclass(frozen=True)
class Scenario:
    """One timeline, and what must come out of it.

    Attributes:
        section: Where docs/semantics.md shows it.
        text: The file as it stands.
        words: The keywords of the join.
        steps: The tables of every batch by stream.
        clock: The processing time of every batch, in microseconds.
        matches: All rows of the result, by the names of their tuples, and match_time in seconds.
        after: The rows that come after each batch, where that matters.
        late: Names of the tuples that come too late.
        rejected: Names of the tuples that are refused on admission.
    """

    section: int
    title: str
    text: dict[str, Any]
    words: dict[str, Any]
    steps: list[dict[str, pa.Table]]
    clock: list[int]
    matches: Names
    after: list[Names] | None
    late: set[str]
    rejected: set[str]

    @cached_property
    def spec(self) -> JoinSpec:
        return JoinSpec(self.text.get("streams", ["r", "s"]), **self.words)

    @property
    def tables(self) -> dict[str, pa.Table]:
        """Every stream's rows in the order of arrival."""
        return {name: pa.concat_tables([step[name] for step in self.steps]) for name in self.spec.names}

    @property
    def join(self) -> BoundJoin:
        return self.spec.bind(schemas_of(self.tables))

    def admission(self, steps: int | None = None) -> oracle.Admission:
        """What becomes of the rows of the first steps on admission, says the oracle."""
        return oracle.admit(self.join, [tables_of(step) for step in self.steps[:steps]], self.clock[:steps])

    def admitted(self) -> dict[str, pa.Table]:
        """The rows that are not too late, for engines that take bounded tables."""
        rows = {stream: rows_of(table) for stream, table in self.tables.items()}
        keep = {stream: [row["name"] not in self.late for row in rows[stream]] for stream in rows}
        return {stream: table.filter(pa.array(keep[stream], pa.bool_())) for stream, table in self.tables.items()}

    def named(self, result: Rows) -> Names:
        """A result by the names of its tuples."""
        columns = self.join.output_names
        shown = [columns.index(f"{stream}_name") for stream in self.spec.names if f"{stream}_name" in columns]
        return [(*(row[k] or "-" for k in shown), _seconds(row[-1])) for row in result]

    def decided(self, steps: int) -> Names:
        """What the oracle says is decided after so many steps."""
        admission = self.admission(steps)
        return self.named(oracle.result(self.join, oracle.final(self.join, admission), admission.watermark))


def run_local(scenario: Scenario, cores: int) -> list[Names]:
    """What the local engine gives after each batch, and at the end."""
    schemas = {name: table.schema for name, table in scenario.tables.items()}
    clock = (micros / 1_000_000 for micros in scenario.clock)
    options = hf.LocalOptions(cores=cores)
    with hf.session(scenario.spec, schemas, options=options, clock=lambda: next(clock)) as session:
        given = [session.push_together(step) for step in scenario.steps]
    given.append(session.close())
    return [scenario.named(result_of(pa.Table.from_batches(batches, session.schema))) for batches in given]


def _whole(cores: int) -> Callable[[Scenario], Names]:
    return lambda scenario: [row for rows in run_local(scenario, cores) for row in rows]


ENGINES: dict[str, Callable[[Scenario], Names]] = {
    "oracle": lambda scenario: scenario.named(oracle.result(scenario.join, scenario.admission().admitted)),
    "duckdb": lambda scenario: scenario.named(by_duckdb(scenario.admitted(), **scenario.words)),
    "local": _whole(1),
    "local, three cores": _whole(3),
}


def scenarios() -> list[Scenario]:
    """All timelines of this folder, by section."""
    return sorted(
        (read(path) for path in Path(__file__).parent.glob("*.toml")), key=lambda own: (own.section, own.title)
    )


def read(path: Path) -> Scenario:
    """The timeline in one file."""
    text = tomllib.loads(path.read_text())
    asked = {name: text[name] for name in _KEYWORDS if name in text}
    asked |= {name: int(text[name] * 1_000_000) for name in ("valid_from", "valid_to") if name in text}  # in seconds
    words = {"on": text["on"], "time": "at", "lateness": "0 seconds"} | asked
    streams = text.get("streams", ["r", "s"])
    timeline = hft.table(text["timeline"], types=_TYPES | text["columns"], base=EPOCH)
    batches = sorted(set(timeline["batch"].to_pylist()))
    return Scenario(
        text["section"],
        text["title"],
        text,
        words,
        [{name: _rows(timeline, batch, name) for name in streams} for batch in batches],
        [int(now * 1_000_000) for now in text.get("clock", [0] * len(batches))],
        _names(text["matches"]),
        [_names(rows) for rows in text["after"]] if "after" in text else None,
        set(text.get("late", [])),
        set(text.get("rejected", [])),
    )


def _names(lines: list[str]) -> Names:
    return [tuple(line.split()) for line in lines]


def count(names: Names) -> Counter[tuple[str, ...]]:
    """The rows as a multiset."""
    return Counter(names)


def _rows(timeline: pa.Table, batch: int, stream: str) -> pa.Table:
    mine = timeline.filter((pc.field("batch") == batch) & (pc.field("stream") == stream))
    return mine.drop_columns(["batch", "stream"])


def _seconds(micros: int) -> str:
    return f"{Decimal(micros) / 1_000_000:f}"
