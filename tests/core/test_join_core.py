"""The JoinCore: its state goes in and out as blocks, stays as small as the windows, and decides nothing by itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.core import held
from handfast.core.join_core import JoinCore
from handfast.core.manifest import Manifest
from handfast.core.planner import make_plan
from handfast.errors import EngineError
from handfast.flow.admission import Admission, progress_of, split
from handfast.flow.batch import as_batch, schema_of
from handfast.flow.block import HOME, Block
from handfast.flow.order import by_rank
from handfast.flow.stamper import Stamper
from handfast.flow.time import END, NEVER, Horizon, Progress
from handfast.plan import Plan
from handfast.spec.join import HOW, JoinSpec
from tests.judges.rows import multiset, result_of
from tests.strategies import MULTI, Case

SECOND = 1_000_000


def _plan(
    on: str = "r.x = s.x", *, window: str | dict[str, str] = "10 s", lateness: str = "0 s", cores: int = 1
) -> Plan:
    schema = schema_of(_batch([]).schema)
    spec = JoinSpec(("r", "s"), on, window=window, time="ts", lateness=lateness)
    return make_plan(spec.bind({"r": schema, "s": schema}), cores)


def _batch(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    times, values = [t for t, _ in rows], [v for _, v in rows]
    return pa.RecordBatch.from_pydict(
        {"ts": pa.array(times, pa.timestamp("us", "UTC")), "x": pa.array(values, pa.int64())}
    )


def _block(rows: list[tuple[int, int]]) -> Block:
    return Block(_batch(rows), np.array([t for t, _ in rows], np.int64), np.full(len(rows), HOME, np.uint8))


def _count(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _steps(case: Case) -> Iterator[tuple[list[Block | None], Horizon, Plan]]:
    """The tuples of a case as a single core gets them, step by step and at the end."""
    arrow = [case.tables[name].schema for name in case.streams]
    plan = make_plan(case.spec.bind({name: schema_of(table.schema) for name, table in case.tables.items()}), 1, arrow)
    admission, stamper = Admission(plan.join), Stamper(plan.join)
    for step in [*case.steps, None]:
        tables = step or {}
        named = enumerate(case.streams)
        blocks = [split(plan.join, k, as_batch(tables[n]))[0] if n in tables else None for k, n in named]
        admitted, _ = admission.admit(blocks, progress_of(blocks), 0)
        horizon = Horizon(admission.watermark if step is not None else END, (0,) * len(case.streams))
        if plan.join.stamped:
            admitted, horizon = stamper.stamp(admitted, horizon.time)
        yield admitted, horizon, plan


def _any_case(seed: int) -> Case:
    case = Case.of(seed, shape=MULTI[seed % len(MULTI)]) if seed % 4 == 0 else Case.of(seed)
    if seed % 3 == 0:
        case = case.counted(random.Random(seed))
    return case.asked(how=HOW[seed % len(HOW)], in_order=seed % 5 < 2) if seed % 4 else case


def _restored_every_step(case: Case) -> Counter[tuple[Any, ...]]:
    """The result of a core that is made again from its blocks and its manifest after every step."""
    store: dict[str, bytes] = {}
    manifest: bytes | None = None
    result: Counter[tuple[Any, ...]] = Counter()
    for admitted, horizon, plan in _steps(case):
        core = (
            JoinCore(plan)
            if manifest is None
            else JoinCore.restore(plan, Manifest.decode(manifest), lambda id_, store=store: Block.decode(store[id_]))
        )
        given = core.step(admitted, horizon)
        for batch in by_rank(given) if case.spec.in_order else given:
            result += multiset(result_of(pa.Table.from_batches([batch])))
        store = {block.id: block.encoded for block in core.blocks()}
        manifest = core.manifest(Progress.start(len(case.streams))).encode()
    return result


@pytest.mark.parametrize("seed", range(120))
def test_a_core_restored_from_its_blocks_after_every_step_goes_on_the_same(seed: int) -> None:
    case = _any_case(seed)
    assert case.expected_at_close() == _restored_every_step(case)


def _by_turns(case: Case, chance: random.Random) -> tuple[Counter[tuple[Any, ...]], int]:
    """The result of cores that take turns, each of which follows the state since its own, if it can; how often it can.

    Some run a step in vain, whose outcome is thrown away: these are ahead of the state when their next turn comes.
    """
    store: dict[str, bytes] = {}
    decoded: dict[str, Block] = {}
    manifest: Manifest | None = None
    cores: list[JoinCore | None] = [None, None]
    result: Counter[tuple[Any, ...]] = Counter()
    followed = 0

    def load(id_: str) -> Block:
        return decoded.setdefault(id_, Block.decode(store[id_]))  # one object for all blocks of the same rows

    for admitted, horizon, plan in _steps(case):
        for _ in range(2 if chance.random() < 0.3 else 1):
            turn = chance.randrange(2)
            core = cores[turn]
            if core is None or manifest is None:
                core = JoinCore(plan) if manifest is None else JoinCore.restore(plan, manifest, load)
            elif core.follow(manifest, load):
                followed += 1
                assert manifest == core.manifest(manifest.progress)
            else:
                core = JoinCore.restore(plan, manifest, load)
            given = core.step(admitted, horizon)
            batches = list(by_rank(given) if case.spec.in_order else given)
            cores[turn] = core
        for batch in batches:
            result += multiset(result_of(pa.Table.from_batches([batch])))
        store = {block.id: block.encoded for block in core.blocks()}
        manifest = Manifest.decode(core.manifest(Progress.start(len(case.streams))).encode())
        manifest = replace(manifest, fingerprint=plan.fingerprint)
    return result, followed


@pytest.mark.parametrize("seed", range(60))
def test_cores_that_take_turns_and_follow_each_other_find_what_one_finds(seed: int) -> None:
    case = _any_case(seed)
    assert case.expected_at_close() == _by_turns(case, random.Random(seed))[0]


def test_cores_that_take_turns_mostly_need_not_be_restored() -> None:
    cases = [_any_case(seed) for seed in range(30)]
    followed = sum(_by_turns(case, random.Random(seed))[1] for seed, case in enumerate(cases))
    assert followed > 0.3 * sum(len(case.steps) for case in cases)


EACH_INDEX = pytest.mark.parametrize("on", ["r.x = s.x", "r.x BETWEEN s.x - 1 AND s.x + 1", "r.x * s.x = 1"])


class Followed:
    """A core, the state that it leaves after every step, and other cores that come to such a state."""

    def __init__(self, plan: Plan) -> None:
        self.core = JoinCore(plan)
        self._stored: dict[str, Block] = {}

    def step(self, r: Block | None, s: Block | None, time: int = NEVER) -> tuple[int, Manifest]:
        """How many matches a step gives, and the state after it."""
        found = _count(self.core.step([r, s], Horizon(time, (0, 0))))
        self._stored |= {block.id: block for block in self.core.blocks()}
        return found, self.core.manifest(Progress.start(2))

    def restored(self, manifest: Manifest) -> JoinCore:
        return JoinCore.restore(self.core.plan, manifest, self._stored.__getitem__)

    def come_to(self, manifest: Manifest, core: JoinCore) -> JoinCore:
        """The core, if it can follow, or another one."""
        return core if core.follow(manifest, self._stored.__getitem__) else self.restored(manifest)


@EACH_INDEX
@pytest.mark.parametrize("gone", [0, 1])
def test_a_core_follows_where_two_blocks_hold_the_same_rows(on: str, gone: int) -> None:
    run = Followed(_plan(on, lateness="10 s"))
    old, same, last = _block([(1 * SECOND, 1)]), _block([(5 * SECOND, 1)]), _block([(6 * SECOND, 1)])
    for block in (old, same, same):
        _, state = run.step(block, None)
    behind = run.restored(state)  # a worker decodes a block once: both are one object
    _, state = run.step(last, None, gone * 11 * SECOND)
    behind = run.come_to(state, behind)
    assert state == behind.manifest(state.progress)
    probes = [None, _block([(7 * SECOND, 1)])]
    assert 4 - gone == _count(behind.step(probes, Horizon(NEVER, (0, 0))))


@EACH_INDEX
def test_a_core_that_is_ahead_meets_no_tuple_twice_whose_block_it_has_let_go(on: str) -> None:
    run = Followed(_plan(on, window={"r": "10 s", "s": "1 s"}, lateness="10 s"))
    run.step(_block([(10 * SECOND, 1)]), None)
    _, state = run.step(_block([(5 * SECOND, 1)]), None, 5 * SECOND)  # it lies behind the other, and goes before it
    visitor = _block([(14 * SECOND, 1)])  # gone again at the end of its step
    expected, ahead = run.step(None, visitor, 15 * SECOND)
    assert 2 == expected and ahead.blocks == (state.blocks[0][:1], ())
    again = run.come_to(state, run.core)  # its task has failed, and runs again
    assert expected == _count(again.step([None, visitor], Horizon(15 * SECOND, (0, 0))))


def test_rows_held_for_the_order_that_were_lost_at_a_restart_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manifest, "encode", lambda self, encode=Manifest.encode: encode(replace(self, held=())))
    cases = [case for case in map(_any_case, range(120)) if case.join.gives_unmatched and case.spec.in_order]
    assert any(_restored_every_step(case) != case.expected_at_close() for case in cases)


def test_a_block_read_back_from_its_bytes_is_the_same_block() -> None:
    block = _block([(3, 1), (5, 2)])
    again = Block.decode(block.encoded)
    assert (block.id, block.batch, block.times.tolist()) == (again.id, again.batch, again.times.tolist())


def test_state_written_by_another_join_is_refused() -> None:
    manifest = JoinCore(_plan("r.x = s.x")).manifest(Progress.start(2))
    with pytest.raises(EngineError, match="another join or for another number of cores"):
        JoinCore.restore(_plan("r.x = s.x + 1"), manifest, lambda id_: _block([]))
    with pytest.raises(EngineError, match="checkpointLocation"):
        JoinCore.restore(_plan("r.x = s.x", cores=2), manifest, lambda id_: _block([]))


@pytest.mark.parametrize("on", ["r.x = s.x", "r.x BETWEEN s.x - 1 AND s.x + 1", "r.x * s.x = 12"])
def test_memory_follows_the_window(on: str) -> None:
    core = JoinCore(_plan(on, window="10 s"))
    most_live, most_held, most_blocks = 0, 0, 0
    for second in range(200):
        rows = [(second * SECOND + k * 1_000, k) for k in range(1_000)]
        _count(core.step([_block(rows), _block(rows)], Horizon((second + 1) * SECOND - 1, (0, 0))))
        most_live = max(most_live, max(segment.live for segment in core.segments))
        most_held = max(most_held, max(len(segment.times) for segment in core.segments))
        most_blocks = max(most_blocks, max(len(segment.blocks) for segment in core.segments))
    assert most_live <= 1.5 * 10 * 1_000
    assert most_held <= 4 * 10 * 1_000 + 8_192
    assert most_blocks <= 24


def test_strings_that_no_live_tuple_holds_are_forgotten() -> None:
    schema = schema_of(pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string())]))
    spec = JoinSpec(("r", "s"), "r.k = s.k", window="1 s", time="ts", lateness="0 s")
    core = JoinCore(make_plan(spec.bind({"r": schema, "s": schema}), 1))
    for second in range(50):
        times = np.arange(second * SECOND, (second + 1) * SECOND, 1_000, dtype=np.int64)
        names = [f"key {second} {k}" for k in range(1_000)]
        batch = pa.RecordBatch.from_pydict({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": names})
        block = Block(batch, times, np.full(1_000, HOME, np.uint8))
        assert 1_000 == _count(core.step([block, block], Horizon((second + 1) * SECOND - 1, (0, 0))))
    assert len(core._strings) < 20_000


def test_a_future_row_keeps_no_other_block_from_expiring() -> None:
    core = JoinCore(_plan("r.x = s.x", window="1 s"))
    far = 1_000_000 * SECOND
    _count(core.step([_block([(0, 1), (far, 1)]), None], Horizon(NEVER, (0, 0))))
    for second in range(1, 100):
        rows = [(second * SECOND + k, k) for k in range(500)]
        _count(core.step([_block(rows), _block(rows)], Horizon(second * SECOND, (0, 0))))
    assert core.segments[0].live <= 3_000


def test_memory_follows_a_count_window() -> None:
    schema = schema_of(_batch([]).schema)
    spec = JoinSpec(("r", "s"), "r.x = s.x", window="5000 rows", time="ts", lateness="0 s")
    plan = make_plan(spec.bind({"r": schema, "s": schema}), 1)
    core, stamper = JoinCore(plan), Stamper(plan.join)
    most = 0
    for second in range(100):
        rows = [(second * SECOND + k * 1_000, k) for k in range(1_000)]
        _count(core.step(*stamper.stamp([_block(rows), _block(rows)], (second + 1) * SECOND)))
        most = max(most, max(segment.live for segment in core.segments))
    assert 5_000 <= most <= 1.5 * 5_000 + 1_000


def test_late_rows_are_left_at_the_door() -> None:
    admission = Admission(_plan(lateness="2 s").join)
    first = [_block([(10 * SECOND, 1)]), _block([(10 * SECOND, 2)])]
    assert (first, [None, None]) == admission.admit(first, progress_of(first), 0)
    late, just_in_time = (8 * SECOND - 1, 1), (8 * SECOND, 1)
    second = [None, _block([late, just_in_time])]
    (_, kept), (_, left) = admission.admit(second, progress_of(second), 0)
    assert kept is not None
    assert left is not None
    assert ([8 * SECOND], [8 * SECOND - 1]) == (kept.times.tolist(), left.times.tolist())


def test_rows_held_for_the_order_are_in_few_blocks_of_which_none_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(_batch([]).schema)
    spec = JoinSpec(("r", "s"), "r.x = s.x", window="3 minutes", time="ts", how="left", in_order=True)
    plan = make_plan(spec.bind({"r": schema, "s": schema}), 1, [_batch([]).schema] * 2)
    small = 4_096
    monkeypatch.setattr(held, "_SMALL", small)
    core, stamper, given = JoinCore(plan), Stamper(plan.join), 0
    for second in range(300):
        rows = [(second * SECOND + k, 4 * second + k) for k in range(4)]
        stamped, horizon = stamper.stamp([_block(rows), _block(rows)], (second + 1) * SECOND)
        given += _count(core.step(stamped, horizon))
        sizes = [block.batch.nbytes for block in core.blocks() if block.batch.num_columns == len(plan.join.fields)]
        assert max(sizes) <= small
        assert len(sizes) <= held._MOST_BLOCKS
    assert 0 < given


def test_a_manifest_that_holds_no_rows_reads_and_writes_as_it_always_did() -> None:
    before = b'["join/2", [5, 7], [["a", "b"], ["c"]], [["", "gA=="], []]]'
    manifest = Manifest.decode(before)
    assert () == manifest.held
    assert ["a", "b", "c"] == list(manifest.ids)
    assert before == manifest.encode()
