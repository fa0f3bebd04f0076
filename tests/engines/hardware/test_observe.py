"""What is seen of a run: the same on both simulators, and what the run must have had."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from handfast.engines.hardware import observe
from handfast.engines.hardware.simulate import by_amaranth
from handfast.engines.hardware.steps import flush_steps
from handfast.errors import UnsupportedError
from tests.engines.hardware.plain_chain import EMPTY, Step, random_steps, step_word
from tests.engines.hardware.test_top import circuit

CORES, SIZE, DEPTH = 3, 3, 4


def fed(keys: int) -> list[int]:
    steps: list[Step] = random_steps(random.Random(11), 40, keys)
    return [step_word(step) for step in steps + [(EMPTY, EMPTY)] * flush_steps(CORES, (SIZE, SIZE))]


def check_observed(module: Any) -> None:
    """Where everything matches, cores are suspended; where nothing does, buffers stay empty."""
    seen = {
        name: module.observe(circuit("tree", CORES, SIZE, DEPTH, 3), fed(1), simulator=name)
        for name in ("amaranth", "verilator")
    }
    assert seen["amaranth"] == seen["verilator"]
    found = seen["verilator"]
    assert by_amaranth(circuit("tree", CORES, SIZE, DEPTH, 3), fed(1)) == found.outcome
    assert found.outcome.cycles[-1] < found.cycles
    assert 0 < found.suspended < found.cycles
    assert 2 * CORES == len(found.levels)  # behind each core, and in each merger
    assert 1 < max(found.levels) <= DEPTH


@pytest.mark.usefixtures("yosys")
def test_both_simulators_see_the_same() -> None:
    check_observed(observe)


def test_without_matches_nothing_is_buffered_and_nobody_waits(tmp_path: Path) -> None:
    steps = [step_word((slot_r, None)) for slot_r, _ in random_steps(random.Random(1), 20, 1) if slot_r is not None]
    seen = observe.observe(
        circuit("tree", CORES, SIZE, DEPTH, 3), steps, simulator="amaranth", waveform=tmp_path / "run.vcd"
    )
    assert (0, (0,) * (2 * CORES), []) == (seen.suspended, seen.levels, seen.outcome.results)
    assert "$enddefinitions" in (tmp_path / "run.vcd").read_text()


def test_a_simulator_that_shows_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot be watched on simulator='guess'; use 'amaranth' or 'verilator'"):
        observe.observe(circuit("tree", 1, 1, DEPTH, 3), [], simulator="guess")
