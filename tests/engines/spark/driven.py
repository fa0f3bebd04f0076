"""The operator without Spark: on a state store of our own, where every accident can be had at will."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

import pandas as pd
import pyarrow as pa
import pytest

from handfast.core.manifest import Manifest
from handfast.core.planner import make_plan
from handfast.engines.spark import blocks, operator
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.kept import KeptCores
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.output import MATCHES
from handfast.engines.spark.pack import Pack
from handfast.flow.pieces import LIMIT, Limit
from handfast.plan import Plan
from tests.engines.spark import crash_job
from tests.engines.spark.crash_job import PARTITIONS, spec
from tests.judges.rows import multiset, result_of, schemas_of

Result = Counter[tuple[Any, ...]]


class State:
    """One version of a core's state, as the operator sees it through its handle."""

    def __init__(self, value: tuple[Any, ...] | None = None, blocks: dict[str, bytes] | None = None) -> None:
        self.value, self.blocks = value, dict(blocks or {})

    def copy(self) -> State:
        return State(self.value, self.blocks)

    def contents(self) -> tuple[Any, ...]:
        return self.value, self.blocks

    def getValueState(self, name: str, schema: Any) -> State:
        return self

    getMapState = lambda self, name, key, value: self  # noqa: E731

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def getValue(self, key: tuple[str]) -> tuple[bytes]:
        return (self.blocks[key[0]],)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.blocks[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:
        del self.blocks[key[0]]


def plan(join: str, window: str | None = None) -> Plan:
    """One of the joins, laid out without Spark."""
    return make_plan(spec(join, window).bind(schemas_of(crash_job.steps()[0])), PARTITIONS)


def arrivals(join: Plan, tables: dict[str, pa.Table], core: int, limit: Limit = LIMIT) -> pd.DataFrame:
    """What Spark brings one core of a batch, read in three partitions of each stream."""
    parts = []
    for stream, name in enumerate(join.join.spec.names):
        for table in (tables[name].slice(start, 3) for start in range(0, tables[name].num_rows, 3)):
            parts += [packed.to_pandas() for packed in Pack(join, stream, limit)(iter(table.to_batches()))]
    rows = pd.concat(parts, ignore_index=True)
    return rows[rows["core"] == core_key(core)]


def output_of(processor: Any, state: State, rows: pd.DataFrame, *, pieces: int | None = None) -> pd.DataFrame:
    """Run an operator on a batch to its end, or until so many pieces of its output are taken."""
    processor.init(state)
    output = processor.handleInputRows((rows["core"].iloc[0],), iter([rows]), None)
    taken = list(islice(output, pieces))
    output.close()
    return pd.concat(taken, ignore_index=True) if taken else pd.DataFrame()


def run(join: Plan, state: State, rows: pd.DataFrame, limit: Limit = LIMIT) -> Result:
    """Run a JoinCore on a batch."""
    return multiset(matches_of(output_of(JoinProcessor(join, limit), state, rows)))


class Workers:
    """The caches of several worker processes."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._caches = [(KeptCores(), WeakValueDictionary()) for _ in range(count)]
        self._monkeypatch = monkeypatch

    def be(self, number: int) -> None:
        """Go on as this worker."""
        cores, known = self._caches[number]
        self._monkeypatch.setattr(operator, "_cores", cores)
        self._monkeypatch.setattr(blocks, "_known", known)


@dataclass
class Luck:
    """What happens to the tasks: attempts on any worker, cut short, thrown away, repeated, with or without caches."""

    chance: random.Random
    workers: Workers

    def attempts(self, processor: Callable[[], Any], state: State, rows: pd.DataFrame) -> tuple[State, pd.DataFrame]:
        """One of several attempts; they all end with the same state and the same output."""
        outcomes = []
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            self.workers.be(self.chance.randrange(3))
            if self.chance.random() < 0.2:
                operator.forget()
            if self.chance.random() < 0.3:
                output_of(processor(), state.copy(), rows, pieces=self.chance.randrange(2))
            shuffled = rows.sample(frac=1, random_state=self.chance.randrange(1000))  # as the network brings them
            outcomes.append((after := state.copy(), output_of(processor(), after, shuffled)))
        for after, output in outcomes[1:]:
            assert outcomes[0][0].contents() == after.contents(), "another attempt leaves another state"
            assert _told(outcomes[0][1]) == _told(output), "another attempt gives another output"
        return self.chance.choice(outcomes)


def _told(output: pd.DataFrame) -> tuple[Any, ...]:
    """What an operator hands out: matches in no promised order (semantics, 10), everything else to the byte."""
    if "rows" not in output:
        return (output.to_dict("list"),)
    rest = output[output["kind"] != MATCHES]
    return sorted(map(repr, matches_of(output))), rest.to_dict("list")


def matches_of(output: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The matches in what an operator hands out."""
    packed = output[output["kind"] == MATCHES]["rows"]
    return [row for rows in packed for row in result_of(pa.ipc.open_stream(rows).read_all())]


def manifest_of(state: State) -> Manifest:
    """The manifest in a core's state."""
    assert state.value is not None
    return Manifest.decode(state.value[0])
