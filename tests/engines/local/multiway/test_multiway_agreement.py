"""Three to 16 streams by every algorithm: rings, stashes of every size and plain probing find what both judges find."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.local.session import Session
from handfast.flow.metrics import CoreMetrics
from handfast.plan import ALGORITHMS, LOCAL_JOINS
from tests.agreement.order import groups, stands_in_order
from tests.agreement.runs import check_session
from tests.engines.local.multiway.scheduled import fickle, small_pieces
from tests.judges.rows import multiset, result_of, tables_of
from tests.sampling import sampled
from tests.strategies import Case
from tests.strategies.graphs import drifting_case, graph_case

CASES = 200
CHUNK = 20
ONE_SLOT = {"stage_buffer": 1}
WAYS: list[dict[str, Any]] = [
    {},
    {"algorithm": "plain"},
    {"algorithm": "circular"},
    {"algorithm": "circular", **ONE_SLOT},
    {"algorithm": "stashed"},
    {"algorithm": "stashed", "stash_size": 0, **ONE_SLOT},
    {"algorithm": "stashed", "stash_size": 1},
    {"algorithm": "stashed", "stash_size": 5, **ONE_SLOT},
]
Record = Callable[[str, object], None]


@pytest.fixture(autouse=True)
def pieces() -> Iterator[None]:
    """Few tuples go from stage to stage together, and few that have expired linger."""
    with small_pieces(3, 4):
        yield


def options_of(case: Case, seed: int, number: int) -> dict[str, Any]:
    """How a case is run the way of this number: any local join, on as many cores as the case says."""
    local_join = random.Random(seed + number).choice((*LOCAL_JOINS, LOCAL_JOINS[0]))
    return {"cores": case.cores, "local_join": local_join, **WAYS[number]}


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 10))
def test_every_algorithm_finds_what_oracle_and_duckdb_find(start: int, record_property: Record) -> None:
    joins = matched = 0
    for seed in range(start, start + CHUNK):
        case = graph_case(seed)
        expected = case.expected()
        assert expected == case.judged(), f"judges differ, seed {seed}: {case}"
        in_order = groups(case, tables_of(case.tables)) if case.spec.in_order else None
        for number in range(len(WAYS)):
            options = options_of(case, seed, number)
            table = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(**options))
            rows = result_of(table)
            assert expected == multiset(rows), f"{options}, seed {seed}: {case}"
            assert in_order is None or stands_in_order(rows, in_order), f"order, {options}, seed {seed}: {case}"
            joins += 1
        right = case.expected_of_steps(), case.expected_at_close()
        for number in (seed % len(WAYS), (seed + 3) % len(WAYS)):
            check_session(case, options_of(case, seed, number), right)
            joins += 1
        matched += bool(expected)
    record_property("joins of many streams", joins)
    record_property("cases with matches", matched)


def test_the_cases_cover_what_they_must(record_property: Record) -> None:
    """Counted over all cases: numbers of streams, graphs, windows, NULLs, ties, disorder."""
    cases = [graph_case(seed) for seed in range(0, CASES, 4)]
    features = [case.features() for case in cases if len(case.streams) < 6]
    for feature, share in {"matches": 0.6, "ties": 0.3, "expiry": 0.3, "nulls": 0.2, "disorder": 0.3}.items():
        seen = sum(feature in own for own in features) / len(features)
        record_property(f"of many streams: {feature}", round(seen, 2))
        assert seen >= share, feature
    every = [graph_case(seed) for seed in range(CASES)]
    assert {3, 4, 5, 6, 8, 9, 16} == {len(case.streams) for case in every}
    assert {"chain", "star", "cycle", "tree", "all", "some", "one key"} == {
        case.shape.name.rpartition(" of ")[0] for case in every
    }
    assert {1, 2, 3} == {case.cores for case in every}
    assert {"event", "arrival"} == {case.spec.order for case in every}


# -- everything matches, and every buffer has one slot ---------------------------------------------------------------


def everything(streams: int, rows: int, **more: Any) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """So many rows of each stream, all of which match all."""
    names = [f"s{number}" for number in range(streams)]
    tables = {
        name: pa.table({"at": pa.array(range(k, rows * streams, streams), pa.timestamp("us")), "n": range(rows)})
        for k, name in enumerate(names)
    }
    return tables, {"on": "TRUE", "window": "1 minute", "time": "at", **more}


@pytest.mark.parametrize(("streams", "rows"), [(3, 14), (4, 7), (5, 5), (8, 3)])
@pytest.mark.parametrize("options", [way for way in WAYS if way], ids=str)
def test_everything_matches_in_one_slot_buffers(
    streams: int, rows: int, options: dict[str, Any], record_property: Record
) -> None:
    tables, asked = everything(streams, rows)
    found = hf.join(tables, **asked, options=hf.LocalOptions(**(options | ONE_SLOT)))
    names = [f"{name}_n" for name in tables]
    assert rows**streams == found.num_rows == found.group_by(names).aggregate([]).num_rows
    record_property("joins of many streams", 1)


# -- changes while it runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [None, "circular", "stashed"])
def test_a_layout_may_change_at_any_step(algorithm: str | None, record_property: Record) -> None:
    joins = 0
    with fickle(random.Random(7)) as taken:
        for seed in range(6):
            case = drifting_case(seed, (3, 4, 5)[seed % 3])
            right = case.expected_of_steps(), case.expected_at_close()
            for size in (None, 3):
                check_session(case, {"cores": case.cores, "algorithm": algorithm, "stash_size": size}, right)
                joins += 1
    kinds = {kind for kind, _ in taken}
    assert kinds == (set(ALGORITHMS) if algorithm is None else {algorithm})
    assert len(set(taken)) >= 15
    record_property("joins whose layout changes", joins)


def test_the_choice_changes_with_the_match_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """First a and b find many partners in each other's windows and neither finds c; then it is b and c."""
    monkeypatch.setattr("handfast.core.rates._MEMORY", 200)
    monkeypatch.setattr("handfast.core.orders._FIRST", 64)
    monkeypatch.setattr("handfast.core.orders._MOST", 64)
    schema = pa.schema([("at", pa.timestamp("us")), ("x", pa.int64()), ("y", pa.int64())])
    asked = {"window": "1 second", "time": "at", "lateness": "0 seconds"}
    spec = hf.JoinSpec(("a", "b", "c"), "a.x < b.x AND b.y < c.y", **asked)
    options = hf.LocalOptions(algorithm="stashed")
    seen = []
    with hf.session(spec, dict.fromkeys("abc", schema), options=options) as session:
        for step in range(80):
            own = step < 40
            values = {"a": (0, 0), "b": (1, 9) if own else (0, 0), "c": (0, 0) if own else (0, 9)}
            for name, (x, y) in values.items():
                times = pa.array([step * 100_000 + n for n in range(10)], pa.timestamp("us"))
                session.push(name, pa.table({"at": times, "x": [x] * 10, "y": [y] * 10}))
            seen.append(session.metrics().cores[0].stash.streams)  # type: ignore[union-attr]
    assert len(set(seen)) > 1, seen
    assert seen[35] != seen[-1]


