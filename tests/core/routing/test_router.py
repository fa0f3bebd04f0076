"""Routing: where a row goes depends on the row alone, and every row has one home."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from handfast.core.planner import make_plan
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.range import STRIPE_BITS, RangeRouting
from handfast.core.routing.router import Router
from handfast.flow.admission import split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import EVERYWHERE, HOME
from handfast.plan import Plan
from handfast.spec.join import HOW, JoinSpec
from tests.judges.rows import multiset, result_of
from tests.strategies import MULTI, Case


def _plans(seed: int) -> tuple[Case, Plan]:
    case = Case.of(seed, shape=MULTI[seed % len(MULTI)]) if seed % 4 == 0 else Case.of(seed)
    case = case.asked(how=HOW[seed % len(HOW)]) if seed % 4 == 1 else case
    bound = case.spec.bind({name: schema_of(table.schema) for name, table in case.tables.items()})
    return case, make_plan(bound, 2 + seed % 4, handshake=seed % 4 == 2)


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_a_row_goes_the_same_way_alone_and_in_company(seed: int, in_turn: bool) -> None:
    case, plan = _plans(seed)
    for stream, name in enumerate(case.streams):
        router = Router(plan, stream, in_turn=in_turn)
        whole = split(plan.join, stream, as_batch(case.tables[name]))[0]
        if whole is None:
            continue
        together = {core: (block.batch, block.flags) for core, block in router.route(whole).items()}
        alone: dict[int, list[pa.RecordBatch]] = {}
        flags: dict[int, list[int]] = {}
        for row in range(len(whole)):
            for core, block in router.route(whole.slice(row, row + 1)).items():
                alone.setdefault(core, []).append(block.batch)
                flags.setdefault(core, []).extend(block.flags.tolist())
        assert together.keys() == alone.keys()
        for core, (rows, own) in together.items():
            merged = pa.Table.from_batches(alone[core])
            assert multiset(result_of(pa.Table.from_batches([rows]))) == multiset(result_of(merged))
            assert own.tolist() == flags[core]


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_every_row_sent_has_one_home(seed: int, in_turn: bool) -> None:
    case, plan = _plans(seed)
    for stream, name in enumerate(case.streams):
        numbered = case.tables[name].append_column("#", pa.array(range(case.tables[name].num_rows), pa.int64()))
        homes: list[int] = []
        sent: set[int] = set()
        whole = split(plan.join, stream, as_batch(numbered))[0]
        router = Router(plan, stream, in_turn=in_turn)
        for core, block in (router.route(whole) if whole is not None else {}).items():
            rows = block.batch.column("#").to_numpy()
            assert 0 <= core < plan.cores
            sent.update(rows.tolist())
            homes.extend(rows[(block.flags & HOME) != 0].tolist())
            if plan.routing == HashRouting():
                assert not np.any(block.flags & EVERYWHERE)
        admitted = whole.batch.column("#").to_pylist() if whole is not None else []
        assert sorted(sent) == sorted(homes) == sorted(admitted)


@pytest.mark.parametrize("cores", [2, 3, 4, 7])
@pytest.mark.parametrize("rounds_apart", [False, True])
def test_stripes_in_turn_are_shared_out_evenly(cores: int, rounds_apart: bool) -> None:
    """Where there are few of them, and where keys lie a whole round of turns apart."""
    spec = JoinSpec(("r", "s"), "ABS(r.x - s.x) <= 8", window="1 hour", time="ts", lateness="0 seconds")
    apart = (8 + 1 + 8) * (1 << STRIPE_BITS) * cores if rounds_apart else 1
    table = pa.table({"ts": pa.array(np.arange(10_000), pa.timestamp("us")), "x": apart * np.arange(10_000)})
    plan = make_plan(spec.bind({name: schema_of(table.schema) for name in ("r", "s")}), cores)
    assert RangeRouting() == plan.routing
    block, _ = split(plan.join, 0, as_batch(table))
    assert block is not None
    homes = [own.at_home for own in Router(plan, 0, in_turn=True).route(block).values()]
    assert len(homes) == cores
    assert max(homes) * cores <= 1.2 * sum(homes)
