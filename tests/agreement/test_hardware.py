"""The circuit finds what the oracle finds, through `hf.join`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import handfast as hf
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of
from tests.sampling import sampled

CASES = 300
CHUNK = 15
MOST_ROWS = 24
INPUTS = 10  # that each circuit is given which is built once
PREDICATES = (
    "r.k = s.k",
    "r.k = s.k AND r.x < s.x",
    "ABS(r.x - s.x) <= 2",
    "r.x BETWEEN s.x - 1 AND s.x + 3 OR r.k <=> s.k",
    "r.x <> s.x",
    "r.k IS NULL AND s.x > 3",
    "TRUE",
    "FALSE",
)


class HardwareCase:
    """A random join of two small tables, and a random circuit for it."""

    def __init__(self, seed: int, most_cores: int = 8) -> None:
        rng = random.Random(seed)
        self.tables = {name: random_table(rng) for name in ("r", "s")}
        kinds = rng.choice((("rows", "rows"),) * 3 + (("seconds", "seconds"), ("rows", "seconds"), ("seconds", "rows")))
        windows = {name: f"{rng.choice((1, 2, 3, 4, 6, 8, 12))} {kind}" for name, kind in zip("rs", kinds, strict=True)}
        if kinds == ("rows", "rows") and rng.random() < 0.4:
            windows["s"] = windows["r"]
        self.asked: dict[str, Any] = {"on": rng.choice(PREDICATES), "window": windows, "time": "ts"}
        if rng.random() < 0.2:
            self.asked["sequence"] = "x"
            if kinds == ("rows", "rows") and rng.random() < 0.5:
                self.asked["order"] = "arrival"
        margin = rng.choice((1, 2, 3))
        nested = rng.random() < 0.1
        cores = 1 if nested else rng.randint(1, most_cores)
        self.options = hf.HardwareOptions(
            cores=None if nested else cores,
            algorithm="nested_loop" if nested else "handshake",
            segment=MOST_ROWS // cores + rng.randint(1, 3) if rng.random() < 0.2 else None,
            memory=rng.choice((None, "registers", "ram")),
            network=rng.choice(("tree", "adaptive", "pipelined")),
            margin=margin,
            core_buffer=margin + rng.choice((1, 2, 5)),
            network_buffer=margin + rng.choice((1, 2, 5)),
            comparisons=rng.choice((1, 1, 2, 3, 5)),
            scan="immediate" if nested else rng.choice(("immediate", "eager")),
            merge_clock=rng.choice((1, 1, 1, 2, 3)),
        )

    def expected(self) -> Counter[tuple[Any, ...]]:
        join = hf.JoinSpec(("r", "s"), **self.asked).bind(schemas_of(self.tables))
        return multiset(oracle.result(join, tables_of(self.tables)))

    def found(self) -> Counter[tuple[Any, ...]]:
        return multiset(result_of(hf.join(self.tables, **self.asked, engine="hardware", options=self.options)))

    def __repr__(self) -> str:
        return f"{self.asked} {self.options} { ({n: len(t) for n, t in self.tables.items()}) }"


def random_table(rng: random.Random, rows: int | None = None) -> pa.Table:
    """Some rows: spread over the time, in bursts, or all at once, with ties and NULLs."""
    rows = rows or rng.choice((0, 1, 5, 12, 20, 20, MOST_ROWS))
    spread = rng.choice((1, 6, 20, 60))
    start = rng.choice((0, 0, spread))
    nulls = rng.choice((0, 0.2))
    keys = rng.choice((1, 2, 4))
    times = [(start + rng.randrange(spread)) * 1_000_000 for _ in range(rows)]
    return pa.table(
        {
            "ts": pa.array([None if rng.random() < 0.03 else time for time in times], pa.timestamp("us")),
            "k": pa.array([None if rng.random() < nulls else rng.randrange(keys) for _ in times], pa.int32()),
            "x": pa.array([rng.randrange(-4, 5) for _ in times], pa.int8()),
            "name": [f"row {number}" for number in range(rows)],
        }
    )


@pytest.mark.parametrize("start", sampled(range(0, CASES, CHUNK), 5))
def test_the_circuit_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    check_seeds(range(start, start + CHUNK))
    record_property("joins on Amaranth", CHUNK)


@pytest.mark.parametrize("start", range(2_000, 2_000 + CASES, CHUNK))
def test_the_circuit_on_the_model_equals_the_oracle(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        case = HardwareCase(seed, most_cores=16)
        case.options = replace(case.options, simulator="model")
        assert case.expected() == case.found(), f"seed {seed}: {case}"
    record_property("joins on the model", CHUNK)


def check_seeds(seeds: Iterable[int]) -> None:
    for seed in seeds:
        case = HardwareCase(seed)
        assert case.expected() == case.found(), f"seed {seed}: {case}"


@pytest.mark.parametrize("seed", sampled([3, 8, *range(1_000, 1_040)], 42))
def test_the_circuit_on_verilator_equals_the_oracle(seed: int) -> None:
    case = HardwareCase(seed)
    case.options = replace(case.options, simulator="verilator")
    assert case.expected() == case.found(), case


# Built once each: with these segments a circuit is the same for all tables of so many rows.
BUILT = {
    "tree, by position": ("r.k = s.k", "6 rows", {"cores": 3, "segment": 2, "network": "tree"}),
    "adaptive, by time": ("ABS(r.x - s.x) <= 2", "8 seconds", {"cores": 4, "segment": 6, "network": "adaptive"}),
    "eager, by stamps": (
        "TRUE",
        "4 rows",
        {"cores": 2, "segment": 3, "scan": "eager", "margin": 1, "network_buffer": 2},
    ),
    "nested loop": (
        "r.k = s.k AND r.x < s.x",
        "5 rows",
        {"algorithm": "nested_loop", "comparisons": 2, "memory": "ram"},
    ),
}


@pytest.mark.parametrize("kind", BUILT)
def test_one_circuit_on_verilator_equals_the_oracle_for_many_inputs(
    kind: str, record_property: Callable[[str, object], None]
) -> None:
    on, window, circuit = BUILT[kind]
    case = HardwareCase(0)
    case.asked = {"on": on, "window": window, "time": "ts"}
    case.options = hf.HardwareOptions(**circuit, simulator="verilator")
    found = 0
    for seed in range(INPUTS):
        rng = random.Random(seed)
        case.tables = {name: random_table(rng, rows=MOST_ROWS) for name in ("r", "s")}
        assert case.expected() == case.found(), f"seed {seed}: {case}"
        found += case.expected().total()
    assert found > INPUTS
    record_property("inputs on Verilator", INPUTS)


def test_a_window_of_64_rows_in_4_cores() -> None:
    # 64 rows in 4 cores: a chain as long as the window, in which no stamp travels
    rng = random.Random(64)
    case = HardwareCase(0)
    case.tables = {
        name: pa.table(
            {
                "ts": pa.array(sorted(rng.randrange(200) for _ in range(100)), pa.timestamp("s")),
                "k": pa.array([rng.randrange(40) for _ in range(100)]),
            }
        )
        for name in ("r", "s")
    }
    case.asked = {"on": "r.k = s.k", "window": "64 rows", "time": "ts"}
    case.options = hf.HardwareOptions(cores=4)
    assert case.expected() == case.found()
    assert case.expected()
