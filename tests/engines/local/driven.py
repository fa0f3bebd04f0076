"""The real driver, crew and merger, in threads whose every switch is chosen by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from handfast.core.planner import make_plan
from handfast.engines.local.chain_driver import ChainDriver
from handfast.engines.local.cores import Cores, Tally
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.options import HANDSHAKE, OVERFLOW, LocalOptions
from handfast.flow.batch import schema_of
from handfast.flow.topology import ChainTopology
from handfast.plan import LOCAL_JOINS, Plan
from tests.agreement.order import groups, stands_in_order
from tests.engines.local.baton import by_turns
from tests.engines.local.schedule import bursty_case, fed, scheduled_case
from tests.judges.rows import multiset, result_of, tables_of
from tests.strategies import Case

CORES = (1, 2, 3, 4)


class Wrong(AssertionError):
    """What a schedule shows."""


@dataclass(frozen=True)
class Judged:
    """A case, and what is right."""

    case: Case
    at_close: Any
    of_steps: Any
    in_order: Any

    @staticmethod
    @cache
    def of(seed: int) -> Judged:
        """The case of a seed; every other one has to give its matches in order."""
        case = bursty_case(seed).asked(in_order=True) if seed % 2 else scheduled_case(seed)
        in_order = groups(case, tables_of(case.admitted)) if case.spec.in_order else None
        return Judged(case, case.expected_at_close(), case.expected_of_steps(), in_order)


def check(seed: int, forwarding: str) -> None:
    """Run the case of a seed by the schedule of that seed; raise if anything is wrong with what comes of it."""
    judged, chance = Judged.of(seed), random.Random(seed)
    plan = _plan(judged.case, forwarding, chance)
    capacity, rows, waits = chance.choice((2, 3, 8)), chance.choice((1, 1, 2, 5)), chance.choice((0.0, 0.5, 1.0))
    with by_turns(chance, capacity=capacity, rows=rows):
        cores: Cores = (
            ChainDriver(plan, ChainTopology(plan.cores))
            if forwarding == HANDSHAKE
            else LowLatency(plan, LocalOptions(admission=OVERFLOW))
        )
        try:
            found, before = _fed(cores, judged.case, plan, chance, waits)
        finally:
            cores.stop()
    rows_found = [row for batch in found for row in result_of(pa.Table.from_batches([batch]))]
    if judged.at_close != multiset(rows_found):
        raise Wrong(f"seed {seed}: other matches")
    if judged.in_order is not None and not stands_in_order(rows_found, judged.in_order):
        raise Wrong(f"seed {seed}: another order")
    if forwarding != HANDSHAKE and waits == 1.0:
        early = [row for batch in found[:before] for row in result_of(pa.Table.from_batches([batch]))]
        if judged.of_steps != multiset(early):
            raise Wrong(f"seed {seed}: matches that come late")


def holds(seed: int, forwarding: str) -> bool:
    """Whether a schedule finds nothing wrong."""
    try:
        check(seed, forwarding)
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
    return True


def _plan(case: Case, forwarding: str, chance: random.Random) -> Plan:
    bound = case.spec.bind({name: schema_of(table.schema) for name, table in case.tables.items()})
    arrow = [case.tables[name].schema for name in case.streams]
    return make_plan(bound, chance.choice(CORES), arrow, chance.choice(LOCAL_JOINS), handshake=forwarding == HANDSHAKE)


def _fed(cores: Cores, case: Case, plan: Plan, chance: random.Random, waits: float) -> tuple[list[pa.RecordBatch], int]:
    """All that the cores give, and how many of the batches before the end; every tuple is accounted for throughout."""
    found: list[pa.RecordBatch] = []
    given = [0] * len(case.streams)
    *steps, last = fed(case, plan)
    for admitted, horizon in steps:
        feed = cores.feed if chance.random() < waits else cores.offer
        found += feed(admitted, horizon)
        given = [count + (len(block) if block is not None else 0) for count, block in zip(given, admitted, strict=True)]
        for stream, count in enumerate(given):
            _accounts_for(count, cores.tally(stream))
        for _ in range(chance.randrange(12)):
            found += cores.poll()
    before = len(found)
    found += cores.finish(*last)
    given = [count + (len(block) if block is not None else 0) for count, block in zip(given, last[0], strict=True)]
    for stream, count in enumerate(given):
        if cores.tally(stream) != Tally(0, 0, count):
            raise Wrong(f"{count} tuples of stream {stream} came, and at the end {cores.tally(stream)}")
    return found, before


def _accounts_for(count: int, tally: Tally) -> None:
    if min(tally.waiting, tally.live, tally.expired) < 0 or tally.waiting + tally.live + tally.expired != count:
        raise Wrong(f"{count} tuples came, and there are {tally}")
