"""`handfast bench scaling`: how the local engine's throughput grows with its cores, and what it is made of.

Every comparison is made of runs that take turns on the same machine; a ratio is the median over the turns. What a
machine has not enough cores for comes from a discrete-event model of the chain with times measured here, and says so.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handfast.cli.bench import balance, model, papers, plots
from handfast.cli.bench.chain import BLOCK, Sustained
from handfast.cli.bench.measure import (
    Ratio,
    Speed,
    checked,
    compare,
    in_turns,
    latency,
    quantile,
    scan_speed,
    speed,
)
from handfast.cli.bench.report import MINUTES_15, QUICK, WHOLE, Report, Size
from handfast.cli.bench.workload import Bench
from handfast.cli.screen import Screen
from handfast.engines.local.options import FORWARDING, HANDSHAKE, LOW_LATENCY, LocalOptions
from handfast.errors import SpecError
from handfast.flow.topology import ChainTopology
from handfast.kernels.sizes import USUAL, KernelSizes, Vectors
from handfast.plan import INDEX, LOCAL_JOINS, MERGE, SCAN

PAPER = {8: 1_400.0}  # [HSJ §5.4], 15-minute windows, on 2.2 GHz Opterons: the one rate that is printed as a number
_WIDE = f"{USUAL.vectors.lanes} lanes"
MODELLED = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def run(folder: Path, *, quick: bool, screen: Screen) -> Report:
    """Measure, print as it goes, and write `scaling.json` and the pictures into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(
            f"The folder {folder} cannot be made: {error.strerror}; choose another one with --out"
        ) from None
    size = QUICK if quick else WHOLE
    report = Report(setting() | asdict(size))
    bench = Bench(size.scan_window)
    cores = sorted({1, 2, *(n for n in (4, 8, 16, 32) if n <= (os.cpu_count() or 1))})
    with screen.waiting("matches are compared before anything is timed"):
        _check(cores)
    with screen.waiting("throughput by cores"):
        _scaling(report, bench, cores, size)
    with screen.waiting("an indexed band join"):
        _indexed(report, bench, size)
    with screen.waiting("local joins, and SIMD"):
        joins = _local_joins(report, bench, size)
        _merge_by_cores(report, bench, size)
        simd = _simd(report, bench, size)
    with screen.waiting("the chain, while both windows slide"):
        chains = papers.sustained(report, size)
    with screen.waiting("balance"):
        _balance(report, size)
    with screen.waiting("latency"):
        waits = _latency(report, size)
    with screen.waiting("the model up to 1,024 cores"):
        machine = papers.machine(report, simd[_WIDE], chains[1], size)
        papers.validated(report, machine, chains)
        rates = {n: model.sustained(machine, ChainTopology(n), MINUTES_15) for n in MODELLED}
        law = {n: model.square_root_law(machine, n, MINUTES_15) for n in MODELLED}
    report.figures["modelled"], report.figures["law"] = rates, law
    report.add(
        "modelled, 1,024 cores", f"{rates[1024]:,.0f} tuples/s/stream, {rates[1024] / law[1024]:.0%} of the square root"
    )
    papers.burst(report)
    _draw(folder, chains, rates, law, joins, simd, waits, size.scan_window)
    (folder / "scaling.json").write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    _print(report, folder, screen)
    return report


def setting() -> dict[str, Any]:
    """The machine and the versions."""
    names = ("handfast", "numpy", "numba", "llvmlite", "pyarrow")
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in names},
        "seed": Bench.seed,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _check(cores: list[int]) -> None:
    every = [LocalOptions(cores=n, local_join=own) for n in cores for own in LOCAL_JOINS]
    handshake = [LocalOptions(cores=n, forwarding=HANDSHAKE, local_join=own) for n in cores for own in LOCAL_JOINS]
    checked(Bench(1_000, domain=1_000), [*every, *handshake], block=500)


def _scaling(report: Report, bench: Bench, cores: list[int], size: Size) -> None:
    options = {str(n): LocalOptions(cores=n, local_join=SCAN) for n in cores}
    speeds = {int(n): own for n, own in compare(bench, options, block=1024, blocks=size.samples).items()}
    one = [own.pairs_per_second for own in speeds[1]]
    for n in cores:
        pairs = [own.pairs_per_second for own in speeds[n]]
        rate = statistics.median(own.rate(MINUTES_15) for own in speeds[n])
        ideal = statistics.median(own.rate(MINUTES_15) for own in speeds[1]) * n**0.5
        report.add(
            f"scan, {n} core{'s' * (n > 1)}",
            f"{statistics.median(pairs) / 1e9:.2f} G pairs/s = {rate:,.0f} tuples/s/stream at 15 min "
            f"(√{n} of one core: {ideal:,.0f})",
            values={f"scan {n} pairs/s": pairs},
        )
    ratio = Ratio.of([own.pairs_per_second for own in speeds[2]], one)
    report.add("scan, 2 cores over 1, pairs/s", str(ratio), "≥ 1.8", values={"scan 2/1": asdict(ratio)})
    printed = ", ".join(f"{rate:,.0f} tuples/s/stream with {n} cores" for n, rate in PAPER.items())
    report.add("the paper's, at 15 min", f"{printed}; CellJoin, with 8 SPEs: 750, or 1,000 when tuned")


def _indexed(report: Report, bench: Bench, size: Size) -> None:
    options = {str(n): LocalOptions(cores=n) for n in (1, 2)}
    speeds = compare(bench, options, block=16_384, blocks=size.samples)
    one, two = ([own.matches_per_second for own in speeds[n]] for n in ("1", "2"))
    ratio = Ratio.of(two, one)
    figure = f"{statistics.median(one):,.0f} matches/s"
    report.add("indexed band join, one core", figure, values={"index matches/s": one})
    report.add("indexed band join, 2 cores over 1, matches/s", str(ratio), "≥ 1.7", values={"index 2/1": asdict(ratio)})


