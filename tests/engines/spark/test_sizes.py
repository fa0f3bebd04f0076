"""Wide rows on Spark: what is packed, stored, stamped and handed out is cut by bytes, and nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import handfast as hf
from handfast.core.planner import make_plan
from handfast.engines.spark import operator
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.output import METRICS, total
from handfast.engines.spark.pack import SEQUENCER, Pack
from handfast.engines.spark.sequence import SequenceProcessor
from handfast.flow.block import Block
from handfast.flow.metrics import Metrics
from handfast.flow.pieces import LIMIT, Limit
from handfast.plan import Plan
from tests.engines.spark.crash_job import finish
from tests.engines.spark.driven import State, Workers, matches_of, output_of
from tests.judges.rows import multiset, schemas_of

WIDTH = 1_000
ROWS = 40  # of a stream in a batch
BATCHES = 3
FEW = Limit(bytes=5 * WIDTH)
ONE_EACH = Limit(bytes=1)
CORES = 2
FRAME = 2_000  # what Arrow's format adds to the rows of a piece, at the most
JOINS: dict[str, dict[str, Any]] = {
    "by key": {"on": "r.k = s.k"},
    "everywhere": {"on": "r.k * s.k % 7 = 3"},
    "left": {"on": "r.k = s.k", "how": "left"},
    "counted": {"on": "r.k = s.k", "window": {"r": "20 rows", "s": "2 seconds"}},
    "in order": {"on": "r.k = s.k", "how": "semi", "in_order": True},
    "arrival": {"on": "r.k = s.k", "window": "30 rows", "order": "arrival"},
}


def plan(join: str) -> Plan:
    asked = {"window": "2 seconds", "time": "ts", "lateness": "500 ms"} | JOINS[join]
    schemas = schemas_of(tables(0))
    return make_plan(hf.JoinSpec(("r", "s"), asked.pop("on"), **asked).bind(schemas), CORES)


def tables(batch: int) -> dict[str, pa.Table]:
    """Wide rows of a second, not in the order of time, some of them late, one without a time."""
    made = {}
    for offset, stream in enumerate("rs"):
        rows = [(row * 37 + offset * 11) % ROWS for row in range(ROWS)]
        times = [batch * 1_000_000 + row * 25_000 - (900_000 if row % 20 == 7 else 0) for row in rows]
        stamps = pa.array([*times[:-1], None], pa.timestamp("us", "UTC"))
        text = pa.array([f"{batch} {row} ".ljust(WIDTH, "x") for row in rows])
        made[stream] = pa.table({"ts": stamps, "k": pa.array([row % 12 for row in rows], pa.int64()), "text": text})
    return made


def arrivals(join: Plan, batch: int, core: int, limit: Limit) -> pd.DataFrame:
    """What Spark brings one core of a batch."""
    parts = [Pack(join, k, limit)(iter(table.to_batches())) for k, table in enumerate(tables(batch).values())]
    rows = pd.concat([packed.to_pandas() for part in parts for packed in part], ignore_index=True)
    return rows[rows["core"] == core_key(core)]


@dataclass
class Ran:
    """What a join has handed out, and what it had in its state and on the way."""

    matches: list[tuple[Any, ...]] = field(default_factory=list)
    metrics: list[Metrics] = field(default_factory=list)
    largest: int = 0  # bytes of anything packed
    blocks: list[Block] = field(default_factory=list)  # all that were ever stored

    def see(self, frame: pd.DataFrame, column: str) -> None:
        self.largest = max([self.largest, *(len(data) for data in frame[column] if data is not None)])

    def store(self, state: State) -> None:
        self.blocks += map(Block.decode, state.blocks.values())


def run(join: str, limit: Limit, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """The join from batch to batch, its caches now there and now lost."""
    Workers(1, monkeypatch).be(0)
    asked, ran, sequencer, cores = plan(join), Ran(), State(), [State() for _ in range(CORES)]
    for batch in range(BATCHES):
        if batch % 2:
            operator.forget()
        sent = None
        if asked.join.stamped:
            rows = arrivals(asked, batch, SEQUENCER, limit)
            sent = output_of(SequenceProcessor(asked, limit), sequencer, rows)
            ran.see(rows, "block")
            ran.store(sequencer)
        shares = []
        for core, state in enumerate(cores):
            rows = sent[sent["core"] == core_key(core)] if sent is not None else arrivals(asked, batch, core, limit)
            output = output_of(JoinProcessor(asked, limit), state, rows)
            ran.see(rows, "block")
            ran.see(output, "rows")
            ran.store(state)
            ran.matches += matches_of(output)
            shares += output[output["kind"] == METRICS]["metrics"].tolist()
        ran.metrics.append(total(shares))
    return ran


CASES = [*((join, FEW) for join in JOINS), ("left", ONE_EACH), ("counted", ONE_EACH)]


@pytest.mark.parametrize(
    ("join", "limit"), CASES, ids=lambda case: f"{case.bytes} bytes" if case in (FEW, ONE_EACH) else case
)
def test_pieces_are_cut_by_bytes_and_come_to_the_same(join: str, limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = run(join, LIMIT, monkeypatch), run(join, limit, monkeypatch)
    most = max(limit.bytes, 2 * WIDTH) + FRAME
    assert whole.largest > 2 * most, "uncut, something is large"
    assert cut.largest <= most
    assert max(block.size for block in cut.blocks) <= max(limit.bytes, WIDTH + FRAME)
    assert whole.matches
    assert multiset(whole.matches) == multiset(cut.matches)
    assert list(map(counted, whole.metrics)) == list(map(counted, cut.metrics))


def counted(metrics: Metrics) -> tuple[Any, ...]:
    """The counters, but for when a tuple leaves its window: that goes by blocks."""
    own = [(s.rows_in, s.waiting, s.live + s.expired, s.late, s.rejected) for s in metrics.streams.values()]
    return own, metrics.matches, metrics.watermark


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("window", ["1 hour", "50000 rows"])
def test_more_text_than_an_arrow_array_holds_goes_through_a_batch(
    spark: SparkSession, tmp_path: Path, window: str
) -> None:
    count, width = 36_000, 64_000  # 2.3 GB
    hf.configure(spark, cores=CORES)
    ids = str(tmp_path / "ids")
    spark.range(0, count, 1, 1).write.parquet(ids)
    rows = spark.readStream.schema("id bigint").parquet(ids).selectExpr("id", "TIMESTAMP_MILLIS(id) AS ts")
    wide = rows.selectExpr("*", f"CONCAT(id + 1000000, REPEAT('x', {width - 7})) AS text")
    matches = hf.join({"r": wide, "s": rows}, on="r.id = s.id", window=window, time="ts", lateness="0 seconds")
    found: list[tuple[int, ...]] = []

    def take(batch: DataFrame, number: int) -> None:
        sums = batch.selectExpr("COUNT(*)", "SUM(r_id)", "SUM(LENGTH(r_text))", "COUNT(DISTINCT r_text)")
        found.append(tuple(sums.collect()[0]))

    writer = matches.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    finish(writer.trigger(availableNow=True).start(), within=3_600)
    final = count if window == "1 hour" else count - 1  # the last row's place is not final
    assert [(final, final * (final - 1) // 2, final * width, final)] == found
