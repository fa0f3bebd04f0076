"""A new routing is one class and its entry in the registry: nothing else has to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import handfast as hf
from handfast.core.planner import make_plan
from handfast.core.probe import Members, NewTuples
from handfast.core.routing import registry
from handfast.core.routing.outgoing import Outgoing, Sent
from handfast.core.routing.routing import Routing
from handfast.core.segment import Segment
from handfast.flow.block import HOME
from handfast.plan import Offer, Plan
from tests.agreement.runs import local_bounded, local_steps_and_close, open_session
from tests.strategies import Case

CORES = 3
SEEDS = range(24)


class LastRouting(Routing):
    """Everything to the last core."""

    name = "last"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        return True

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_one_core(tuples.plan.cores - 1)

    def words(self, plan: Plan) -> tuple[str, str]:
        return "all at the last core", "a toy wants it so"


class CopyRouting(Routing):
    """Everything to every core, which stores it; a pair is emitted where its later tuple is at home."""

    name = "copy"
    rule = 1

    def takes(self, offer: Offer) -> bool:
        return not offer.join.preserved

    def destinations(self, tuples: Outgoing) -> Iterator[Sent]:
        return tuples.to_every_core()

    def emitted(self, plan: Plan, new: NewTuples, stored: Sequence[Segment], members: Members) -> Members:
        own = (new.block.flags[members[new.stream]] & HOME) != 0
        return {stream: positions[own] for stream, positions in members.items()}

    def words(self, plan: Plan) -> tuple[str, str]:
        return "copies on every core", "another toy wants it so"


TOYS = pytest.mark.parametrize("toy", [LastRouting(), CopyRouting()], ids=lambda toy: toy.name)


def enter(toy: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line: an entry in the registry, before all others."""
    monkeypatch.setattr(registry, "ROUTINGS", (toy, *registry.ROUTINGS))


@TOYS
def test_a_new_routing_gives_what_the_oracle_gives(toy: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(toy, monkeypatch)
    found = 0
    for seed in SEEDS:
        case = replace(Case.of(seed), cores=CORES)
        assert toy == make_plan(case.join, CORES).routing
        assert case.expected() == local_bounded(case), f"{case}"
        assert (case.expected_of_steps(), case.expected_at_close()) == local_steps_and_close(case), f"{case}"
        found += case.expected().total()
    assert found > 0


def test_only_the_cores_that_a_new_routing_names_get_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(LastRouting(), monkeypatch)
    case = Case.of(0)
    with open_session(case, cores=CORES) as session:
        session.push_together(case.tables)
        stored = [sum(core.live) for core in session.metrics().cores]
    assert [0, 0] == stored[:-1]
    assert 0 < stored[-1]


def test_without_the_rule_of_who_emits_a_pair_it_is_given_by_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(CopyRouting(), monkeypatch)
    monkeypatch.setattr(CopyRouting, "emitted", Routing.emitted)
    case = next(case for case in map(Case.of, SEEDS) if case.expected())
    tripled = {row: CORES * count for row, count in case.expected().items()}
    assert tripled == local_bounded(replace(case, cores=CORES))


@TOYS
def test_a_new_routing_speaks_for_itself(toy: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(toy, monkeypatch)
    case = Case.of(0)
    how, why = toy.words(plan := make_plan(case.join, CORES))
    text = hf.explain(case.tables, **case.kwargs, options=hf.LocalOptions(cores=CORES))
    assert f"  routing    {how}, over 3 cores\n             because {why}\n" in text
    assert plan.fingerprint["routing"].startswith(f"{toy.name}, anchored at ")
    assert "1" == plan.fingerprint["routing rule"]


def test_names_and_rules_are_as_they_stand_in_checkpoints() -> None:
    names = [routing.name for routing in registry.ROUTINGS]
    split = {"hash, hot keys split", "range, hot ranges split"}
    assert ["handshake", "hypercube", "hash", "one", "range", "meet", "spread"] == [n for n in names if n not in split]
    assert split <= set(names)
    assert {1} == {routing.rule for routing in registry.ROUTINGS}
