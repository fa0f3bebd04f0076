"""`handfast bench multiway`: how the throughput of a ring of stages grows with the number of streams [CMJ Fig. 7].

Rows find a partner seldom, so almost all that a stage does is to scan its window for its neighbour's new rows: N
stages share N times the work of one. What is measured is the ring on the CPUs that there are; what it would do on as
many CPUs as it has stages comes from a model, with times measured here, and says so.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from handfast.cli.bench import plots, ring
from handfast.cli.bench.measure import Ratio, in_turns, quantile
from handfast.cli.bench.report import Report
from handfast.cli.bench.scaling import setting
from handfast.cli.screen import Screen
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.session import Session
from handfast.errors import EngineError, SpecError
from handfast.plan import CIRCULAR, PLAIN
from handfast.spec.join import JoinSpec

_PARTNERS = 0.01  # that a row finds in a window: the ring has little to do but scan
_APART = 10_000  # the square of how far apart two points may be
# Points with whole numbers: each product is checked for overflow, so a pair is dear, and scans are almost all there is.
_NEAR = f"({{a}}.x - {{b}}.x) * ({{a}}.x - {{b}}.x) + ({{a}}.y - {{b}}.y) * ({{a}}.y - {{b}}.y) <= {_APART}"
_SEED = 7
_WARM = 2  # pushes that do not count

_Turns = dict[int, dict[int, list[float]]]  # by CPUs and streams, new rows in a second, turn by turn
_Lines = dict[int, dict[int, float]]  # likewise, as modelled


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: enough to measure, or only enough to see that it runs."""

    turns: int
    window: int
    rows: int
    streams: tuple[int, ...]


WHOLE = Size(turns=5, window=1 << 14, rows=1 << 10, streams=(3, 4, 6, 8))
QUICK = Size(turns=2, window=1 << 10, rows=1 << 8, streams=(3, 4))


