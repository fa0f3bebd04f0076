"""Circuits that meet a demand: clock, area, switching; each figure from a formula or a measurement, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from handfast.cli.areas import SEGMENT, Areas
from handfast.cli.size.demand import Demand
from handfast.errors import SpecError

ENERGY = "circuit_energy.json"
ENERGY_COMMAND = "python -m benchmarks.circuit_energy"

Count = Callable[[int], tuple[int, int]]  # LUTs and registers of the circuit with so many cores, by synthesis


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit for a demand.

    Attributes:
        segments: Tuples of R and of S that a core holds.
        side_by_side, one_by_one: The clock in MHz that it needs, by how a core scans; see `Demand`.
        luts, registers: None where nobody has counted them.
        switching: Bits that change for a tuple, where one core is 100; None where nobody has counted them.
        meets: Whether the clock that it needs, scanning one by one, is within reach.
    """

    cores: int
    segments: tuple[int, int]
    side_by_side: float
    one_by_one: float
    luts: int | None
    registers: int | None
    switching: float | None
    meets: bool


def circuits(
    demand: Demand,
    cores: Sequence[int],
    clock: float,
    areas: Areas | None,
    network: str,
    switching: Mapping[int, float],
    count: Count | None,
) -> list[Circuit]:
    """The circuits with these numbers of cores.

    Args:
        demand: What they are to bear.
        cores: The numbers of cores.
        clock: The MHz within reach.
        areas: What the benchmark counted.
        network: How results are collected.
        switching: By cores, what `read_switching` found for these windows.
        count: Synthesis, where it is asked for.
    """
    found = []
    for n in cores:
        luts, registers = count(n) if count is not None else _known(demand, n, areas, network)
        needed = demand.one_by_one_mhz(n)
        found.append(
            Circuit(
                n,
                demand.segments(n),
                demand.side_by_side_mhz(n),
                needed,
                luts,
                registers,
                switching.get(n),
                needed <= clock,
            )
        )
    return found


def best(found: Sequence[Circuit]) -> tuple[Circuit, str] | None:
    """The best circuit of those that meet the demand, and by what; None if none does."""
    able = [own for own in found if own.meets]
    if not able:
        return None
    switching = [own for own in able if own.switching is not None]
    if switching:
        return min(switching, key=lambda own: own.switching or 0.0), "it switches the fewest bits for a tuple"
    counted = [own for own in able if own.luts is not None]
    if counted:
        return min(counted, key=lambda own: own.luts or 0), "it takes the fewest LUTs of those that are counted"
    return min(able, key=lambda own: own.cores), "it has the fewest cores; nobody has counted their area"


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


def counter(demand: Demand, network: str, family: str) -> Count:
    """Counts the cells of the circuit of an equi-join on 32-bit keys, by synthesis."""
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

    def count(cores: int) -> tuple[int, int]:
        made = design(join, HardwareOptions(cores=cores, network=network), (rows, rows), demand.windows)
        cells = synthesize.area(made.build(), family=family).total  # type: ignore[arg-type]  # checked there
        return cells.lut, cells.ff

    return count


def _known(demand: Demand, cores: int, areas: Areas | None, network: str) -> tuple[int | None, int | None]:
    """LUTs and registers by the lines that were fitted, where the circuit is one of those."""
    own = areas.get(network) if areas is not None else None
    if own is None or demand.segments(cores) != (SEGMENT, SEGMENT):
        return None, None
    if not min(own.luts) <= cores <= max(own.luts):
        return None, None
    return round(own.lut_line.at(cores)), round(own.register_line.at(cores))
