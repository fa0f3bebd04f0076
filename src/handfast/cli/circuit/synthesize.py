"""`handfast synthesize`: what the circuit of a pipeline's join takes of an FPGA, how fast it is, and its Verilog."""

from __future__ import annotations

from pathlib import Path

from handfast.cli.circuit.files import written_whole
from handfast.cli.circuit.given import Given
from handfast.cli.circuit.options import Asked
from handfast.cli.screen import Screen
from handfast.engines.hardware import synthesize, verilog
from handfast.engines.hardware.synthesize import Area, Cells, Clock, Family
from handfast.errors import SpecError

DEVICES: dict[str, tuple[Family, str]] = {"xc6v": ("xc6v", "Virtex-6"), "ecp5": ("ecp5", "ECP5")}
_COLUMNS = (
    ("LUT", "lut"),
    ("FF", "ff"),
    ("RAM in LUTs", "lut_ram"),
    ("block RAM", "block_ram"),
    ("DSP", "multipliers"),
)


def run(
    file: Path,
    circuit: Asked,
    *,
    family: str,
    seeds: int,
    verilog_to: Path | None,
    screen: Screen,
    progress: Screen,
) -> None:
    """Synthesise the circuit and show the report; a clock is estimated over so many seeds, and not at all with 0."""
    if family not in DEVICES:
        raise SpecError(f"--family is one of {', '.join(DEVICES)}, not {family!r}")
    known, device = DEVICES[family]
    clock: Clock | None = None
    with progress.stages() as begins:
        begins("reading the pipeline's rows")
        given = Given.read(file, circuit)
        if verilog_to is not None:
            begins("exporting Verilog")
            with written_whole(verilog_to, "--verilog") as target:
                target.write_text(verilog.export(given.job.design.build()), encoding="utf-8")
        area = synthesize.area(given.job.design.build(), family=known, progress=begins)
        if seeds:
            chosen = range(1, seeds + 1)
            clock = synthesize.clock(given.job.design.build(), seeds=chosen, progress=begins)
    screen.say(f"join of {given.streams} on {device} ({family})")
    screen.list([("circuit", given.circuit), ("made for", given.rows)])
    _show(area, screen)
    if clock is not None:
        screen.say(f"clock on ECP5, by nextpnr: {_spread(clock)}")
    if verilog_to is not None:
        screen.say(f"Verilog: {verilog_to}")


def _show(area: Area, screen: Screen) -> None:
    """The cells by kind of part, and their sum; a column that has none is left out."""
    columns = [(heading, name) for heading, name in _COLUMNS if name in ("lut", "ff") or getattr(area.total, name)]

    def figures(cells: Cells) -> list[str]:
        return [f"{getattr(cells, name):,}" for _, name in columns]

    rows = [[kind, f"{count:,}", *figures(cells)] for kind, (count, cells) in area.kinds().items()]
    total = ["all", f"{len(area.own):,}", *figures(area.total)]
    screen.table(["part", "how many", *(heading for heading, _ in columns)], [*rows, total], left=1)


def _spread(clock: Clock) -> str:
    if len(clock.mhz) == 1:
        return f"{clock.median:.1f} MHz with one seed"
    low, high = min(clock.mhz.values()), max(clock.mhz.values())
    return f"{clock.median:.1f} MHz, the median of {len(clock.mhz)} seeds, from {low:.1f} to {high:.1f}"
