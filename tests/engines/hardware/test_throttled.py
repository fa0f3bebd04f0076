"""A circuit that discards tuples at its entrance: its result is the oracle's for the rows that it admits."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa

import handfast as hf
from handfast.engines.hardware.engine import Job, prepare
from tests.agreement.test_hardware import MOST_ROWS, HardwareCase, random_table
from tests.judges.rows import multiset, result_of


def test_a_throttled_circuit_equals_the_oracle_for_the_rows_that_it_admits() -> None:
    found = lost = 0
    for seed in range(8):
        case = HardwareCase(seed)
        job = prepare(*throttled(case, random.Random(seed)))
        assert isinstance(job, Job)
        outcome = job.run()
        case.tables = job.admitted(outcome)
        assert case.expected() == multiset(result_of(job.table(outcome.results))), f"seed {seed}: {case}"
        found += len(outcome.results)
        lost += sum(map(len, job.discarded(outcome)))
        assert sum(map(len, job.blocks)) == sum(map(len, case.tables.values())) + sum(map(len, job.discarded(outcome)))
    assert found > 100
    assert lost > 20


def throttled(case: HardwareCase, rng: random.Random) -> tuple[hf.JoinSpec, dict[str, pa.Table], hf.HardwareOptions]:
    """The case with tables of many rows, in a circuit that discards some: its chain is as long as the windows."""
    case.tables = {name: random_table(rng, rows=MOST_ROWS) for name in ("r", "s")}
    cores, segment = rng.choice(((1, 3), (2, 2), (3, 1), (4, 2)))
    case.asked = {"on": rng.choice(("r.k = s.k", "TRUE")), "window": f"{cores * segment} rows", "time": "ts"}
    options = replace(case.options, algorithm="handshake", cores=cores, segment=segment, admission="throttle")
    case.options = replace(options, step_every=rng.choice((None, 2, 8)))
    return hf.JoinSpec(("r", "s"), **case.asked), case.tables, case.options
