"""`handfast size`: circuits and software that meet a demand, as tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from handfast.cli.areas import COMMAND, SEGMENT, read_areas
from handfast.cli.screen import Screen
from handfast.cli.size import software
from handfast.cli.size.demand import Demand, check_clock
from handfast.cli.size.hardware import (
    ENERGY_COMMAND,
    Circuit,
    best,
    circuits,
    clock_of,
    fitted,
    read_switching,
    synthesised,
)
from handfast.engines.hardware.options import IMMEDIATE, NETWORKS, SCANS, TREE
from handfast.errors import SpecError

if TYPE_CHECKING:
    from handfast.engines.hardware.synthesize import Family

_FAMILY: Family = "xc6v"
_TURNS = 5
_BEST = "✔ best"  # beside ✘ for what needs a faster clock


def size(
    demand: Demand,
    *,
    clock: float | None,
    cores: str | None,
    scan: str,
    network: str,
    synthesise: bool,
    results: Path,
    screen: Screen,
) -> None:
    """Show what meets a demand.

    Args:
        demand: The rate and the windows.
        clock: The MHz within reach; None: what nextpnr estimated for such circuits on an ECP5.
        cores: Numbers of cores to look at, with commas between them; None: powers of two.
        scan: How a core scans.
        network: How results are collected.
        synthesise: Whether to count the cells of every circuit now.
        results: The folder with what the benchmarks wrote down.
        screen: Where to show it.
    """
    for what, value, known in (("scan", scan, SCANS), ("network", network, NETWORKS)):
        if value not in known:
            raise SpecError(f"A circuit's {what} is one of {', '.join(map(repr, known))}, not {value!r}")
    areas = read_areas(results)
    within = clock if clock is not None else clock_of(areas, network)
    if within is None:
        raise SpecError(
            f"Nobody has estimated the clock of such circuits here ({COMMAND} does); say what your device reaches: "
            "--clock 100, in MHz"
        )
    check_clock(within)
    numbers = _numbers(cores) if cores is not None else demand.proposed_cores(SEGMENT)
    switching = read_switching(results, demand) if (scan, network) == (IMMEDIATE, TREE) else {}
    r, s = demand.windows
    screen.say(f"{demand.rate:,.0f} tuples a second of each stream, windows of {r:,} and {s:,} tuples:")
    screen.say(f"{demand.pairs:,.0f} pairs to compare in a second")
    screen.say()
    screen.title("As a circuit")
    if synthesise:
        with screen.waiting(f"synthesis for {_FAMILY}, one circuit after the other"):
            found = circuits(demand, numbers, scan, within, synthesised(demand, scan, network, _FAMILY), switching)
    else:
        found = circuits(demand, numbers, scan, within, fitted(demand, scan, network, areas), switching)
    _show_circuits(found, scan, within, clock is None, screen)
    screen.say()
    screen.title("As software on this machine")
    with screen.waiting(f"one core, the papers' band join, a window of {software.measured_window(demand):,} tuples"):
        measured = software.measure(demand, turns=_TURNS)
    _show_software(demand, measured, screen)


def _numbers(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise SpecError(f"--cores takes numbers from 1 on with commas between them, like 1,2,5,10, not {text!r}")
    return sorted(set(found))


def _show_circuits(found: list[Circuit], scan: str, within: float, is_estimate: bool, screen: Screen) -> None:
    chosen = best(found)
    rows = []
    for own in found:
        r, s = own.segments
        segments = f"{r:,}" if r == s else f"{r:,}, {s:,}"
        verdict = _BEST if chosen is not None and own is chosen[0] else "" if own.meets else "✘"
        rows.append(
            (
                f"{own.cores:,}",
                segments,
                _mhz(own.paper),
                _mhz(own.needed),
                _whole(own.luts),
                _whole(own.registers),
                _whole(own.switching),
                verdict,
            )
        )
    head = ("cores", "segments", "MHz [000 A.5]", f"MHz, {scan}", "LUTs", "registers", "switching", "")
    screen.table(head, rows, boxed=False)
    of = "nextpnr's lowest estimate for such circuits on an ECP5" if is_estimate else "as asked for"
    screen.say(f"within reach: {within:,.0f} MHz, {of}; ✘ needs more")
    if chosen is not None:
        cores = "1 core" if chosen[0].cores == 1 else f"{chosen[0].cores:,} cores"
        screen.say(f"best: {cores}, because {chosen[1]}")
    else:
        screen.say("none is fast enough; take more cores (--cores), or a faster device (--clock)")
    if any(own.luts is None for own in found):
        screen.say(f"LUTs and registers: from {COMMAND}, which has segments of 8; --synthesize counts those of all")
    if any(own.switching is not None for own in found):
        screen.say("switching: bits that change for a tuple, one core being 100, with windows in registers; no power:")
        screen.say("neither wires nor the clock are counted")
    if any(own.switching is None for own in found):
        screen.say(f"switching, where there is none: {ENERGY_COMMAND} counts it, for an immediate scan and a tree")


def _show_software(demand: Demand, measured: list[software.Software], screen: Screen) -> None:
    rows = []
    window = software.measured_window(demand)
    is_shorter = 2 * window < sum(demand.windows) - 1  # of two windows half a tuple is not measured
    for own in measured:
        median, low, high = own.tuples
        cores, fewest, most = own.cores(demand)
        needed = f"{cores:,}" if fewest == most else f"{cores:,} ({fewest:,}–{most:,})"
        needed = "—" if is_shorter else needed  # longer windows are slower, nobody knows by how much
        rows.append((own.local_join, f"{median:,.0f} ({low:,.0f}–{high:,.0f})", needed, _bytes(own.memory(demand))))
    screen.table(("local join", "tuples a second, one core", "cores", "both windows"), rows, left=1, boxed=False)
    if is_shorter:
        screen.say(f"measured with windows of {window:,} tuples, the longest that are; yours take more cores")
    here = os.cpu_count() or 1
    screen.say(
        f"median and quartiles of {_TURNS} turns; cores are taken to add up, which handfast bench scaling measures"
    )
    screen.say(f"this machine has {here}; a scan tries every pair, as circuits do, an index only those that can match")


def _mhz(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _whole(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f} bytes"