class Ring:
    """A session that joins points of so many streams that are near each other; its windows are full and slide."""

    def __init__(
        self,
        streams: int,
        window: int,
        rows: int,
        algorithm: str,
        cpus: int | None = None,
        *,
        partners: float = _PARTNERS,
    ) -> None:
        self._names = [f"s{k}" for k in range(streams)]
        on = " AND ".join(_NEAR.format(a=a, b=b) for a, b in combinations(self._names, 2))
        chosen = ", ".join(f"{name}.id AS {name}" for name in self._names)
        spec = JoinSpec(self._names, on, window=f"{window} us", time="ts", lateness="0 seconds", select=chosen)
        self._window, self._rows, self._at, self._cpus = window, rows, 0, cpus
        self._partners = partners
        options = LocalOptions(algorithm=algorithm)
        with self._on_cpus():
            self._session = Session(spec, dict.fromkeys(self._names, self._table(0, 0).schema), options)
            for _ in range(-(-window // rows) + _WARM):
                self.push()

    def push(self) -> tuple[float, float, int]:
        """Push new rows of every stream: seconds on the clock, CPU seconds of all threads, matches."""
        fed = {name: self._table(k, self._at) for k, name in enumerate(self._names)}
        self._at += self._rows
        with self._on_cpus():
            clock, cpu = perf_counter(), process_time()
            found = sum(batch.num_rows for batch in self._session.push_together(fed))
            return perf_counter() - clock, process_time() - cpu, found

    @property
    def piece(self) -> int:
        """Of how many rows the pieces are that go round."""
        cores = self._session.cores
        assert isinstance(cores, LowLatency)
        finder = cores.cores[0].finder
        assert finder is not None
        return min(self._rows, finder.cut(self._rows))

    def close(self) -> None:
        """End its threads."""
        self._session.close()

    @contextmanager
    def _on_cpus(self) -> Iterator[None]:
        """Run on so many CPUs: threads stay on those that their maker had."""
        if self._cpus is None:
            yield
            return
        every = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(every)[: self._cpus])
        try:
            yield
        finally:
            os.sched_setaffinity(0, every)

    def _table(self, stream: int, start: int) -> pa.Table:
        rng = np.random.default_rng((_SEED, stream, start))
        numbers = np.arange(start, start + self._rows)
        width = int((math.pi * _APART * self._window / self._partners) ** 0.5)
        x, y = rng.integers(0, width, (2, self._rows))
        return pa.table({"id": numbers, "ts": pa.array(numbers).cast(pa.timestamp("us", "UTC")), "x": x, "y": y})


def run(folder: Path, *, quick: bool, screen: Screen) -> Report:
    """Measure, print, and write `multiway.json` and the picture into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(
            f"The folder {folder} cannot be made: {error.strerror}; choose another one with --out"
        ) from None
    size = QUICK if quick else WHOLE
    about = setting() | {"seed": _SEED, "load before": os.getloadavg()}
    report = Report(about | asdict(size) | {"partners": _PARTNERS})
    with screen.waiting("matches are compared before anything is timed"):
        for streams in size.streams[:: len(size.streams) - 1]:
            check(streams)
    with screen.waiting("what a pair, a row and a piece cost"):
        machine = measured_machine(size)
    report.add(
        "for the model, measured",
        f"{machine.pair_seconds * 1e9:.3f} ns a pair, {machine.row_seconds * 1e9:.0f} ns a row, "
        f"{machine.piece_seconds * 1e6:.0f} µs a piece",
        values={"machine": asdict(machine)},
    )
    measured: _Turns = {}
    worked: _Turns = {}
    pieces: dict[int, int] = {}
    for cpus in _cpu_counts():
        with screen.waiting(f"the ring on {cpus} CPU{'s' * (cpus > 1)}"):
            measured[cpus], worked[cpus] = _rates(size, cpus, pieces)

    def modelled(streams: int, cpus: int) -> float:
        feed = ring.Feed(size.window, size.rows, pieces[streams], _PARTNERS)
        return ring.throughput(machine, streams, cpus, feed)

    lines = {cpus: {streams: modelled(streams, cpus) for streams in size.streams} for cpus in measured}
    every = {streams: modelled(streams, streams) for streams in size.streams}
    report.figures |= {
        "measured": measured,
        "measured, by CPU time": worked,
        "modelled": lines,
        "modelled, a CPU for each stage": every,
    }
    if 1 in worked:  # what a CPU does, whoever else uses it
        _over(report, "measured by CPU time over modelled, 1 CPU", worked[1], lines[1])
    _compare(report, measured, lines, every)
    plots.ring(folder / "ring.png", measured, lines, every)
    (folder / "multiway.json").write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    screen.table(("what", "figure", "goal"), report.lines, left=3, boxed=False)
    screen.say(f"on {report.setting['cpu']}, {report.setting['cpus']} CPUs; written to {folder}/")
    return report


def _over(report: Report, what: str, turns: dict[int, list[float]], line: dict[int, float]) -> None:
    ratios = [own / line[streams] for streams, rates in turns.items() for own in rates]
    ratio = Ratio(*(quantile(ratios, share) for share in (0.5, 0.25, 0.75)))
    report.add(what, str(ratio), values={what: asdict(ratio)})


def _compare(report: Report, measured: _Turns, lines: _Lines, every: dict[int, float]) -> None:
    """What was measured beside the model, and how both grow."""
    few, many = min(every), max(every)
    for cpus, turns in measured.items():
        _over(report, f"measured over modelled, {cpus} CPU{'s' * (cpus > 1)}", turns, lines[cpus])
    if 2 in measured:
        pairs = [
            (two, one) for streams in every for two, one in zip(measured[2][streams], measured[1][streams], strict=True)
        ]
        ratio = Ratio.of(*zip(*pairs, strict=True))
        of_model = statistics.median(lines[2][streams] / lines[1][streams] for streams in every)
        report.add(
            "2 CPUs over 1, any number of stages",
            f"{ratio}; modelled {of_model:.2f}",
            values={"2/1": asdict(ratio) | {"modelled": of_model}},
        )
    growth, linear = every[many] / every[few], many / few
    report.add(
        f"modelled, {many} stages over {few}, a CPU for each",
        f"{growth:.2f}; linear is {linear:.2f}",
        "≥ 0.9 of linear",
        values={"growth over linear": growth / linear},
    )


def check(streams: int) -> int:
    """How many matches a ring finds in small windows; raise an error if plain probing finds others."""
    counts = {}
    for algorithm in (PLAIN, CIRCULAR):
        session = Ring(streams, 256, 64, algorithm, partners=8.0)
        counts[algorithm] = [session.push()[2] for _ in range(8)]
        session.close()
    if counts[PLAIN] != counts[CIRCULAR]:
        raise EngineError(f"The ring of {streams} stages does not find what plain probing finds: nothing is measured")
    return sum(counts[PLAIN])


def measured_machine(size: Size) -> ring.Machine:
    """What pairs, rows and pieces cost, by the CPU time of sessions of three streams that take turns.

    A window of a sixteenth says what a pair costs; the ring beside plain probing, what its pieces do.
    """
    streams = 3
    sessions = {
        "plain": Ring(streams, size.window, size.rows, PLAIN),
        "narrow": Ring(streams, size.window // 16, size.rows, PLAIN),
        "ring": Ring(streams, size.window, size.rows, CIRCULAR),
    }
    turns = in_turns({name: session.push for name, session in sessions.items()}, size.turns)
    piece = sessions["ring"].piece
    for session in sessions.values():
        session.close()
    cpu = {name: statistics.median(own for _, own, _ in pushes) for name, pushes in turns.items()}
    new = streams * size.rows
    pair = max(1e-12, (cpu["plain"] - cpu["narrow"]) / (new * (size.window - size.window // 16) * (1 + _PARTNERS)))
    row = max(0.0, cpu["narrow"] / new - size.window // 16 * (1 + _PARTNERS) * pair)
    pieces = streams * -(-size.rows // piece) * (1 + _PARTNERS)
    return ring.Machine(pair, max(0.0, (cpu["ring"] - cpu["plain"]) / pieces), row)


def _cpu_counts() -> Sequence[int]:
    """Powers of two up to all CPUs that this process may use; all of them, where it cannot choose."""
    if not hasattr(os, "sched_setaffinity"):
        return (os.cpu_count() or 1,)
    usable = len(os.sched_getaffinity(0))
    return [count for count in (1, 2, 4, 8) if count <= usable]


def _rates(size: Size, cpus: int, pieces: dict[int, int]) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """By the number of streams, new rows in a second of the clock, and of CPU time; and the size of the pieces."""
    here = cpus if hasattr(os, "sched_setaffinity") else None
    sessions = {str(streams): Ring(streams, size.window, size.rows, CIRCULAR, here) for streams in size.streams}
    turns = in_turns({name: session.push for name, session in sessions.items()}, size.turns)
    for name, session in sessions.items():
        pieces[int(name)] = session.piece
        session.close()
    new = {name: int(name) * size.rows for name in turns}
    clocks = {int(name): [new[name] / clock for clock, _, _ in own] for name, own in turns.items()}
    return clocks, {int(name): [new[name] / cpu for _, cpu, _ in own] for name, own in turns.items()}
