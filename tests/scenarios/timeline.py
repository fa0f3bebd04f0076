"""Reads the timelines beside it, and runs one through an engine.

A timeline is a table: one row per tuple, in the order of arrival. `batch` cuts it into steps, `at` is the event time in
seconds, `name` is what the expected matches call the tuple, and every other column is the tuple's own.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import handfast.testing as hft
from handfast import oracle
from handfast.engines.local.engine import LocalJoin
from handfast.plan import make_plan
from handfast.spec.join import BoundJoin, JoinSpec
from tests.judges import duckdb_judge
from tests.judges.rows import result_of, rows_of, schemas_of, tables_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {"batch": "int", "stream": "string", "name": "string", "at": "timestamp"}
Names = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class Scenario:
    """One timeline, and what must come out of it.

    Attributes:
        steps: The tables of every batch by stream.
        matches: Names of the r tuple and of the s tuple, and match_time in seconds.
        late: Names of the tuples that come too late.
        rejected: Names of the tuples that are refused at the door.
    """

    title: str
    spec: JoinSpec
    steps: list[dict[str, pa.Table]]
    matches: Names
    late: set[str]
    rejected: set[str]

    @property
    def tables(self) -> dict[str, pa.Table]:
        """Every stream's rows in the order of arrival."""
        return {name: pa.concat_tables([step[name] for step in self.steps]) for name in self.spec.names}

    @property
    def join(self) -> BoundJoin:
        return self.spec.bind(schemas_of(self.tables))

    def admission(self) -> oracle.Admission:
        """What becomes of the rows at the door, says the oracle."""
        return oracle.admit(self.join, [tables_of(step) for step in self.steps])

    def admitted(self) -> dict[str, pa.Table]:
        """The rows that are not too late, for engines that take bounded tables."""
        rows = {stream: rows_of(table) for stream, table in self.tables.items()}
        keep = {stream: [row["name"] not in self.late for row in rows[stream]] for stream in rows}
        return {stream: table.filter(pa.array(keep[stream], pa.bool_())) for stream, table in self.tables.items()}

    def named(self, result: list[tuple[Any, ...]]) -> Names:
        """A result (columns of r, columns of s, match_time) by the names of its tuples."""
        columns = self.join.output_names
        r, s = (columns.index(f"{stream}_name") for stream in self.spec.names)
        return Counter((row[r], row[s], _seconds(row[-1])) for row in result)


Engine = Callable[[Scenario], list[tuple[Any, ...]]]  # gives the result's rows, as `rows.result_of` does


def run_oracle(scenario: Scenario) -> list[tuple[Any, ...]]:
    return oracle.result(scenario.join, scenario.admission().admitted)


def run_duckdb(scenario: Scenario) -> list[tuple[Any, ...]]:
    return duckdb_judge.result(scenario.spec, scenario.admitted())


def run_local(cores: int) -> Engine:
    """The local engine, fed batch by batch."""

    def run_steps(scenario: Scenario) -> list[tuple[Any, ...]]:
        engine = LocalJoin(make_plan(scenario.join, cores))
        batches = [batch for step in scenario.steps for batch in engine.push(step)]
        return [row for b in (*batches, *engine.close()) for row in result_of(pa.Table.from_batches([b]))]

    return run_steps


ENGINES: dict[str, Engine] = {
    "oracle": run_oracle,
    "duckdb": run_duckdb,
    "local": run_local(1),
    "local, three cores": run_local(3),
}


def run(engine: str, scenario: Scenario) -> Names:
    """The matches that an engine finds in a timeline."""
    return scenario.named(ENGINES[engine](scenario))


def scenarios() -> list[Scenario]:
    """All timelines of this folder."""
    return [read(path) for path in sorted(Path(__file__).parent.glob("*.toml"))]


def read(path: Path) -> Scenario:
    """The timeline in one file."""
    text = tomllib.loads(path.read_text())
    asked = {name: text.get(name) for name in ("window", "lateness", "sequence", "order") if name in text}
    asked |= {name: int(text[name] * 1_000_000) for name in ("valid_from", "valid_to") if name in text}  # in seconds
    spec = JoinSpec(("r", "s"), text["on"], time="at", **asked)
    timeline = hft.table(text["timeline"], types=_TYPES | text["columns"], base=EPOCH)
    batches = sorted(set(timeline["batch"].to_pylist()))
    return Scenario(
        text["title"],
        spec,
        [{name: _rows(timeline, batch, name) for name in spec.names} for batch in batches],
        Counter((r, s, at) for r, s, at in (line.split() for line in text["matches"])),
        set(text.get("late", [])),
        set(text.get("rejected", [])),
    )


def _rows(timeline: pa.Table, batch: int, stream: str) -> pa.Table:
    mine = timeline.filter((pc.field("batch") == batch) & (pc.field("stream") == stream))
    return mine.drop_columns(["batch", "stream"])


def _seconds(micros: int) -> str:
    return f"{Decimal(micros) / 1_000_000:f}"
