"""A component as the tools see it: its RTLIL, which every tool begins with, and its ports, streams and probes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Const, Value
from amaranth.hdl._ir import PortDirection  # where Verilog export takes its ports from; 0.5 has no public name for it
from amaranth.lib import stream, wiring

from handfast.errors import SpecError

_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+  \\(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Port:
    """A signal at the border of a circuit."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream at the border: the names of its signals; None is one that is always 1 and has no port."""

    name: str
    payload: Port
    valid: str | None
    ready: str | None


@dataclass(frozen=True, slots=True)
class Circuit:
    """An elaborated component."""

    name: str
    rtlil: str
    clocked: bool  # has the port clk: there is a register inside
    resettable: bool  # has the port rst
    streams_in: tuple[Stream, ...]
    streams_out: tuple[Stream, ...]
    inputs: tuple[Port, ...]  # those that belong to no stream
    outputs: tuple[Port, ...]
    probes: tuple[tuple[str, Port], ...]  # the name that was asked for, and the port that was made for it


def elaborate(
    component: Any, *, name: str = "top", probes: Mapping[str, Any] | None = None, positions: bool = False
) -> Circuit:
    """Elaborate a component.

    Args:
        component: A `wiring.Component`; nested signatures and arrays of streams are fine.
        name: The name of its module.
        probes: Signals inside the component to be led out, such as the levels of its FIFOs.
        positions: Whether the RTLIL says where in the source each thing stands. Without it, the same circuit is the
            same text wherever its code lies, and results that were kept are found again.
    """
    streams_in, streams_out, inputs, outputs, ports = _border(component)
    made = tuple(
        (asked, Port(f"probe_{number}", len(_bits(value))))
        for number, (asked, value) in enumerate((probes or {}).items())
    )
    for (_, port), value in zip(made, (probes or {}).values(), strict=True):
        ports[port.name] = (_bits(value), PortDirection.Output)
    text = rtlil.convert(component, name=name, ports=ports, emit_src=positions)
    found = {port[3] for port in _PORT.finditer(_top(text)) if port[2] == "input"}
    clocks = found - ports.keys()
    if not clocks <= {"clk", "rst"}:
        raise SpecError(
            f"A component has one clock domain, 'sync', and this one takes {', '.join(sorted(clocks))} as well"
        )
    return Circuit(name, text, "clk" in clocks, "rst" in clocks, streams_in, streams_out, inputs, outputs, made)


def _border(
    component: Any,
) -> tuple[tuple[Stream, ...], tuple[Stream, ...], tuple[Port, ...], tuple[Port, ...], dict[str, tuple[Any, Any]]]:
    """Its streams in and out, the other inputs and outputs, and all of them as Amaranth wants them named."""
    if not isinstance(getattr(component, "signature", None), wiring.Signature):
        raise SpecError(f"A circuit is made from a wiring.Component, which has a signature; {component!r} has none")
    streams = dict(_streams(component.signature, (), wiring.Out))
    ports: dict[str, tuple[Any, Any]] = {}
    alone: dict[Any, list[Port]] = {wiring.In: [], wiring.Out: []}
    for path, member, signal in component.signature.flatten(component):
        value = _bits(signal)
        if isinstance(value, Const) or len(value) == 0:
            continue  # the ready of a stream that is always ready, a payload without bits: nothing to connect
        name = _name(path)
        ports[name] = (value, PortDirection.Input if member.flow == wiring.In else PortDirection.Output)
        if path[:-1] not in streams:
            alone[member.flow].append(Port(name, len(value)))
    sides: dict[Any, list[Stream]] = {wiring.In: [], wiring.Out: []}
    for path, flow in streams.items():
        name = _name(path)
        valid, ready = (f"{name}__{each}" if f"{name}__{each}" in ports else None for each in ("valid", "ready"))
        width = len(ports[f"{name}__payload"][0]) if f"{name}__payload" in ports else 0
        sides[flow].append(Stream(name, Port(f"{name}__payload", width), valid, ready))
    return tuple(sides[wiring.In]), tuple(sides[wiring.Out]), tuple(alone[wiring.In]), tuple(alone[wiring.Out]), ports


def _streams(signature: Any, path: tuple[str | int, ...], flow: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    """The paths of the streams in a signature, and which way each goes."""
    if isinstance(signature, wiring.FlippedSignature):
        return _streams(signature.flip(), path, flow.flip())
    if isinstance(signature, stream.Signature):
        return [(path, flow)]
    found = []
    for name, member in signature.members.items():
        if member.is_signature:
            # A member's signature is already flipped where the member is an input.
            for place in _places(member.dimensions):
                found += _streams(member.signature, (*path, name, *place), flow)
    return found


def _places(dimensions: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The indices of an array's elements; one without dimensions is one element."""
    places: list[tuple[int, ...]] = [()]
    for length in dimensions:
        places = [(*place, number) for place in places for number in range(length)]
    return places


def _name(path: tuple[str | int, ...]) -> str:
    return "__".join(map(str, path))


def _bits(signal: Any) -> Any:
    return Value.cast(signal)


def _top(text: str) -> str:
    """The text of the first module, which is the component itself."""
    return text.partition("\nend\n")[0]
