"""The papers' algorithm on the scaling page: what a chain sustains on this machine's cores, and the model beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict

from handfast.cli.bench import chain, model
from handfast.cli.bench.chain import BLOCK, Band, Sustained
from handfast.cli.bench.measure import Ratio, Speed
from handfast.cli.bench.report import MINUTES_15, WHOLE, Report, Size
from handfast.flow.topology import ChainTopology

WINDOWS = {"10 minutes": 600.0, "15 minutes": MINUTES_15}
_LOAD = 0.95  # of the rate that was measured, when a chain is fed by the clock
_LEFT_OVER = 8 * 256  # tuples that may wait more at the end than before: whatever grows by the clock is soon beyond it


def sustained(report: Report, size: Size) -> dict[int, list[Sustained]]:
    """The papers' algorithm itself: R and S pass each other, and with every tuple that comes another expires."""
    done = chain.in_turns(Band(size.scan_window), (1, 2), turns=size.turns, steps=size.steps)
    for n, runs in done.items():
        rates = {name: statistics.median(own.rate(seconds) for own in runs) for name, seconds in WINDOWS.items()}
        shown = ", ".join(f"{rate:,.0f} at {name}" for name, rate in rates.items())
        report.add(
            f"chain, {n} core{'s' * (n > 1)}, both windows slide",
            f"{statistics.median(own.pairs / own.seconds for own in runs) / 1e9:.2f} G pairs/s = {shown}",
            values={f"chain {n}": [asdict(own) for own in runs]},
        )
        for name, seconds in WINDOWS.items():
            _clocked(report, n, name, seconds, _LOAD * rates[name], size)
    one, two = ([own.pairs / own.seconds for own in done[n]] for n in (1, 2))
    ratio = Ratio.of(two, one)
    report.add("chain, 2 cores over 1, pairs/s", str(ratio), "≥ 1.8", values={"chain 2/1": asdict(ratio)})
    return done


def _clocked(report: Report, cores: int, name: str, seconds: float, rate: float, size: Size) -> None:
    """Whether the chain keeps up by the clock, and drops nothing."""
    window = int(rate * seconds) if size is WHOLE else size.scan_window
    behind = list(chain.keeps_up(Band(window), cores, rate, max(size.clocked, 8 * BLOCK / rate)))
    quarter = max(1, len(behind) // 4)
    middle, end = statistics.mean(behind[quarter : 2 * quarter]), statistics.mean(behind[-quarter:])
    kept = end <= middle + _LEFT_OVER
    report.add(
        f"chain, {cores} core{'s' * (cores > 1)}, {name}, by the clock",
        f"{rate:,.0f} tuples/s/stream: {'keeps up' if kept else 'falls behind'}, {end:,.0f} tuples wait",
        values={f"chain {cores}, {name}": {"rate": rate, "window": window, "kept up": kept, "waiting": [middle, end]}},
    )


def machine(report: Report, scans: list[Speed], chains: list[Sustained], size: Size) -> model.Machine:
    """What a pair, and a message beside its pairs, cost one core, and what a match costs the collector."""
    pair = statistics.median(own.seconds / own.pairs for own in scans)
    message = statistics.median(chain.hop(8).message for _ in range(size.turns))
    collect = statistics.median(chain.collect_seconds(1 << 16) for _ in range(size.turns))
    hit_rate = statistics.median(own.matches / own.pairs for own in chains)
    made = model.Machine(pair, message, BLOCK, hit_rate, collect)
    report.add(
        "for the model, measured apart from the chain",
        f"{pair * 1e9:.3f} ns a pair, {message * 1e6:.2f} µs a message of {BLOCK} tuples (taken in, forwarded, "
        f"removed), {collect * 1e9:.0f} ns a match collected, a match in {1 / hit_rate if hit_rate else 0:,.0f} pairs",
        values={"machine": asdict(made)},
    )
    return made


def validated(report: Report, machine: model.Machine, chains: Mapping[int, list[Sustained]]) -> None:
    """The model beside what was measured, on the cores that there are."""
    for n, runs in chains.items():
        modelled = model.sustained(machine, ChainTopology(n), MINUTES_15)
        measured = [own.rate(MINUTES_15) for own in runs]
        ratio = Ratio.of(measured, [modelled] * len(measured))
        report.add(
            f"chain, {n} core{'s' * (n > 1)}, measured over modelled", str(ratio), values={f"model {n}": asdict(ratio)}
        )


def burst(report: Report) -> None:
    """How much of its time a core scans while a burst is in the window, if the one with most tuples always does."""
    seen = model.bubble(ChainTopology(12), window=240, burst=800)
    inside = (seen.times > 0) & (seen.times < 240)
    by_age, by_size = (
        float((own[inside].mean(axis=1) / own[inside].max(axis=1)).mean()) for own in (seen.by_age, seen.by_size)
    )
    report.add(
        "modelled: cores in use while a burst is in the window, 12 cores",
        f"{by_age:.0%} if age decides who forwards, {by_size:.0%} if sizes do",
        values={"burst": {"by age": by_age, "by size": by_size}},
    )
