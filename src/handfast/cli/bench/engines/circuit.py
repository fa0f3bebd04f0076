"""The circuit on a workload: what it finds, in how many of its cycles, and how many of its bits change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from handfast.cli.bench.engines.seen import CIRCUIT, Latency, Seen
from handfast.cli.bench.engines.workload import Workload
from handfast.engines.hardware import activity
from handfast.engines.hardware.circular.job import RingJob
from handfast.engines.hardware.engine import Job, prepare
from handfast.engines.hardware.simulate import outcome_of, run_verilated
from handfast.engines.hardware.steps import in_steps
from handfast.errors import InternalError

Entered = list[dict[int, int]]  # by stream, the step that brought each place


def by_circuit(workload: Workload, mhz: float) -> Seen:
    """The circuit itself, on Verilator, fed as fast as it takes rows; seconds are its cycles at this clock.

    The rate is that of the second half of the rows, when windows are full. A match's latency is from the cycle in which
    the circuit takes the last of its rows.
    """
    job = prepare(workload.spec, workload.tables, workload.options)
    if isinstance(job, pa.Schema):
        raise InternalError("A workload has rows in every stream")
    top = job.design.build()
    built = activity.build(top)
    run = run_verilated(built.simulator, top, job.steps)
    outcome = outcome_of(run)
    taken = run.taken["steps"].astype(np.int64)
    entered = _entered(job)
    last = max(step for own in entered for step in own.values())
    half = last // 2
    fed = sum(half < step <= last for own in entered for step in own.values())
    rate = fed / int(taken[last] - taken[half]) * mhz * 1e6
    waits = []
    for result, cycle in zip(outcome.results, outcome.cycles, strict=True):
        members = job.design.layout.pair(result) if isinstance(job, Job) else job.design.layout.places(result)
        came = max(own[place] for own, place in zip(entered, members, strict=True))
        waits.append((cycle - int(taken[came])) / (mhz * 1e6))
    changed = f"{built.toggles(run).total / workload.tuples:,.0f} bits change for a row"
    return Seen(CIRCUIT, _ran(job, mhz), job.table(outcome.results), rate, Latency.of(waits), changed)


def _entered(job: Job | RingJob) -> Entered:
    """Which step brings each tuple."""
    entered: Entered = [{} for _ in job.blocks]
    if isinstance(job, Job):
        for number, step in enumerate(in_steps(job.blocks)):
            for each in step:
                if each is not None:
                    entered[each[0]][each[1]] = number
        return entered
    for stream, block in enumerate(job.blocks):  # a tuple in a step, in the order of rank
        entered[stream] = dict(enumerate(np.sum(block.seen, axis=0).tolist()))
    return entered


def _ran(job: Job | RingJob, mhz: float) -> str:
    if isinstance(job, Job):
        shape = job.design.shape
        kind = f"{shape.cores} cores"
    else:
        kind = f"{job.design.shape.stages} stages"
    return f"{kind}, {mhz:g} MHz"
