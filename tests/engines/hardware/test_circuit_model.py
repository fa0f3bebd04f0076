"""The fast model of the whole circuit: equal to the RTL in every cycle, over random circuits and inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handfast.engines.hardware.model import circuit
from handfast.engines.hardware.model.circuit import run
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.workload import StreamPair
from handfast.errors import InternalError
from tests.engines.hardware.observed import (
    Case,
    Observed,
    by_amaranth,
    by_verilator,
    differences,
    of_model,
    random_case,
)
from tests.engines.hardware.plain_chain import LAYOUT
from tests.engines.hardware.plain_model import in_python, observed
from tests.sampling import sampled

ON_AMARANTH = 96
SMALL = {"most_cores": 6, "most_steps": 24}
ON_VERILATOR = 240  # of which some stand still for ever
AT_ONCE = 20  # circuits that are built together


def check(case: Case, expected: Observed | None) -> bool:
    """Model and circuit agree in every cycle; where the circuit stands still for ever, the model says so.

    Returns:
        Whether the circuit comes to an end.
    """
    if expected is None:
        with pytest.raises(InternalError, match="stands still"):
            run(case.shape, case.steps, case.pairs(), every=case.every)
        return False
    found = of_model(run(case.shape, case.steps, case.pairs(), every=case.every, levels_every=1))
    assert not differences(expected, found), case.shape
    return True


@pytest.mark.parametrize("seed", sampled(range(ON_AMARANTH), 16))
def test_model_and_circuit_agree_in_every_cycle(seed: int) -> None:
    case = random_case(seed, **SMALL)
    check(case, by_amaranth(case))


def test_the_model_does_the_same_where_it_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    # the bugs of test_circuit_model_mutants are put into it there
    cases = [random_case(seed, **SMALL) for seed in range(ON_AMARANTH)]
    expected = [observed(circuit, case) for case in cases]
    plain = in_python(monkeypatch)
    assert expected == [observed(plain, case) for case in cases]


@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize(
    ("first", "count", "most_cores"),
    sampled([(900, 8, 3), *((k, AT_ONCE, 16) for k in range(1_000, 1_000 + ON_VERILATOR, AT_ONCE))], 100),
)
def test_model_and_verilator_agree_in_every_cycle(
    first: int, count: int, most_cores: int, record_property: Callable[[str, object], None]
) -> None:
    cases = [random_case(seed, most_cores=most_cores, most_steps=80) for seed in range(first, first + count)]
    ended = [check(case, expected) for case, expected in zip(cases, by_verilator(cases), strict=True)]
    assert sum(ended) >= count // 2
    record_property("configurations on Verilator", sum(ended))


@pytest.mark.slow
@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize(("network", "rate"), [("tree", 0.2), ("adaptive", 0.4), ("pipelined", 0.4)])
def test_model_and_verilator_agree_on_the_thesis_64_cores(network: str, rate: float) -> None:
    streams = StreamPair(tuples=512, match_rate=rate)
    shape = CircuitShape(cores=64, sizes=(8, 8), network=network)
    # keys of 8 bits: all tuples that match nothing have one key in R and another in S
    r, s = ([(0 if key == 0 else other, 0) for key in own] for own, other in zip(streams.keys(), (1, 2), strict=True))
    case = Case(shape, LAYOUT, streams.steps(shape.flush), (r, s), every=0)
    [expected] = by_verilator([case])
    assert expected is not None
    assert streams.results == len(expected.results)
    check(case, expected)
