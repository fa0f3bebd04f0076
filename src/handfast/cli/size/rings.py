"""Rings of stages that meet a demand of three and more streams: their clock, by formula and by the model, and area."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from handfast.cli.reproduce.circular.experiments import CLOCK, RingJob, run_job
from handfast.cli.screen import Screen
from handfast.cli.size.demand import check_clock, check_rate
from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.circular.workload import RingStreams
from handfast.engines.hardware.options import CIRCULAR, HardwareOptions
from handfast.errors import SpecError

MOST_STREAMS = 8
AREA = "stage_area.json"
AREA_COMMAND = "python -m benchmarks.stage_area"
_COMPARISONS = (1, 2, 4, 8, 16, 32)
_CYCLES = 1e8  # that the model runs, about
_LEAST = 200  # tuples that it runs at least, of each stream

Cells = tuple[int | None, int | None, float | None]  # LUTs, registers, block RAM


@dataclass(frozen=True, slots=True)
class RingDemand:
    """So many tuples a second of each of these streams, against windows of so many tuples of each other stream.

    Attributes:
        match_probability: Of two tuples of neighbouring streams.
    """

    streams: int
    rate: float
    window: int
    match_probability: float

    def __post_init__(self) -> None:
        if not 3 <= self.streams <= MOST_STREAMS:
            raise SpecError(f"A ring has 3 to {MOST_STREAMS} streams, not {self.streams}")
        check_rate(self.rate)
        self._input(0)  # says what is wrong with the rest

    @staticmethod
    def of(streams: int, rate: float, window: str, match_probability: float) -> RingDemand:
        """The demand from its text."""
        try:
            rows = int(window.replace("_", ""))
        except ValueError:
            raise SpecError(
                f"The windows of three streams and more are as long as each other: a number of tuples, not {window!r}"
            ) from None
        return RingDemand(streams, rate, rows, match_probability)

    @property
    def scans(self) -> float:
        """How many scans a new tuple takes, of all stages together [CMJ §IV]."""
        return self._input(0).scans

    def paper_mhz(self, comparisons: int) -> float:
        """The clock by the formula, for stages that always compare: each has its share of all scans."""
        return self.rate * -(-self.window // comparisons) * self.scans / 1e6

    def modelled(self, comparisons: int) -> tuple[float, float]:
        """The clock that a ring needs on the model, with full windows; and the part of its cycles that it compares."""
        tuples = int(_CYCLES * self.streams / (-(-self.window // comparisons) * self.scans))
        made = self._input(min(max(tuples, _LEAST * self.streams), 100_000))
        shape = RingShape(
            sizes=(self.window,) * self.streams,
            counted=(self.window,) * self.streams,
            comparisons=comparisons,
        )
        cost = run_job(RingJob(shape, made))
        return self.rate * self.streams * CLOCK / cost.throughput / 1e6, cost.utilisation

    def _input(self, tuples: int) -> RingStreams:
        return RingStreams(self.streams, self.window, self.match_probability, tuples, filled=True)


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring for a demand.

    Attributes:
        comparisons: Slots that a stage compares at a time.
        paper: The clock in MHz by the formula.
        needed: The clock that it needs on the model.
        busy: The part of their cycles in which its stages compare.
        cells: None where nobody has counted them.
        meets: Whether the clock that it needs is within reach.
    """

    comparisons: int
    paper: float
    needed: float
    busy: float
    cells: Cells
    meets: bool


def rings(demand: RingDemand, clock: float, area: Callable[[int], Cells]) -> list[Ring]:
    """Rings with more and more comparisons at a time."""
    found = []
    for comparisons in (own for own in _COMPARISONS if own <= demand.window):
        needed, busy = demand.modelled(comparisons)
        paper = demand.paper_mhz(comparisons)
        found.append(Ring(comparisons, paper, needed, busy, area(comparisons), needed <= clock))
    return found


def best(found: Sequence[Ring]) -> Ring | None:
    """Of those that meet the demand the one with the fewest comparisons, which takes the least; None if none does."""
    return min((own for own in found if own.meets), key=lambda own: own.comparisons, default=None)


