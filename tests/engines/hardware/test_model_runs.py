"""Runs of the fast model: what it is asked for, what it refuses, and how it is read in pieces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import handfast as hf
from handfast.engines.hardware.engine import Job, prepare
from handfast.engines.hardware.model import circuit
from handfast.engines.hardware.model.circuit import EMPTY, Pairs, Steps, run
from handfast.engines.hardware.shape import CircuitShape
from handfast.errors import SpecError, UnsupportedError
from tests.engines.hardware.observed import random_case

SHAPE = CircuitShape(cores=2, sizes=(2, 2))
ONE = np.array([0])


def test_levels_are_looked_at_now_and_then() -> None:
    case = random_case(5, most_cores=6, most_steps=24)

    def levels(every: int) -> Any:
        return run(case.shape, case.steps, case.pairs(), every=case.every, levels_every=every).levels

    every_cycle = levels(1)
    assert np.array_equal(every_cycle[:, ::7], levels(7))
    assert every_cycle.max() > 0
    assert levels(0) is None


def test_a_run_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(5, most_cores=6, most_steps=24)
    whole = run(case.shape, case.steps, case.pairs(), every=case.every, levels_every=1)
    monkeypatch.setattr(circuit, "_ROOM", 3)
    pieces = run(case.shape, case.steps, case.pairs(), every=case.every, levels_every=1)
    assert len(whole.r) > 10
    for name in ("r", "s", "cycles", "taken", "levels"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))


def test_listed_pairs_and_equal_keys_are_the_same() -> None:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 4, (2, 30))
    own = np.concatenate([np.arange(30), np.full(SHAPE.flush, EMPTY)])
    r, s = np.nonzero(keys[0][:, None] == keys[1][None, :])
    by_keys, listed = (run(SHAPE, Steps(own, own), each) for each in (Pairs.by_keys(*keys), Pairs.of(r, s, (30, 30))))
    assert len(by_keys.r) > 10
    assert np.array_equal(by_keys.r, listed.r)
    assert np.array_equal(by_keys.cycles, listed.cycles)


def test_nothing_enters_and_nothing_comes_out() -> None:
    nothing = np.empty(0, np.int64)
    found = run(SHAPE, Steps(nothing, nothing), Pairs.by_keys(nothing, nothing))
    assert (0, 0, 0) == (len(found.r), found.total, found.idle)


@pytest.mark.parametrize(
    ("shape", "steps", "pairs", "says"),
    [
        (SHAPE, lambda: Steps(ONE, np.array([0, 1])), Pairs.by_keys(ONE, ONE), "Each step has its place of R and of S"),
        (SHAPE, lambda: Steps(np.array([0, 0]), np.array([0, 1])), Pairs.of(ONE, ONE, (1, 2)), "one enters twice"),
        (
            replace(SHAPE, latency=0),
            lambda: Steps(ONE, ONE),
            Pairs.by_keys(ONE, ONE),
            "latency of 1 or 2 cycles, not 0",
        ),
    ],
)
def test_what_the_model_cannot_run_is_refused(shape: CircuitShape, steps: Any, pairs: Pairs, says: str) -> None:
    with pytest.raises((SpecError, UnsupportedError), match=says):
        run(shape, steps(), pairs)


def test_the_model_of_a_join_is_watched_as_its_circuit_is(tmp_path: Path) -> None:
    stream = pa.table({"ts": pa.array(range(12), pa.timestamp("us")), "k": [n % 3 for n in range(12)]})
    spec = hf.JoinSpec(("r", "s"), on="r.k = s.k", window="4 rows", time="ts")
    jobs = {}
    for simulator in ("amaranth", "model"):
        job = prepare(spec, {"r": stream, "s": stream}, hf.HardwareOptions(cores=2, simulator=simulator))
        assert isinstance(job, Job)
        jobs[simulator] = job
    assert jobs["amaranth"].observed() == jobs["model"].observed()
    assert jobs["model"].run().results
    with pytest.raises(UnsupportedError, match="no signals that a waveform could show"):
        jobs["model"].observed(waveform=tmp_path / "run.vcd")
