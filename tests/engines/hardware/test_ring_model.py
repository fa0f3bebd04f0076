"""The fast model of rings and lines: equal to the RTL in every cycle, over random circuits and inputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handfast.engines.hardware.options import CIRCULAR, DROP, HIGHEST, STASHED
from tests.engines.hardware.ring_cases import (
    random_ring,
    ring_by_amaranth,
    ring_by_model,
    ring_differences,
    rings_by_verilator,
)
from tests.sampling import sampled

ON_AMARANTH = 120  # of each algorithm
ON_VERILATOR = 60
AT_ONCE = 10  # circuits that are built together

BOTH = pytest.mark.parametrize("algorithm", [CIRCULAR, STASHED])


@BOTH
@pytest.mark.parametrize("seed", sampled(range(ON_AMARANTH), 40))
def test_model_and_circuit_agree_in_every_cycle(seed: int, algorithm: str) -> None:
    job = random_ring(seed, most_streams=4, most_rows=10, algorithm=algorithm).job()
    assert not ring_differences(ring_by_amaranth(job), ring_by_model(job)), job.design.shape


@BOTH
@pytest.mark.usefixtures("yosys")
@pytest.mark.parametrize(
    ("first", "count", "most_streams"),
    sampled([(2_000, 5, 4), *((k, AT_ONCE, 8) for k in range(3_000, 3_000 + ON_VERILATOR, AT_ONCE))], 100),
)
def test_model_and_verilator_agree_in_every_cycle(
    first: int, count: int, most_streams: int, algorithm: str, record_property: Callable[[str, object], None]
) -> None:
    jobs = [
        random_ring(seed, most_streams=most_streams, most_rows=40, algorithm=algorithm).job()
        for seed in range(first, first + count)
    ]
    for job, expected in zip(jobs, rings_by_verilator(jobs), strict=True):
        assert not ring_differences(expected, ring_by_model(job)), job.design.shape
    record_property("configurations on Verilator", len(jobs))


def test_the_random_rings_have_all_that_a_ring_can_have() -> None:
    cases = [random_ring(seed, most_streams=8, most_rows=40) for seed in range(3_000, 3_040)]
    jobs = [case.job() for case in cases]
    shapes = [job.design.shape for job in jobs]
    assert {3, 7} <= {shape.streams for shape in shapes}
    assert {1, 2} <= {shape.comparisons for shape in shapes}
    assert any(case.options.admission == DROP for case in cases)
    assert any(case.options.turn == HIGHEST for case in cases)
    runs = [job.modelled() for job in jobs]
    assert sum(bool(run.dropped) for run in runs) >= 2
    assert sum(bool(run.waited.sum()) for run in runs) >= 8
    assert sum(len(run.results) > 100 for run in runs) >= 8


def test_the_random_lines_keep_overwrite_and_compute_again() -> None:
    jobs = [random_ring(seed, most_streams=6, most_rows=20, algorithm=STASHED).job() for seed in range(30)]
    runs = [job.modelled() for job in jobs]
    assert sum(bool(run.overwritten) for run in runs) >= 5
    assert sum(bool(run.computed) for run in runs) >= 5
    assert sum(bool(run.waited.sum()) for run in runs) >= 3
    assert sum(bool(len(run.results)) and not run.computed for run in runs) >= 5
