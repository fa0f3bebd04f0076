"""The choice of algorithm, order and stash follows the match rates, and says the numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.workload import Workload
from handfast.engines.local.multiway import choice
from handfast.engines.local.multiway.choice import Layout, choose, laid_out, layout_for
from handfast.plan import ALGORITHMS, CIRCULAR, PLAIN, STASHED

MANY = 1 << 20  # new tuples at a time: handing on costs nothing


def workload(
    streams: int, often: dict[tuple[int, int], float], *, live: int = 10_000, indexed: tuple[tuple[int, int], ...] = ()
) -> Workload:
    """Windows of one size, whose tuples match as often as is said, and else seldom."""
    rates = {pair: often.get(pair, 1e-6) for pair in combinations(range(streams), 2)}
    return Workload((live,) * streams, (1 / streams,) * streams, rates, frozenset(indexed))


@pytest.mark.parametrize("streams", range(3, 17))
def test_every_layout_names_every_stream_once_and_costs_something(streams: int) -> None:
    given = workload(streams, {(0, 1): 0.1, (1, 2): 1e-4})
    for algorithm in ALGORITHMS:
        layout = layout_for(given, algorithm, 1_000)
        assert algorithm == layout.algorithm
        assert list(range(streams) if algorithm != PLAIN else []) == sorted(layout.order)
        assert 0 < layout.cost < float("inf")


def test_many_streams_are_decided_by_few_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best way from each stream is sought once, however often it is asked for."""
    greedy, sought = Workload._greedy, []

    def counted(self: Workload, origin: int) -> tuple[int, ...]:
        sought.append(origin)
        return greedy(self, origin)

    monkeypatch.setattr(Workload, "_greedy", counted)
    choose(workload(16, {(0, 1): 0.1}), None, None, 1_000)
    assert len(sought) <= 16 + 1  # and the ring


def test_with_indexes_probing_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    every = tuple(combinations(range(3), 2))
    given = workload(3, dict.fromkeys(every, 1e-5), indexed=every)
    assert PLAIN == choose(given, None, None, 100).algorithm


def test_long_scans_are_worth_threads_and_few_tuples_at_a_time_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    given = workload(4, {}, live=1_000_000)
    assert PLAIN != choose(given, None, None, MANY).algorithm
    assert PLAIN == choose(workload(4, {}, live=300), None, None, 1).algorithm


def test_the_pairs_that_are_few_and_dear_to_find_are_kept() -> None:
    """0 and 2 match seldom; pairs that match often would fill the stash."""
    given = workload(3, {(0, 1): 0.01, (1, 2): 0.01, (0, 2): 1e-7})
    assert (0, 2) == layout_for(given, STASHED, MANY).order[:2]
    other = workload(3, {(0, 1): 1e-7, (1, 2): 0.01, (0, 2): 0.01})
    assert (0, 1) == layout_for(other, STASHED, MANY).order[:2]


def test_the_ring_is_the_cheapest_of_all_orders() -> None:
    given = workload(4, {(0, 1): 0.01, (1, 2): 1e-5, (2, 3): 0.001, (0, 3): 1e-6})
    best = layout_for(given, CIRCULAR, MANY)
    order = best.order
    others = [(0, *rest) for rest in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1))]
    assert given.ring_cost(order) == min(given.ring_cost(other) for other in others)
    assert laid_out(given, CIRCULAR, order, MANY).cost == best.cost


def test_what_is_there_stays_unless_another_is_clearly_better(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {PLAIN: 100.0, CIRCULAR: 90.0, STASHED: 200.0}
    lays_out = choice.laid_out
    monkeypatch.setattr(choice, "laid_out", lambda *asked: replace(lays_out(*asked), cost=costs[asked[1]]))
    given, present = workload(3, {}), Layout(PLAIN, (), 0.0)
    assert Layout(PLAIN, (), 100.0) == choose(given, None, present, 100)
    costs[CIRCULAR] = 84.0
    assert CIRCULAR == choose(given, None, present, 100).algorithm
    assert CIRCULAR == choose(given, None, None, 100).algorithm


SCHEMA = pa.schema([("at", pa.timestamp("us")), ("x", pa.int64())])
SPEC = hf.JoinSpec(("a", "b", "c"), "a.x < b.x AND b.x < c.x", window="1 hour", time="at", lateness="0 seconds")


def rows(values: list[int]) -> pa.Table:
    return pa.table({"at": pa.array(range(len(values)), pa.timestamp("us")), "x": values})


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("plain", "plain: a to "), ("circular", "circular: a ring of a, "), ("stashed", "stashed: the pairs of ")],
)
def test_explain_says_what_stands_and_the_rates_that_were_seen(algorithm: str, words: str) -> None:
    options = hf.LocalOptions(algorithm=algorithm)
    with hf.session(SPEC, dict.fromkeys("abc", SCHEMA), options=options) as session:
        for name, own in {"a": [0] * 300, "b": [1] * 300, "c": [0] * 300}.items():
            session.push(name, rows(own))
        for name in "abc":
            session.push(name, rows([5]))
        said = " ".join(session.explain().split())
    assert words in said
    assert "it was asked for: nanoseconds a row, plain " in said
    assert "partners of a row seen in the first" in said
    assert "b in a " in said


def test_explain_of_tables_says_what_is_expected_to_cost_the_least() -> None:
    said: Any = hf.explain(dict.fromkeys("abc", rows([1, 2, 3])), on=SPEC.on, window="1 hour", time="at")
    assert "it is expected to cost the least, or little more than that: nanoseconds a row, plain " in " ".join(
        str(said).split()
    )
