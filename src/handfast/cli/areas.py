"""Areas and clocks of circuits that were synthesised: what `benchmarks/circuit_area.py` wrote down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handfast.errors import SpecError

NAME = "circuit_area.json"
COMMAND = "python -m benchmarks.circuit_area"
SEGMENT = 8  # tuples of each stream in every core of these circuits
RESULTS = Path("benchmarks") / "results"


@dataclass(frozen=True, slots=True)
class Line:
    """Cells as a straight line over the cores: so many for each, so many besides, and the largest deviation."""

    each: float
    besides: float
    deviation: float

    def at(self, cores: int) -> float:
        """The cells at so many cores."""
        return self.each * cores + self.besides

    def __str__(self) -> str:
        sign = "−" if self.besides < 0 else "+"
        return f"{self.each:,.0f} · n {sign} {abs(self.besides):,.0f}, at most {self.deviation:.2%} off"


@dataclass(frozen=True, slots=True)
class NetworkArea:
    """The cells of circuits with one network, by cores.

    Attributes:
        luts, registers: Of the whole circuit.
        lut_line, register_line: Through them.
        clock: nextpnr's estimate on an ECP5 in MHz, with its spread over seeds, where it was made.
    """

    luts: Mapping[int, int]
    registers: Mapping[int, int]
    lut_line: Line
    register_line: Line
    clock: Mapping[int, tuple[float, float]]


Areas = Mapping[str, NetworkArea]


def results_folder(asked: Path | None) -> Path:
    """The folder that was asked for, or else `RESULTS`, which may be missing: handfast is also used without them."""
    if asked is not None and not asked.is_dir():
        raise SpecError(f"--results takes a folder that the benchmarks wrote into; there is none at {str(asked)!r}")
    return asked or RESULTS


def read_areas(folder: Path) -> Areas | None:
    """The areas by network; None where nobody has measured them yet."""
    path = folder / NAME
    if not path.exists():
        return None
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        clocks = written.get("clock_ecp5", {})
        return {name: _of(own, clocks.get(name, {})) for name, own in written["area"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"{path} is not what {COMMAND} writes: {error!r}; run it again, or move the file") from None


def _of(own: Mapping[str, Any], clocks: Mapping[str, Any]) -> NetworkArea:
    cores = [int(n) for n in own["cores"]]
    luts, registers = (dict(zip(cores, map(int, own[kind]), strict=True)) for kind in ("lut", "ff"))
    lines = [Line(**{name: float(own["line"][kind][name]) for name in Line.__slots__}) for kind in ("lut", "ff")]
    clock = {int(n): (float(about["median"]), float(about["spread"])) for n, about in clocks.items()}
    return NetworkArea(luts, registers, lines[0], lines[1], clock)
