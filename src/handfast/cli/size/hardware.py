"""Circuits that meet a demand: clock, area, switching; each figure from a formula or a measurement, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handfast.cli.areas import SEGMENT, Areas
from handfast.cli.size.demand import Demand
from handfast.engines.hardware.options import IMMEDIATE
from handfast.errors import SpecError

if TYPE_CHECKING:
    from handfast.engines.hardware.synthesize import Family

ENERGY = "circuit_energy.json"
ENERGY_COMMAND = "python -m benchmarks.circuit_energy"

Count = Callable[[int], tuple[int | None, int | None]]  # LUTs and registers of the circuit with so many cores


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit for a demand.

    Attributes:
        segments: Tuples of R and of S that a core holds.
        paper: The clock in MHz by the paper's formula [000 A.5].
        needed: The clock that it needs.
        luts, registers: None where nobody has counted them.
        switching: Bits that change for a tuple, where one core is 100; None where nobody has counted them.
        meets: Whether the clock that it needs is within reach.
    """

    cores: int
    segments: tuple[int, int]
    paper: float
    needed: float
    luts: int | None
    registers: int | None
    switching: float | None
    meets: bool


def circuits(
    demand: Demand,
    cores: Sequence[int],
    scan: str,
    clock: float,
    area: Count,
    switching: Mapping[int, float],
) -> list[Circuit]:
    """The circuits with these numbers of cores.

    Args:
        demand: What they are to bear.
        cores: The numbers of cores.
        scan: How a core scans.
        clock: The MHz within reach.
        area: What they take.
        switching: By cores, what they switch.
    """
    found = []
    for n in cores:
        needed = demand.mhz(n, scan)
        luts, registers = area(n)
        meets = needed <= clock
        paper = demand.paper_mhz(n)
        found.append(Circuit(n, demand.segments(n), paper, needed, luts, registers, switching.get(n), meets))
    return found


def best(found: Sequence[Circuit]) -> tuple[Circuit, str] | None:
    """The best circuit of those that meet the demand, and why; None if none does.

    A figure decides if all of these have it: what was not counted may be less.
    """
    able = [own for own in found if own.meets]
    if not able:
        return None
    if all(own.switching is not None for own in able):
        return min(able, key=lambda own: own.switching or 0.0), "it switches the fewest bits for a tuple"
    if all(own.luts is not None for own in able):
        return min(able, key=lambda own: own.luts or 0), "it takes the fewest LUTs"
    return min(able, key=lambda own: own.cores), "it has the fewest cores; the area of all is not known"


def clock_of(areas: Areas | None, network: str) -> float | None:
    """The lowest clock that was estimated for any circuit with this network; None where none was."""
    if areas is None or network not in areas:
        return None
    return min((mhz for mhz, _ in areas[network].clock.values()), default=None)


def read_switching(folder: Path, demand: Demand) -> dict[int, float]:
    """By cores, how many bits change for a tuple, one core being 100, if that was counted for these windows."""
    path = folder / ENERGY
    if not path.exists():
        return {}
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        if (written["window"], written["window"]) != demand.windows:
            return {}
        return {int(n): float(own["relative"]["toggles"]) for n, own in written["cores"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(
            f"{path} is not what {ENERGY_COMMAND} writes: {error!r}; run it again, or move the file"
        ) from None


def synthesised(demand: Demand, scan: str, network: str, family: Family) -> Count:
    """Count the cells of the circuit of an equi-join on 32-bit keys, by synthesis."""
    import pyarrow as pa

    from handfast.engines.hardware import synthesize
    from handfast.engines.hardware.design import design
    from handfast.engines.hardware.options import HardwareOptions
    from handfast.flow.batch import schema_of
    from handfast.spec.join import JoinSpec

    rows = 1 << 31  # a place of 31 bits, a key of 32 and its NULL: the papers' tuples of 64 bits
    schema = schema_of(pa.schema({"ts": pa.timestamp("us"), "k": pa.int32()}))
    r, s = demand.windows
    spec = JoinSpec(("r", "s"), "r.k = s.k", window={"r": f"{r} rows", "s": f"{s} rows"}, time="ts")
    join = spec.bind(dict.fromkeys(spec.names, schema))

    def count(cores: int) -> tuple[int | None, int | None]:
        made = design(join, HardwareOptions(cores=cores, scan=scan, network=network), (rows, rows), demand.windows)
        cells = synthesize.area(made.build(), family=family).total
        return cells.lut, cells.ff

    return count


def fitted(demand: Demand, scan: str, network: str, areas: Areas | None) -> Count:
    """Take LUTs and registers from the lines through what was counted, where the circuit is one of those."""
    own = areas.get(network) if areas is not None and scan == IMMEDIATE else None

    def count(cores: int) -> tuple[int | None, int | None]:
        if own is None or demand.segments(cores) != (SEGMENT, SEGMENT):
            return None, None
        if not min(own.luts) <= cores <= max(own.luts):
            return None, None
        return round(own.lut_line.at(cores)), round(own.register_line.at(cores))

    return count