def counted(demand: RingDemand, folder: Path) -> Callable[[int], Cells]:
    """Take the cells of rings that the benchmark counted, which are those with one comparison and its windows."""
    path, none = folder / AREA, (None, None, None)
    if not path.exists():
        return lambda _: none
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        own = written["area"][CIRCULAR]
        by_streams = {
            int(n): (int(lut), int(ff), float(blocks))
            for n, lut, ff, blocks in zip(own["streams"], own["lut"], own["ff"], own["block_ram"], strict=True)
        }
        window = int(written["window"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(
            f"{path} is not what {AREA_COMMAND} writes: {error!r}; run it again, or move the file"
        ) from None
    fits = demand.window == window
    return lambda comparisons: by_streams.get(demand.streams, none) if fits and comparisons == 1 else none


def synthesised(demand: RingDemand) -> Callable[[int], Cells]:
    """Count the cells of the ring of an equi-join on 32-bit keys that chain, by synthesis for Virtex-6."""
    from itertools import pairwise

    import pyarrow as pa

    from handfast.engines.hardware import synthesize
    from handfast.engines.hardware.circular.design import design_stages
    from handfast.flow.batch import schema_of
    from handfast.spec.join import JoinSpec

    places = 1 << 31  # a place of 31 bits, a key of 32 and its NULL: the papers' tuples of 64 bits
    names = tuple("abcdefgh"[: demand.streams])
    on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    spec = JoinSpec(names, on, window=f"{demand.window} rows", time="ts")
    schema = schema_of(pa.schema({"ts": pa.timestamp("us"), "k": pa.int32()}))
    join, held = spec.bind(dict.fromkeys(names, schema)), [demand.window] * demand.streams

    def count(comparisons: int) -> Cells:
        options = HardwareOptions(algorithm=CIRCULAR, comparisons=comparisons)
        made = design_stages(join, options, [places] * demand.streams, held)
        cells = synthesize.area(made.build(), family="xc6v").total
        return cells.lut, cells.ff, cells.block_ram

    return count


def size_rings(demand: RingDemand, *, clock: float | None, synthesise: bool, results: Path, screen: Screen) -> None:
    """Show the rings that meet a demand.

    Args:
        demand: The rate, the streams and their windows.
        clock: The MHz within reach.
        synthesise: Whether to count the cells of every ring now.
        results: The folder with what the benchmarks wrote down.
        screen: Where to show it.
    """
    if clock is None:
        raise SpecError("Nobody has estimated the clock of rings; say what your device reaches: --clock 100, in MHz")
    check_clock(clock)
    screen.say(f"{demand.rate:,.0f} tuples a second of each of {demand.streams} streams, windows of {demand.window:,}:")
    partners = demand.match_probability * demand.window
    screen.say(f"a tuple finds {partners:,.3g} partners in a window, and takes {demand.scans:,.3g} scans")
    screen.say()
    with screen.waiting("rings on the fast model" + (", and synthesis for xc6v" if synthesise else "")):
        found = rings(demand, clock, synthesised(demand) if synthesise else counted(demand, results))
    chosen = best(found)
    rows = [
        (
            f"{own.comparisons:,}",
            _mhz(own.paper),
            _mhz(own.needed),
            f"{own.busy:.0%}",
            *("—" if cells is None else f"{cells:,}" for cells in own.cells),
            "✔ best" if own is chosen else "" if own.meets else "✘",
        )
        for own in found
    ]
    head = ("at once", "MHz [CMJ]", "MHz, model", "compare", "LUTs", "registers", "RAM", "")
    screen.table(head, rows, boxed=False)
    screen.say("at once: slots that a stage compares in a cycle; compare: the part of its cycles in which it does so")
    screen.say(f"within reach: {clock:,.0f} MHz, as asked for; ✘ needs more")
    if chosen is None:
        screen.say("none is fast enough; take shorter windows, or a faster device (--clock)")
    if any(own.cells[0] is None for own in found):
        screen.say(f"cells: from {AREA_COMMAND}, which has windows of 16,384; --synthesize counts those of all")
    screen.say("software for many streams: handfast bench multiway measures it on this machine")


def _mhz(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
