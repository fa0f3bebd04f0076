"""The fast model of the whole circuit: equal to the RTL in every cycle, over random circuits and inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handfast.engines.hardware.model.circuit import run
from handfast.errors import InternalError
from tests.engines.hardware.observed import Case, Observed, by_amaranth, by_verilator, differences, of_model, random_case
from tests.sampling import sampled

ON_AMARANTH = 48
ON_VERILATOR = 200


def check(case: Case, simulate: Callable[[Case], Observed | None]) -> bool:
    """Whether the circuit gives every result; it and the model agree in every cycle."""
    expected = simulate(case)
    if expected is None:
        with pytest.raises(InternalError, match="stands still"):
            run(case.shape, case.steps, case.pairs())
        return False
    found = of_model(run(case.shape, case.steps, case.pairs(), levels_every=1))
    assert not differences(expected, found), case.shape
    return True


@pytest.mark.parametrize("seed", sampled(range(ON_AMARANTH), 4))
def test_model_and_circuit_agree_in_every_cycle(seed: int) -> None:
    check(random_case(seed, most_cores=6, most_steps=24), by_amaranth)


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize("seed", sampled(range(1_000, 1_000 + ON_VERILATOR), 100))
def test_model_and_verilator_agree_in_every_cycle(seed: int) -> None:
    check(random_case(seed, most_cores=16, most_steps=80), by_verilator)
