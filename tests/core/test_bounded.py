"""Bounded inputs: however their tuples are cut into blocks, and however many go at a time, the result is the same."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.bounded import run_bounded, slices
from handfast.core.planner import make_plan
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import HOME, Block
from handfast.flow.order import by_rank
from handfast.flow.pieces import Limit
from handfast.flow.stamper import Stamper
from handfast.flow.time import END
from handfast.plan import Plan
from tests.judges.rows import multiset, result_of
from tests.strategies import Case


def blocks_of(case: Case, rng: random.Random) -> tuple[Plan, list[list[Block]]]:
    """A join over one core, and its tuples in blocks that came in any order."""
    schemas = {name: schema_of(table.schema) for name, table in case.tables.items()}
    plan = make_plan(case.spec.bind(schemas), 1, [as_batch(case.tables[name]).schema for name in case.streams])
    whole = [split(plan.join, k, as_batch(case.tables[name]))[0] for k, name in enumerate(case.streams)]
    if plan.join.stamped:
        whole, _ = Stamper(plan.join).stamp(whole, END)
    pieces: list[list[Block]] = []
    for block in whole:
        own: list[Block] = []
        if block is not None and len(block):
            block = block.with_flags(np.full(len(block), HOME, np.uint8))
            rows = np.arange(len(block))
            rng.shuffle(rows)
            cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(3))
            own = [block.take(part) for part in np.split(rows, cuts) if len(part)]
        pieces.append(own)
    return plan, pieces


@pytest.mark.parametrize("seed", range(60))
def test_blocks_in_any_order_and_slices_of_any_size_give_the_result(seed: int) -> None:
    rng = random.Random(seed)
    case = Case.of(seed)
    if seed % 3 == 0:
        case = case.counted(rng)
    plan, pieces = blocks_of(case, rng)
    limit = Limit(rows=rng.choice([1, 3, 17, 1 << 16]), bytes=rng.choice([1, 300, 1 << 26]))
    found = list(run_bounded(plan, pieces, limit))
    found = list(by_rank(found)) if plan.join.spec.in_order else found
    rows = [row for batch in found for row in result_of(pa.Table.from_batches([batch]))]
    assert case.expected() == multiset(rows), f"{limit}: {case}"


def test_slices_are_cut_by_bytes_also_among_tuples_of_one_time() -> None:
    rows = 60
    wide = pa.table({"ts": pa.array([7] * rows, pa.timestamp("us")), "k": [1] * rows, "text": ["x" * 1_000] * rows})
    spec = hf.JoinSpec(["r", "s"], "r.k = s.k", window="1 second", time="ts")
    plan = make_plan(spec.bind({name: schema_of(wide.schema) for name in "rs"}), 1, [as_batch(wide).schema] * 2)
    block, _ = split(plan.join, 0, as_batch(wide))
    assert block is not None
    pieces = [[block.slice(0, 20), block.slice(20, rows)], [block]]
    limit = Limit(bytes=10_000)
    fed = [[b for b in arrivals if b is not None] for arrivals, _ in slices(plan, pieces, limit)]
    assert 2 * rows == sum(len(b) for own in fed for b in own)
    assert all(sum(b.size for b in own) <= limit.bytes for own in fed)
    assert rows * rows == sum(batch.num_rows for batch in run_bounded(plan, pieces, limit))
