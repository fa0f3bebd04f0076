"""What became of every row, counted where it happens: the terms know nothing of each other, and yet they add up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest

import handfast as hf
from handfast.core.join_core import JoinCore
from handfast.core.segment import Segment
from handfast.engines.local.handshake import HandshakeCore
from handfast.engines.local.options import FORWARDING, HANDSHAKE
from handfast.flow.block import Block
from handfast.flow.metrics import StreamMetrics
from handfast.plan import LOCAL_JOINS
from tests.engines.local.baton import by_turns
from tests.engines.local.schedule import scheduled_case
from tests.strategies import MULTI, Case

CORES = (1, 2, 3, 4, 7)
CASES = 30
MUTATED = 10  # cases that each mutant runs through

Check = Callable[[str, Counter[str], dict[str, StreamMetrics]], None]


def case_of(seed: int, forwarding: str) -> Case:
    """A case for a chain; without one, also of more streams and of rows that match nothing."""
    if forwarding == HANDSHAKE or seed % 4 < 2:
        return scheduled_case(seed)
    if seed % 4 == 2:
        return Case.of(seed, shape=MULTI[seed // 4 % len(MULTI)])
    return Case.of(seed).asked(how=("left", "right", "full", "semi", "anti")[seed // 4 % 5])


def run(seed: int, forwarding: str, check: Check, admission: str = "block") -> None:
    """Push a case stream by stream; `check` is told how many rows came and what is said of them, after every push."""
    case = case_of(seed, forwarding)
    options = hf.LocalOptions(
        cores=CORES[seed % len(CORES)],
        forwarding=forwarding,
        local_join=LOCAL_JOINS[seed // len(CORES) % len(LOCAL_JOINS)],
        admission=admission,
        capacity=40,
    )
    session = hf.session(case.spec, {name: table.schema for name, table in case.tables.items()}, options=options)
    came: Counter[str] = Counter()
    for step in case.steps:
        for name, table in step.items():
            session.push(name, table)
            came[name] += table.num_rows
            check(f"seed {seed}: {case}", came, session.metrics().streams)
    session.close()
    closed = session.metrics().streams
    check(f"seed {seed}, closed: {case}", came, closed)
    assert all((0, 0) == (own.waiting, own.live) for own in closed.values()), f"seed {seed}: {closed}"


def adds_up(about: str, came: Counter[str], streams: dict[str, StreamMetrics]) -> None:
    for name, own in streams.items():
        assert min(astuple(own)) >= 0, f"{about}: {own}"
        parts = own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
        assert came[name] == own.rows_in == parts, f"{about}: {own}"


@pytest.mark.parametrize("admission", ["block", "overflow"])
@pytest.mark.parametrize("forwarding", FORWARDING)
def test_the_terms_add_up_after_every_push(forwarding: str, admission: str) -> None:
    for seed in range(CASES):
        run(seed, forwarding, adds_up, admission)


# -- cores that lose, keep or double tuples ------------------------------------------------------------------------


def tuples_lost(patch: pytest.MonkeyPatch) -> None:
    stores, removes = JoinCore._store, JoinCore.remove

    def store(core: JoinCore, new: Any) -> None:
        core.lost = not getattr(core, "lost", False)  # every other block
        if not core.lost:
            stores(core, new)

    def remove(core: JoinCore, stream: int, block: Block) -> None:
        if any(held is block for held in core.segments[stream].blocks):
            removes(core, stream, block)

    patch.setattr(JoinCore, "_store", store)
    patch.setattr(JoinCore, "remove", remove)


def a_tuple_doubled(patch: pytest.MonkeyPatch) -> None:
    stores = JoinCore._store

    def store(core: JoinCore, new: Any) -> None:
        stores(core, new)
        stores(core, core._read(new.stream, new.block.slice(0, 1), new.marks[:1]))

    patch.setattr(JoinCore, "_store", store)


def what_is_over_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "expire", lambda own, is_over: [block for block in own.blocks if is_over(block)])
    patch.setattr(JoinCore, "remove", lambda own, stream, block: None)


def what_is_over_forgotten(patch: pytest.MonkeyPatch) -> None:
    expires, expires_in_chain = Segment.expire, HandshakeCore._expire

    def expire(own: Segment, is_over: Any) -> list[Block]:
        expires(own, is_over)
        return []

    def expire_in_chain(own: HandshakeCore, stream: int) -> None:
        counted = list(own.expired)
        expires_in_chain(own, stream)
        own.expired = counted

    patch.setattr(Segment, "expire", expire)
    patch.setattr(HandshakeCore, "_expire", expire_in_chain)


MUTANTS = [tuples_lost, a_tuple_doubled, what_is_over_kept, what_is_over_forgotten]


@pytest.mark.parametrize("forwarding", FORWARDING)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_core_that_miscounts_breaks_the_sum(
    mutant: Callable[[pytest.MonkeyPatch], None], forwarding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    deaf = [seed for seed in range(MUTATED) if holds(seed, forwarding)]
    assert not deaf, f"the cases {deaf} of {MUTATED} do not tell"


@pytest.mark.parametrize("forwarding", FORWARDING)
def test_cores_that_count_right_keep_the_sum_in_the_same_schedules(forwarding: str) -> None:
    broken = [seed for seed in range(MUTATED) if not holds(seed, forwarding)]
    assert not broken, f"the cases {broken} of {MUTATED} tell of nothing"


def holds(seed: int, forwarding: str) -> bool:
    """Whether the terms of a case add up whenever they are asked for; which thread runs next, the seed chooses."""
    try:
        with by_turns(random.Random(seed), capacity=8, rows=5):
            run(seed, forwarding, adds_up)
    except AssertionError:
        return False
    return True
