"""Three, four, five and eight streams at the operator, stopped and restarted, caches lost: each match is given once."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from handfast.core.planner import make_plan
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.pack import SEQUENCER
from handfast.engines.spark.sequence import SequenceProcessor
from tests.engines.spark.driven import Luck, State, Workers, arrivals, matches_of
from tests.judges.rows import multiset, schemas_of
from tests.sampling import sampled
from tests.strategies import Case
from tests.strategies.shared_keys import keyed_case

CASES, CHUNK = 252, 12  # nine of each kind of condition with each number of streams


def found(case: Case, luck: Luck) -> Counter[tuple[Any, ...]]:
    """What all cores give, batch by batch, each from the state that one of several attempts has left."""
    plan = make_plan(case.spec.bind(schemas_of(case.tables)), case.cores)
    door, cores, matches = State(), [State() for _ in range(plan.cores)], []
    for step in case.steps:
        tables = {name: step.get(name, table.slice(0, 0)) for name, table in case.tables.items()}
        if not any(table.num_rows for table in tables.values()):
            continue  # Spark starts no task for it
        if plan.join.stamped:
            sequencer = arrivals(plan, tables, SEQUENCER)
            door, sent = luck.attempts(lambda: SequenceProcessor(plan), door, sequencer)
        for core in range(plan.cores):
            own = sent[sent["core"] == core_key(core)] if plan.join.stamped else arrivals(plan, tables, core)
            cores[core], output = luck.attempts(lambda: JoinProcessor(plan), cores[core], own)
            matches += matches_of(output)
    return multiset(matches)


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 11))
def test_all_cores_together_give_what_both_judges_find(
    start: int, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    for seed in range(start, start + CHUNK):
        case = keyed_case(seed, for_spark=True)
        expected = case.expected_of_steps()
        assert expected == case.judged_of_steps(), f"judges: {case}"
        luck = Luck(random.Random(seed), Workers(3, monkeypatch))
        assert expected == found(case, luck), f"{case}"
    record_property("restarted cases", CHUNK)
