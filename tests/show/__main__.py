"""Runs every claim that handfast makes of itself and prints its figure beside its goal: `make show`.

Claims that tests stand for run two at a time; those that are measured run alone, behind them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from xml.etree.ElementTree import ParseError

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.show import claims, measured
from tests.show.report import Line

Claim = Callable[[], list[Line]]

CLAIMS: dict[str, Claim] = {
    "local": claims.agreement_local,
    "spark": claims.agreement_spark,
    "many-streams": claims.many_streams,
    "large": claims.large,
    "connect": claims.connect,
    "timelines": claims.timelines,
    "downstream": claims.downstream,
    "refused": claims.refused_rows,
    "entrance": claims.entrance,
    "schedules": claims.schedules,
    "cost": claims.cost,
    "sql": claims.sql,
    "text": claims.text,
    "payload": claims.payload,
    "mutants": claims.mutants,
    "exactly-once": claims.exactly_once,
    "kills": claims.kills,
    "checkpoints": claims.kept_checkpoints,
    "ring": claims.ring,
    "circuits": claims.circuits,
    "rings": claims.rings,
    "circuit-parts": claims.circuit_parts,
    "thesis": claims.thesis,
    "readme": claims.refused_join,
    "newcomer": measured.newcomer,
    "wheel": measured.wheel,
    "import": claims.light_import,
    "trigger": measured.trigger,
    "chain": claims.chain,
    "hop": measured.chain,
    "windows": measured.windows,
    "scan": measured.scan,
    "indexes": measured.indexes,
    "scaling": measured.scaling,
    "spark-batch": measured.spark_batch,
    "cores": measured.cores,
    "pushes": measured.pushes,
    "spark-multiway": measured.spark_multiway,
    "spark-streaming": measured.spark_streaming,
    "multiway": measured.multiway,
    "stage-area": measured.stage_area,
}

# what goes wrong around a claim: a command or a file that is missing, a result that is not what it should be
_SET_UP = (OSError, subprocess.SubprocessError, LookupError, ValueError, ParseError)


_AT_A_TIME = 2  # claims of tests: as many as the smallest machine has cores


def seen(name: str, claim: Claim) -> list[Line]:
    """What became of a claim; one whose set-up fails has failed, and so has one that says nothing."""
    try:
        return claim() or [Line(name, "nothing was seen", "something", False)]
    except _SET_UP as error:
        return [Line(name, "could not be set up", "runs", False, f"{type(error).__name__}: {error}")]


def main(names: list[str], every: Mapping[str, Claim] = CLAIMS, console: Console | None = None) -> int:
    """Run the claims that are named, or all."""
    console = console or Console(width=None if sys.stdout.isatty() else 140)
    unknown = [name for name in names if name not in every]
    if unknown:
        console.print(f"No claim is called {unknown[0]!r}; there are {', '.join(every)}")
        return 2
    chosen = {name: every[name] for name in names or every}
    measured_ones = {name: claim for name, claim in chosen.items() if claim.__module__ == measured.__name__}
    found: dict[str, list[Line]] = {}

    def run(name: str) -> None:
        start = time.monotonic()
        found[name] = seen(name, chosen[name])
        console.print(f"{name}: done in {time.monotonic() - start:.0f} s")

    with console.status(f"{len(chosen)} claims"):
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            list(pool.map(run, [name for name in chosen if name not in measured_ones]))
        for name in measured_ones:
            run(name)
    table = Table("claim", "figure", "goal", "")
    lines = [line for name in chosen for line in found[name]]
    for line in lines:
        table.add_row(line.name, line.figure, line.goal, "[green]pass[/]" if line.passed else "[red]FAIL[/]")
    failed = [line for line in lines if not line.passed]
    console.print(table)
    for line in failed:
        console.print(f"\n[red]FAIL[/] {escape(line.name)}\n{escape(line.why)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
