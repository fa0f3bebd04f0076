"""What is at the places of a query in the end, beside what the oracle makes of the batches as they were cut."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import handfast as hf
from handfast.flow.metrics import Metrics
from handfast.judge import oracle
from handfast.spec.join import BoundJoin
from tests.agreement.admission import adds_up
from tests.judges.rows import Row, multiset, result_of, schemas_of, tables_of

Rows = Counter[tuple[Any, ...]]


def read(spark: SparkSession, path: Path) -> Rows:
    """The rows at a place, without the numbers of their batches, as one sees them who reads through Spark."""
    return multiset(result_of(spark.read.parquet(str(path)).drop("handfast_batch").toArrow()))


def refused(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Rows]:
    """Rows that the oracle refuses, by stream."""
    own = {stream: [_without_number(row) for row in found] for stream, found in rows.items()}
    return {stream: multiset(tuple(row.values()) for row in found) for stream, found in own.items()}


def _without_number(row: Mapping[str, Any]) -> Row:
    return {column: value for column, value in row.items() if column != "#"}


@dataclass(frozen=True)
class Outcome:
    """What the oracle makes of batches."""

    join: BoundJoin
    admission: oracle.Admission
    matches: Rows
    sent: dict[str, int]  # rows of each stream

    @classmethod
    def of(cls, asked: hf.JoinSpec, batches: Sequence[Mapping[str, pa.Table]]) -> Outcome:
        join = asked.bind(schemas_of(batches[0]))
        admission = oracle.admit(join, map(tables_of, batches))
        matches = multiset(oracle.result(join, oracle.final(join, admission), admission.watermark))
        return cls(join, admission, matches, {name: sum(b[name].num_rows for b in batches) for name in asked.names})

    @property
    def is_telling(self) -> bool:
        """Whether something is found, some rows are rejected, and some of each stream late, unless none can be."""
        late = all(self.admission.late.values()) or self.join.spec.order == "arrival"
        return bool(self.matches) and any(self.admission.rejected.values()) and late

    def check_matches(self, spark: SparkSession, path: Path) -> None:
        """Nothing is lost, and nothing is there twice."""
        assert self.matches == read(spark, path)

    def check_refused(self, spark: SparkSession, home: Path) -> None:
        """Late and rejected rows are in their folders, each once."""
        for place, rows in (("late", self.admission.late), ("rejected", self.admission.rejected)):
            assert refused(rows) == {stream: read(spark, home / place / stream) for stream in rows}, place

    def check_counters(self, found: Metrics) -> None:
        """The counters after the last batch add up, and tell of all batches since the first."""
        assert adds_up(found)
        assert sum(self.matches.values()) == found.matches
        assert self.admission.watermark == (-math.inf if found.watermark is None else found.watermark)
        final = oracle.final(self.join, self.admission)
        for name, own in found.streams.items():
            late, rejected = len(self.admission.late[name]), len(self.admission.rejected[name])
            waiting = len(self.admission.admitted[name]) - len(final[name])
            wanted = (self.sent[name], waiting, late, rejected)
            assert wanted == (own.rows_in, own.waiting, own.late, own.rejected), name
