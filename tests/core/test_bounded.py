"""Bounded inputs: however their tuples are cut into blocks, and however many go at a time, the result is the same."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core import bounded
from handfast.core.bounded import run_bounded, slices
from handfast.core.join_core import JoinCore
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


def found_in(case: Case, rng: random.Random) -> Counter[Any]:
    """What one core finds, whose tuples come in blocks in any order and in slices of any size."""
    plan, pieces = blocks_of(case, rng)
    limit = Limit(rows=rng.choice([1, 3, 17, 1 << 16]), bytes=rng.choice([1, 300, 1 << 26]))
    found = list(run_bounded(plan, pieces, limit))
    found = list(by_rank(found)) if plan.join.spec.in_order else found
    return multiset([row for batch in found for row in result_of(pa.Table.from_batches([batch]))])


@pytest.mark.parametrize("seed", range(60))
def test_blocks_in_any_order_and_slices_of_any_size_give_the_result(seed: int) -> None:
    rng = random.Random(seed)
    case = Case.of(seed)
    if seed % 3 == 0:
        case = case.counted(rng)
    assert case.expected() == found_in(case, rng), case


def inner_cases(count: int) -> Iterator[tuple[Case, random.Random]]:
    """Inner joins of two streams, every other one with windows of tuples: of such joins one stream is not stored."""
    seeds = (seed for seed in itertools.count() if _only_probes(Case.of(seed)))
    for number, seed in enumerate(itertools.islice(seeds, count)):
        rng = random.Random(seed)
        case = Case.of(seed)
        yield (case.counted(rng) if number % 2 else case), rng


def _only_probes(case: Case) -> bool:
    return len(case.streams) == 2 and case.spec.how == "inner" and not case.spec.in_order


def test_one_of_two_streams_need_not_be_stored() -> None:
    for case, rng in inner_cases(80):
        assert case.expected() == found_in(case, rng), case


BUGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "the oldest partner is left out": ("first_held", lambda own: lambda *asked: own(*asked) + 1),
    "the last partner is left out": ("last_holding", lambda own: lambda *asked: own(*asked) - 1),
    "partners expire too early": ("horizon", lambda own: lambda self, at, timed: own(self, len(self), timed)),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_what_is_stored_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, broken = BUGS[bug]
    monkeypatch.setattr(bounded._Ordered, name, broken(getattr(bounded._Ordered, name)))
    assert any(case.expected() != found_in(case, rng) for case, rng in inner_cases(80))


@pytest.mark.parametrize("window", ["3 seconds", "3 rows"])
def test_what_is_stored_is_as_small_as_the_windows(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, slice_of = 600, 10
    tables = {
        name: pa.table({"ts": pa.array(np.arange(count) * rows // count, pa.timestamp("s")), "k": [1] * count})
        for name, count in (("r", rows), ("s", rows // 2))
    }
    spec = hf.JoinSpec(["r", "s"], "r.k = s.k", window=window, time="ts")
    plan = make_plan(spec.bind({name: schema_of(own.schema) for name, own in tables.items()}), 1, [])
    blocks = [split(plan.join, k, as_batch(own))[0] for k, own in enumerate(tables.values())]
    if plan.join.stamped:
        blocks, _ = Stamper(plan.join).stamp(blocks, END)
    live: list[tuple[int, ...]] = []
    probe = JoinCore.probe

    def seen(core: JoinCore, stream: int, block: Block) -> Iterator[pa.RecordBatch]:
        live.append(tuple(segment.live for segment in core.segments))
        yield from probe(core, stream, block)

    monkeypatch.setattr(JoinCore, "probe", seen)
    found = run_bounded(plan, [[block] for block in blocks if block is not None], Limit(rows=slice_of))
    assert sum(batch.num_rows for batch in found) > rows
    assert len(live) == rows // slice_of
    assert all(r == 0 for r, _ in live), "the stream of more tuples is not stored"
    assert max(s for _, s in live) <= 4 * slice_of


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
