"""The generated part of a simulator: C++ that connects a circuit's ports to the streams and probes of simulation.h."""

from __future__ import annotations

import re

from handfast.engines.hardware.circuit import Circuit, Port, Stream
from handfast.errors import InternalError

_DECLARED = re.compile(r"VL_(?:IN|OUT)(?:8|16|64|W)?\(&(\w+),")


def driver(circuit: Circuit, header: str) -> str:
    """The C++ of a circuit, of which Verilator has written the header."""
    declared = set(_DECLARED.findall(header))

    def port(name: str | None, absent: str) -> str:
        return absent if name is None else f"s.circuit.{_member(name, declared)}"

    def payload(stream: Stream) -> str:
        return port(stream.payload.name if stream.payload.width else None, "s.absent")

    shape, offer, take = [], [], []
    for number, each in enumerate(circuit.streams_in):
        shape.append(f"s.sources[{number}].width = {words(each.payload)};")
        offer.append(f"s.sources[{number}].offer(s.cycle, {payload(each)}, {port(each.valid, 's.absent')});")
        take.append(f"moved |= s.sources[{number}].take(s.cycle, {port(each.ready, 's.always')});")
    for number, each in enumerate(circuit.streams_out):
        shape.append(f"s.sinks[{number}].record.width = {words(each.payload)};")
        offer.append(f"s.sinks[{number}].offer(s.cycle, {port(each.ready, 's.absent')});")
        take.append(f"moved |= s.sinks[{number}].take(s.cycle, {payload(each)}, {port(each.valid, 's.always')});")
    for number, level in enumerate(circuit.inputs):
        shape.append(f"s.levels[{number}].width = {words(level)};")
        offer.append(f"s.levels[{number}].offer(s.cycle, {port(level.name, '')});")
    for number, (_, probe) in enumerate(watched(circuit)):
        shape.append(f"s.probes[{number}].record.width = {words(probe)};")
        take.append(f"s.probes[{number}].take(s.cycle, {port(probe.name, '')});")
    clock = "circuit.clk = up;" if circuit.clocked else ""  # rst stays 0: registers begin with their initial values
    sizes = [
        f"s.sources.resize({len(circuit.streams_in)});",
        f"s.sinks.resize({len(circuit.streams_out)});",
        f"s.levels.resize({len(circuit.inputs)});",
        f"s.probes.resize({len(watched(circuit))});",
    ]
    return "\n".join(
        [
            '#include "Vcircuit.h"',
            '#include "simulation.h"',
            *_function("static void shape(Simulation& s)", [*sizes, *shape]),
            *_function("static void offer(Simulation& s)", offer),
            *_function("static bool take(Simulation& s)", ["bool moved = false;", *take, "return moved;"]),
            *_function("static void clock(Vcircuit& circuit, bool up)", [clock]),
            "",
        ]
    )


def words(port: Port) -> int:
    """The 64-bit words that a value of a port takes."""
    return max(1, -(-port.width // 64))


def watched(circuit: Circuit) -> tuple[tuple[str, Port], ...]:
    """What is recorded besides the streams, by name: the other outputs, then the probes."""
    return (*((port.name, port) for port in circuit.outputs), *circuit.probes)


def _function(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {{", *(f"    {line}" for line in lines), "}"]


def _member(name: str, declared: set[str]) -> str:
    """What Verilator calls a port in C++."""
    spelled = name.replace("__", "___05F")  # it keeps two underscores for itself
    for candidate in (spelled, f"__SYM__{spelled}"):  # the second: a word of C++
        if candidate in declared:
            return candidate
    raise InternalError(f"Verilator's header has no port {name!r}; it has {', '.join(sorted(declared))}")
