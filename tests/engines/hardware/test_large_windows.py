"""Windows that only RAM holds: the circuit finds what the rule says, up to 64k tuples."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.hardware.model.circuit import EMPTY, Pairs, Steps, run
from handfast.engines.hardware.shape import CircuitShape
from handfast.judge import oracle
from tests.judges.rows import multiset, result_of, schemas_of, tables_of


def tables(rows: int, keys: int) -> dict[str, pa.Table]:
    """Two streams that take turns now and then, and match now and then."""
    rng = random.Random(rows)
    return {
        name: pa.table(
            {
                "ts": pa.array(sorted(rng.randrange(4 * rows) for _ in range(rows)), pa.timestamp("s")),
                "k": pa.array([rng.randrange(keys) for _ in range(rows)], pa.int32()),
            }
        )
        for name in ("r", "s")
    }


def check_circuit(rows: int, keys: int, window: int, options: hf.HardwareOptions) -> None:
    """The circuit in Verilator finds what the oracle finds."""
    given, asked = tables(rows, keys), {"on": "r.k = s.k", "window": f"{window} rows", "time": "ts"}
    join = hf.JoinSpec(("r", "s"), **asked).bind(schemas_of(given))
    expected = multiset(oracle.result(join, tables_of(given)))
    assert expected
    assert "segments in RAM" in hf.explain(given, **asked, engine="hardware", options=options)
    assert expected == multiset(result_of(hf.join(given, **asked, engine="hardware", options=options)))


@pytest.mark.usefixtures("yosys")
def test_segments_too_long_for_registers_are_in_ram_and_tuples_expire_from_them() -> None:
    check_circuit(320, 100, 192, hf.HardwareOptions(cores=2, simulator="verilator"))


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
def test_a_segment_of_64k_slots_is_scanned_from_end_to_end() -> None:
    # a window that nothing leaves yet: a step takes 131,077 cycles
    check_circuit(24, 5, 65_536, hf.HardwareOptions(cores=1, segment=65_536, simulator="verilator"))


def test_the_model_of_64_cores_with_windows_of_64k_tuples_finds_the_pairs_that_the_windows_hold() -> None:
    cores, size, rows = 64, 1_024, 70_000
    window = cores * size
    rng = np.random.default_rng(1)
    r, s = (rng.integers(0, 40_000, rows) for _ in range(2))
    shape = CircuitShape(cores=cores, sizes=(size, size), ram=True, network="pipelined")
    entering = np.concatenate([np.arange(rows), np.full(shape.flush, EMPTY)])
    found = run(shape, Steps(entering, entering), Pairs.by_keys(r, s))

    # A step's R tuple comes before its S tuple: s meets the last tuples of R, its own step's among them, and r those of
    # S before it.
    by_key: dict[int, list[int]] = {}
    for place, key in enumerate(s.tolist()):
        by_key.setdefault(key, []).append(place)
    expected = [
        (place, other)
        for place, key in enumerate(r.tolist())
        for other in by_key.get(key, [])
        if place - window <= other < place + window
    ]
    everything = sum(len(by_key.get(key, [])) for key in r.tolist())
    assert 0 < len(expected) < everything, "some expire"
    assert expected == sorted(zip(found.r.tolist(), found.s.tolist(), strict=True))