def _local_joins(report: Report, bench: Bench, size: Size) -> dict[str, float]:
    runs = {
        own: partial(speed, bench, LocalOptions(local_join=own), block=1024, blocks=size.blocks)
        for own in (SCAN, MERGE, INDEX)
    }
    turns = in_turns(runs, size.turns)
    rates = {name: statistics.median(own.tuples_per_second for own in speeds) for name, speeds in turns.items()}
    scan = [own.pairs_per_second for own in turns[SCAN]]
    for name in (MERGE, INDEX):
        ratio = Ratio.of([own.pairs_per_second for own in turns[name]], scan)
        report.add(f"{name} over scan, one core", str(ratio), values={f"{name}/scan": asdict(ratio)})
    return rates


def _merge_by_cores(report: Report, bench: Bench, size: Size) -> None:
    options = {str(n): LocalOptions(cores=n, local_join=MERGE) for n in (1, 2)}
    speeds = compare(bench, options, block=16_384, blocks=size.blocks)
    one, two = ([own.tuples_per_second for own in speeds[n]] for n in ("1", "2"))
    ratio = Ratio.of(two, one)
    report.add("merge join, 2 cores over 1 [000 Fig. 9]", str(ratio), values={"merge 2/1": asdict(ratio)})


def _simd(report: Report, bench: Bench, size: Size) -> dict[str, list[Speed]]:
    runs = {
        name: partial(scan_speed, bench, KernelSizes(vectors), block=BLOCK, blocks=size.blocks)
        for name, vectors in (("1 lane", Vectors(lanes=1)), (_WIDE, USUAL.vectors))
    }
    turns = in_turns(runs, size.turns)
    (_, one), (_, wide) = turns.items()
    ratio = Ratio.of([own.pairs_per_second for own in wide], [own.pairs_per_second for own in one])
    report.add("SIMD over one lane, one core", str(ratio), values={"simd": asdict(ratio)})
    return turns


def _balance(report: Report, size: Size) -> None:
    for forwarding in FORWARDING:
        worst = balance.after_bursts(forwarding, 4)
        report.add(
            f"balance under bursts and skew, 4 cores, {forwarding}",
            f"{worst:.2f}",
            "≤ 1.2",
            values={f"balance {forwarding}": worst},
        )
    runs = {
        name: partial(balance.with_a_slow_core, 2, times, window=size.slow_window)
        for name, times in (("even", 1.0), ("slowed", 10.0))
    }
    turns = in_turns(runs, size.turns)
    left = (1 + 0.1) / 2  # of what two cores can do, when one of them does a tenth
    ratio = Ratio.of(turns["slowed"], [left * pairs for pairs in turns["even"]])
    report.add(
        "one of 2 cores slowed ten times, of what is left", str(ratio), "≥ 0.8", values={"slow core": asdict(ratio)}
    )


def _latency(report: Report, size: Size) -> dict[str, NDArray[np.float64]]:
    bench = Bench(size.scan_window // 4, domain=1_000)
    turns = [latency(bench, cores=2, block=BLOCK, blocks=size.latencies) for _ in range(size.turns)]
    scans, worst = [own.scan for own in turns], max(own.stolen for own in turns)
    tails = [quantile(own.low_latency, 0.99) for own in turns]
    ratio = Ratio.of(tails, scans)
    waits = {
        LOW_LATENCY: np.concatenate([own.low_latency for own in turns]),
        HANDSHAKE: np.concatenate([own.handshake for own in turns]),
    }
    report.add(
        "latency at half load, low-latency, p99 ÷ a block's scan",
        f"{ratio}; a scan {1e3 * statistics.median(scans):.1f} ms; the host took up to {worst:.1%} of the time",
        "≤ 3",
        values={"latency": asdict(ratio) | {"p99": tails, "scans": scans, "stolen": [own.stolen for own in turns]}},
    )
    for forwarding, own in waits.items():
        p50, p99 = quantile(own, 0.5), quantile(own, 0.99)
        report.add(
            f"latency at half load, {forwarding}, all turns",
            f"p50 {1e3 * p50:.1f} ms, p99 {1e3 * p99:.1f} ms",
            values={f"latency {forwarding}": {"p50": p50, "p99": p99}},
        )
    return waits


def _draw(
    folder: Path,
    chains: Mapping[int, list[Sustained]],
    rates: dict[int, float],
    law: dict[int, float],
    joins: dict[str, float],
    simd: Mapping[str, list[Speed]],
    waits: dict[str, NDArray[np.float64]],
    window: int,
) -> None:
    measured = {n: statistics.median(own.rate(MINUTES_15) for own in runs) for n, runs in chains.items()}
    plots.scaling(folder / "scaling.png", measured, rates, law, PAPER, "15 minutes")
    label = f"new tuples/s against a window of {window:,}"
    lanes = {name: statistics.median(own.tuples_per_second for own in speeds) for name, speeds in simd.items()}
    plots.bars(folder / "simd.png", "Effect of SIMD on the scan, one core", label, lanes)
    plots.bars(folder / "local-joins.png", "Local joins of a band, one core", label, joins)
    plots.latency(folder / "latency.png", waits)
    seen = model.bubble(ChainTopology(12), window=240, burst=800)
    plots.bubble(folder / "bubble.png", seen.by_age, seen.by_size, seen.times)


def _print(report: Report, folder: Path, screen: Screen) -> None:
    screen.table(("what", "figure", "goal"), report.lines, left=3, boxed=False)
    screen.say(f"on {report.setting['cpu']}, {report.setting['cpus']} CPUs; written to {folder}/")
