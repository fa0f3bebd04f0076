"""A session under load for a long time: memory stays flat, and every second every row is accounted for."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from time import perf_counter, sleep

import pytest

import handfast as hf
from handfast.cli.bench.measure import speed
from handfast.cli.bench.workload import Bench
from handfast.connectors.generate import CellJoin, Workload
from handfast.engines.local.options import FORWARDING

WINDOW = 10_000  # tuples of a stream
BLOCK = 500


def soak(seconds: float, forwarding: str, *, load: float = 0.8) -> tuple[list[int], int]:
    """Feed both streams at a part of what the cores can bear; the bytes in use second by second, and the rows fed."""
    workload = Workload(CellJoin(), seed=3, rate=WINDOW)
    spec = hf.JoinSpec(("r", "s"), workload.on, window="1 second", time="ts", lateness="0 seconds")
    options = hf.LocalOptions(cores=2, forwarding=forwarding, local_join="scan", admission="shed", target_load=1.0)
    session = hf.session(spec, {name: workload.schema(name) for name in ("r", "s")}, options=options)
    # what the cores can bear: a block of one stream meets the whole window of the other
    one = speed(Bench(WINDOW), hf.LocalOptions(cores=2, local_join="scan"), block=BLOCK, blocks=10)
    due = 2 * one.seconds / 10 / load
    begin, looked, step, memory = perf_counter(), 0, 0, []
    while (now := perf_counter() - begin) < seconds:
        rows = {name: workload.table(name, step * BLOCK, (step + 1) * BLOCK) for name in ("r", "s")}
        session.push_together(rows)
        step += 1
        if now >= looked:
            looked += 1
            metrics = session.metrics()
            for own in metrics.streams.values():
                assert own.rows_in == own.waiting + own.live + own.expired + own.late + own.shed + own.rejected
            memory.append(_resident())
            session.late_rows()
            session.shed_rows()
        sleep(max(0.0, step * due - (perf_counter() - begin)))
    session.close()
    for own in session.metrics().streams.values():
        assert (0, 0) == (own.waiting, own.live)
        assert own.rows_in == own.expired + own.late + own.shed
    return memory, step * BLOCK


def _resident() -> int:
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def check(memory: list[int], rows: int) -> None:
    settled = memory[len(memory) // 4]
    assert rows > 4 * WINDOW, "the windows were hardly full"
    assert max(memory[len(memory) // 4 :]) < 1.25 * settled, f"memory grew: {memory[:: max(1, len(memory) // 20)]}"


@pytest.mark.parametrize("forwarding", FORWARDING)
def test_memory_stays_flat_and_every_second_adds_up(
    forwarding: str, record_property: Callable[[str, object], None]
) -> None:
    memory, rows = soak(10, forwarding)
    check(memory, rows)
    record_property(f"soaked rows, {forwarding}", rows)


@pytest.mark.slow
@pytest.mark.parametrize("forwarding", FORWARDING)
def test_for_half_an_hour_memory_stays_flat_and_every_second_adds_up(forwarding: str) -> None:
    check(*soak(float(os.environ.get("SOAK_SECONDS", "1800")), forwarding))