# -- sessions that refuse --------------------------------------------------------------------------------------------


def rows_at(start: int, count: int) -> pa.Table:
    return pa.table(
        {"at": pa.array(range(start, start + count), pa.timestamp("us")), "x": [k % 3 for k in range(count)]}
    )


def three(options: dict[str, Any]) -> Session:
    schema = rows_at(0, 1).schema
    spec = hf.JoinSpec(("a", "b", "c"), "a.x = b.x AND b.x <= c.x", window="1 hour", time="at", lateness="0 seconds")
    return hf.session(spec, dict.fromkeys("abc", schema), options=hf.LocalOptions(**options))


@pytest.mark.parametrize("algorithm", [None, "plain", "circular", "stashed"])
def test_a_batch_beyond_the_memory_limit_is_refused_and_nothing_is_lost(algorithm: str | None) -> None:
    with three({"algorithm": algorithm, "memory_limit": 2_000}) as session:
        found = sum(batch.num_rows for name in "ab" for batch in session.push(name, rows_at(0, 20)))
        with pytest.raises(hf.EngineError, match="memory_limit"):
            session.push("c", rows_at(100, 1_000))
        found += sum(batch.num_rows for batch in session.push("c", rows_at(100, 9)))
    found += sum(batch.num_rows for batch in session.close())
    a = [k % 3 for k in range(20)]
    assert found == sum(x == y and y <= z for x in a for y in a for z in a[:9])


@pytest.mark.parametrize("admission", ["overflow", "shed"])
@pytest.mark.parametrize("algorithm", [None, "plain", "circular", "stashed"])
@pytest.mark.parametrize("cores", [1, 2])
def test_what_is_shed_is_in_no_match_and_all_else_is(admission: str, algorithm: str | None, cores: int) -> None:
    options = {"algorithm": algorithm, "admission": admission, "capacity": 40, "cores": cores}
    found: list[pa.RecordBatch] = []
    shed: dict[str, list[pa.Table]] = {name: [] for name in "abc"}
    session = three(options)
    sent: dict[str, list[pa.Table]] = {name: [] for name in "abc"}
    for step in range(12):
        for name in "abc":
            rows = rows_at(step * 100, 6)
            sent[name].append(rows)
            found += session.push(name, rows)
            metrics: tuple[CoreMetrics, ...] = session.metrics().cores  # while the cores work and decide
            assert len(metrics) == cores
        for name, rows in session.shed_rows().items():
            shed[name].append(rows)
    found += session.close()
    kept = {}
    for name in "abc":
        gone = [(row["at"], row["x"]) for table in shed[name] for row in table.to_pylist()]
        every = [(row["at"], row["x"]) for table in sent[name] for row in table.to_pylist()]
        for row in gone:
            every.remove(row)
        kept[name] = every
    expected = sum(a[1] == b[1] and b[1] <= c[1] for a in kept["a"] for b in kept["b"] for c in kept["c"])
    assert expected == sum(batch.num_rows for batch in found)
