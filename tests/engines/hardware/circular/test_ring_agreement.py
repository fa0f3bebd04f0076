"""A ring of stages, and a line with a stash, find what the oracle finds, through `hf.join`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.hardware.circular.job import RingJob
from handfast.engines.hardware.engine import prepare
from handfast.engines.hardware.simulate import by_amaranth
from handfast.engines.hardware.stashed.line import LineCircuit
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of
from tests.sampling import sampled

NAMES = "abcdefgh"
CASES = 200
CHUNK = 10
SMALL = (1, 2, 3, 11)  # tables of which some tuples find all pairs and some do not
STASHES = (0, 1, 2, 3, 5, 8, 20, 100)  # sizes: from one that never has all pairs to one that always has
INPUTS = 12  # that each circuit is given which is built once


class RingCase:
    """A random join of three to eight small tables, and a random ring for it."""

    def __init__(self, seed: int, most_streams: int = 8) -> None:
        rng = random.Random(seed)
        self.names = NAMES[: rng.choice((3, 3, 3, 4, 4, *range(5, most_streams + 1)))]
        streams = len(self.names)
        keys = rng.choice((1, 2, 3)) if streams < 5 else 4
        self.tables = {name: random_table(rng, keys, rows=None) for name in self.names}
        kinds = rng.choice((("rows",), ("seconds",), ("rows", "seconds")))
        lengths = (1, 2, 3, 5, 9) if streams < 5 else (1, 2, 3)
        windows = {name: f"{rng.choice(lengths)} {rng.choice(kinds)}" for name in self.names}
        self.asked: dict[str, Any] = {"on": self.predicate(rng), "window": windows, "time": "ts"}
        if rng.random() < 0.2:
            self.asked["sequence"] = "x"
            if kinds == ("rows",) and rng.random() < 0.5:
                self.asked["order"] = "arrival"
        margin = rng.choice((1, 3))
        self.options = hf.HardwareOptions(
            in_flight=rng.choice((1, 2, 3, 8, 20)),
            stage_buffer=rng.choice((1, 1, 2, 4)),
            turn=rng.choice(("round_robin", "highest")),
            comparisons=rng.choice((1, 1, 2, 3, 4)),
            segment=rng.choice((None, None, 30)),
            margin=margin,
            network_buffer=margin + rng.choice((1, 2, 5)),
        )

    def predicate(self, rng: random.Random) -> str:
        """A condition; over many streams one that few rows match."""
        a, b, *_, z = self.names
        chained = " AND ".join(f"{x}.k = {y}.k" for x, y in zip(self.names, self.names[1:], strict=False))
        few = (chained, f"{chained} AND {a}.x < {z}.x", f"{chained} AND {b}.x > 0")
        many = (
            "TRUE",
            f"{a}.x < {b}.x AND ABS({b}.x - {z}.x) <= 3",
            f"{a}.k = {z}.k AND {b}.x > 0",
            f"{a}.x > 0 AND {a}.x + {b}.x < {z}.x",
            f"{a}.k <=> {b}.k OR {b}.k = {z}.k",
            f"{a}.k + 1 = {b}.k AND {a}.x = {b}.x AND {z}.x = {a}.x",
            f"{z}.k IS NULL AND {z}.x > {a}.x",
        )
        return rng.choice(few + many if len(self.names) < 5 else few)

    def expected(self) -> Counter[tuple[Any, ...]]:
        join = hf.JoinSpec(tuple(self.names), **self.asked).bind(schemas_of(self.tables))
        return multiset(oracle.result(join, tables_of(self.tables)))

    def found(self) -> Counter[tuple[Any, ...]]:
        return multiset(result_of(hf.join(self.tables, **self.asked, engine="hardware", options=self.options)))

    def __repr__(self) -> str:
        return f"{self.asked} {self.options} { ({n: len(t) for n, t in self.tables.items()}) }"


def random_table(rng: random.Random, keys: int, rows: int | None, spread: int | None = None) -> pa.Table:
    """Some rows: spread over the time, in bursts, or all at once, with ties and NULLs."""
    rows = rows or rng.choice((1, 3, 6, 10))
    spread = spread or rng.choice((1, 4, 12))
    start = rng.choice((0, 0, spread))
    nulls = rng.choice((0, 0.2))
    times = [(start + rng.randrange(spread)) * 1_000_000 for _ in range(rows)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array([None if rng.random() < nulls else rng.randrange(keys) for _ in times], pa.int32()),
            "x": pa.array([rng.randrange(-4, 5) for _ in times], pa.int8()),
            "name": [f"row {number}" for number in range(rows)],
        }
    )


def check_seeds(seeds: Iterable[int], **options: Any) -> None:
    for seed in seeds:
        case = RingCase(seed)
        case.options = replace(case.options, **options)
        assert case.expected() == case.found(), f"seed {seed}: {case}"


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 5))
def test_the_ring_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    check_seeds(range(start, start + CHUNK))
    record_property("ring joins on Amaranth", CHUNK)


def check_stashes(seeds: Iterable[int]) -> None:
    for seed in seeds:
        check_seeds([seed], algorithm="stashed", stash_size=random.Random(seed).choice(STASHES))


@pytest.mark.parametrize("start", sampled(range(1_000, 1_000 + CASES, CHUNK), 5))
def test_the_line_with_a_stash_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    check_stashes(range(start, start + CHUNK))
    record_property("line joins on Amaranth", CHUNK)


def check_small_stash(seed: int) -> None:
    """A stash in which pairs are overwritten that could still match, and which is whole again now and then."""
    rng = random.Random(seed)
    case = RingCase(0)
    case.names = NAMES[:3]
    case.tables = {name: random_table(rng, 2, rows=24, spread=40) for name in case.names}
    case.asked = {"on": "a.x < b.x AND b.k = c.k", "window": "5 rows", "time": "ts"}
    case.options = hf.HardwareOptions(algorithm="stashed", stash_size=6, comparisons=2, in_flight=8)
    job = prepare(hf.JoinSpec(tuple(case.names), **case.asked), case.tables, case.options)
    assert isinstance(job, RingJob)
    top = job.design.build()
    assert isinstance(top, LineCircuit)
    computed = 0

    def look(ctx: Any) -> None:
        nonlocal computed
        computed = ctx.get(top.computed)

    outcome = by_amaranth(top, job.steps, look=look)
    assert case.expected() == multiset(result_of(job.table(outcome.results)))
    assert 0 < computed < 24  # some of the third stream's tuples have computed pairs, and some have found them


@pytest.mark.parametrize("seed", SMALL)
def test_a_stash_that_is_too_small_now_and_then_loses_nothing(seed: int) -> None:
    check_small_stash(seed)


def check_everything_matching(streams: int, **options: Any) -> None:
    """All tuples of all streams match, and there is room for one intermediate at each hop."""
    rng = random.Random(streams)
    case = RingCase(0)
    case.names = NAMES[:streams]
    case.tables = {name: random_table(rng, 1, rows=5 if streams < 6 else 3) for name in case.names}
    case.asked = {"on": "TRUE", "window": "2 rows", "time": "ts"}
    case.options = hf.HardwareOptions(stage_buffer=1, margin=1, network_buffer=2, **options)
    expected = case.expected()
    assert expected.total() > 2 ** (streams - 2)
    assert expected == case.found(), case


@pytest.mark.parametrize("stash", [0, 2, 1_000])
@pytest.mark.parametrize("streams", range(3, 9))
def test_a_line_with_room_for_one_is_never_stuck_where_everything_matches(streams: int, stash: int) -> None:
    check_everything_matching(streams, in_flight=8, algorithm="stashed", stash_size=stash)


@pytest.mark.parametrize("turn", ["round_robin", "highest"])
@pytest.mark.parametrize("streams", range(3, 9))
def test_a_ring_with_room_for_one_is_never_stuck_where_everything_matches(streams: int, turn: str) -> None:
    check_everything_matching(streams, in_flight=8, turn=turn)


# Built once each: with these segments a circuit is the same for all tables of so many rows.
BUILT = {
    "equalities that chain, by time": ("a.k = b.k AND b.k = c.k", "4 seconds", 3, {"comparisons": 2}),
    "everything, by rows": ("TRUE", "3 rows", 3, {"stage_buffer": 1, "in_flight": 4}),
    "a stash, often too small": ("a.x < b.x AND b.k = c.k", "4 rows", 3, {"algorithm": "stashed", "stash_size": 5}),
    "four streams": ("a.k = c.k AND ABS(b.x - d.x) <= 2 AND a.x < b.x", {"a": "4 rows", "b": "3 seconds"}, 4, {}),
}


@pytest.mark.parametrize("kind", sampled(BUILT, 2))
def test_one_circuit_on_verilator_equals_the_oracle_for_many_inputs(
    kind: str, record_property: Callable[[str, object], None]
) -> None:
    on, window, streams, options = BUILT[kind]
    case = RingCase(0)
    case.names = NAMES[:streams]
    windows = dict.fromkeys(case.names, "4 rows") | window if isinstance(window, dict) else window
    case.asked = {"on": on, "window": windows, "time": "ts"}
    case.options = hf.HardwareOptions(segment=12, simulator="verilator", **{"in_flight": 10} | options)
    found = 0
    for seed in range(INPUTS):
        rng = random.Random(seed)
        case.tables = {name: random_table(rng, 2, rows=12) for name in case.names}
        assert case.expected() == case.found(), f"seed {seed}: {case}"
        found += case.expected().total()
    assert found > INPUTS
    record_property("ring inputs on Verilator", INPUTS)


# Circuits in which a tuple matches everything but at its last stage: long work, and nothing comes out.
SILENT = {
    "ring": (3, 55, {"in_flight": 1}),
    "line": (4, 24, {"in_flight": 2, "algorithm": "stashed", "stash_size": 0}),
}


@pytest.mark.parametrize("kind", sampled(SILENT, 2))
def test_a_circuit_that_works_long_without_a_result_is_not_taken_for_one_that_stands_still(kind: str) -> None:
    streams, rows, options = SILENT[kind]
    case = RingCase(0)
    case.names = NAMES[:streams]
    case.tables = {
        name: pa.table(
            {
                "ts": pa.array([streams * row + place for row in range(rows + 3)], pa.timestamp("us")),
                "x": pa.array([0] * (rows + 2) + [1], pa.int8()),
            }
        )
        for place, name in enumerate(case.names)
    }
    on = " + ".join(f"{name}.x" for name in case.names) + f" = {streams}"
    case.asked = {"on": on, "window": f"{rows} rows", "time": "ts"}
    case.options = hf.HardwareOptions(simulator="verilator", **options)
    assert 1 == case.found().total()  # that of the last rows; the oracle would try millions of others
