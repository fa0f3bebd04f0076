"""`handfast bench engines`: runs every engine on the same joins, compares what they find, and writes the page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from handfast import api
from handfast.cli.bench.engines.circuit import by_circuit
from handfast.cli.bench.engines.page import page
from handfast.cli.bench.engines.result import Compared
from handfast.cli.bench.engines.seen import Seen, rate_of, time_of
from handfast.cli.bench.engines.software import CORES, by_local, by_oracle, by_spark
from handfast.cli.bench.engines.workload import QUICK, WHOLE, Workload
from handfast.cli.bench.scaling import setting
from handfast.cli.drawing import new_figure
from handfast.cli.html import check_out, write_page
from handfast.cli.interrupts import Interrupts
from handfast.cli.screen import Screen
from handfast.cli.size.demand import check_clock
from handfast.engines.hardware import toolchain
from handfast.engines.spark import embedded

_BATCHES, _QUICK_BATCHES = 20, 2  # on Spark


def run(out: Path, *, quick: bool, mhz: float, screen: Screen) -> bool:
    """Run everything and write the page; whether all engines found what the oracle found.

    Args:
        out: The page.
        quick: Whether to run small joins, to see that it works.
        mhz: The clock by which cycles of the circuit are seconds.
        screen: Where to show it.
    """
    check_clock(mhz)
    check_out(out)
    new_figure()  # before minutes of runs: what is needed is there
    embedded.check("Spark's part of the page")
    toolchain.compiler()
    workloads = QUICK if quick else WHOLE
    with screen.stages() as begins:
        before = [_without_spark(workload, mhz, begins) for workload in workloads]
        on_spark = _on_spark(workloads, _QUICK_BATCHES if quick else _BATCHES, begins)
    compared = [
        Compared(workload, (oracle, local, spark, circuit), _drawn(workload))
        for workload, (oracle, local, circuit), spark in zip(workloads, before, on_spark, strict=True)
    ]
    about = {
        "command": f"handfast bench engines{' --quick' if quick else ''} --clock {mhz:g}",
        "machine": f"{setting()['cpu']}, {setting()['cpus']} CPUs",
        "seed": ", ".join(f"{own.workload.seed}" for own in compared),
    }
    write_page(out, page(compared, about))
    _show(compared, out, screen)
    return all(own.agrees for own in compared)


def _without_spark(workload: Workload, mhz: float, begins: Callable[[str], None]) -> tuple[Seen, Seen, Seen]:
    """A workload on the oracle, the local engine and the circuit, one after the other."""
    streams = f"{workload.streams} streams"
    begins(f"{streams}: the oracle")
    oracle = by_oracle(workload)
    begins(f"{streams}: the local engine")
    local = by_local(workload)
    begins(f"{streams}: the circuit, whose simulator is built the first time")
    return oracle, local, by_circuit(workload, mhz)


def _on_spark(workloads: Sequence[Workload], batches: int, begins: Callable[[str], None]) -> list[Seen]:
    """The workloads on Spark, one after the other."""
    found = []
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="handfast-engines-", ignore_cleanup_errors=True)
        home = Path(stack.enter_context(folder))
        interrupts = stack.enter_context(Interrupts())
        begins("Spark is starting")
        spark = stack.enter_context(embedded.session(CORES, home, interrupts.check))
        api.configure(spark, cores=CORES, quiet=True)
        for workload in workloads:
            begins(f"{workload.streams} streams: Spark")
            found.append(by_spark(workload, spark, home / f"{workload.streams}", batches, interrupts.check))
    return found


def _drawn(workload: Workload) -> str:
    return api.explain(workload.tables, workload.spec, engine="hardware", options=workload.options)


def _show(compared: Sequence[Compared], out: Path, screen: Screen) -> None:
    """Show the figures, and where the page is."""
    for own in compared:
        rows = [
            (
                seen.engine,
                f"{len(seen.matches):,}",
                own.verdict(seen),
                rate_of(seen.rate),
                time_of(seen.latency.median) if seen.latency else "—",
            )
            for seen in own.seen
        ]
        screen.say(f"{own.workload.streams} streams: {own.workload.on}")
        screen.table(("engine", "matches", "", "rows a second", "median latency"), rows, left=1, boxed=False)
        screen.say()
    screen.verdict(all(own.agrees for own in compared), "all engines find what the oracle finds")
    screen.say(f"written to {out}; what rates and latencies mean on each engine stands there")
