"""Parts that are alike, made one: Amaranth exports a module for each part, and a chain's cores are equal but for names.

What is done once for each module, such as synthesis, is then done once for all parts that are alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_MODULE = re.compile(r"^(?:attribute [^\n]*\n)*module \\(?P<name>\S+)\n(?P<text>.*?)^end\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"  cell \\(\S+) (.*)")
_CONNECT = re.compile(r"    connect \\(\S+) (.*)")
# A port that no signal of the part gives its name to is called by where its bits come from in the whole circuit.
_PLACED = re.compile(r"\\(port\$\d+\$\d+)(?!\S)")
# Ports are numbered in the order of where their bits come from.
_PORT = re.compile(r"^(?P<kind>  wire width \d+ (?:input|output) )\d+(?P<name> .*\\\S+)$", re.MULTILINE)
# The order of assertions and prints in the whole circuit.
_PRIORITY = re.compile(r"^    parameter (?:signed )?\\PRIORITY \S+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shared:
    """A circuit in which no two modules are alike.

    Attributes:
        rtlil: The modules that are left.
        stands_for: By part, `top.core_0.fifo`, the module that it is an instance of now.
    """

    rtlil: str
    stands_for: Mapping[str, str]


def share(rtlil: str) -> Shared:
    """Make modules one that are the same text but for names, those inside first, so that what contains them may be."""
    modules = {found["name"]: found for found in _MODULE.finditer(rtlil)}
    kept: dict[str, str] = {}  # by text: the module that has it
    stands_for: dict[str, str] = {}
    ports: dict[str, dict[str, str]] = {}  # by module: its ports that are named by place, and what they are called now
    texts: list[str] = []
    for name, module in reversed(modules.items()):  # a part comes after what contains it
        ports[name] = {}
        text = _renamed(module["text"], ports[name], stands_for, ports)
        stands_for[name] = kept.setdefault(text, name)
        if stands_for[name] == name:
            head = module[0][: module.start("text") - module.start()]
            texts.append(f"{head}{text}end\n\n")
    return Shared("".join(reversed(texts)), {name: stands_for[name] for name in modules})


def _renamed(
    text: str, own: dict[str, str], stands_for: Mapping[str, str], ports: Mapping[str, Mapping[str, str]]
) -> str:
    """The text of a module with names that do not depend on where it is; `own` is filled with its ports' new names."""

    def local(line: str) -> str:
        return _PLACED.sub(lambda found: "\\" + own.setdefault(found[1], f"port${len(own)}$0"), line)

    lines = []
    part: str | None = None  # the part whose connections are being read
    for line in _PRIORITY.sub("    parameter \\\\PRIORITY 0", _in_order(text)).splitlines():
        if (cell := _CELL.fullmatch(line)) is not None and cell[1] in stands_for:
            part = cell[1]
            lines.append(f"  cell \\{stands_for[part]} {cell[2]}")
        elif part is not None and (connect := _CONNECT.fullmatch(line)) is not None:
            lines.append(f"    connect \\{ports[part].get(connect[1], connect[1])} {local(connect[2])}")
        else:
            part = None if line == "  end" else part
            lines.append(local(line))
    return "".join(f"{line}\n" for line in lines)


def _in_order(text: str) -> str:
    """The text of a module with its ports in the order of their names; instances are connected by name."""
    items = text.split("\n\n")
    found = {place: port for place, item in enumerate(items) if (port := _PORT.search(item)) is not None}
    by_name = sorted(found, key=lambda place: "" if _PLACED.search(found[place]["name"]) else found[place]["name"])
    ordered = [_PORT.sub(rf"\g<kind>{number}\g<name>", items[place]) for number, place in enumerate(by_name)]
    for place, item in zip(found, ordered, strict=True):
        items[place] = item
    return "\n\n".join(items)
