"""Signals over time as a person reads them: a model checker's waveform, and a table of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Signals: TypeAlias = dict[str, tuple[int, ...]]

_CLOCKS = ("clk", "rst")
_STEP = 10  # units of time in a step of yosys-smtbmc


def read(text: str, *, below: str, steps: int) -> Signals:
    """The signals of a VCD that lie below a scope, with their value in each step; those without a name are left out."""
    lines = iter(text.splitlines())
    names = _names(lines)
    values: dict[str, list[int]] = {}
    step = 0
    for line in lines:
        if line.startswith("#"):
            step = int(line[1:]) // _STEP
        elif line.startswith("b") and step < steps:
            bits, _, code = line[1:].partition(" ")
            value = int(bits.replace("x", "0").replace("z", "0"), 2)
            each = values.setdefault(code, [value] * steps)
            each[step:] = [value] * (steps - step)  # until it changes
    prefix = below + "."
    return {
        name.removeprefix(prefix): tuple(values[code])
        for name, code in names
        if code in values and name.startswith(prefix) and "$" not in name and name.rpartition(".")[2] not in _CLOCKS
    }


def _names(lines: Iterator[str]) -> list[tuple[str, str]]:
    """The signals that a VCD declares, each with the code that stands for it; the lines after are left to be read."""
    names: list[tuple[str, str]] = []
    scope: list[str] = []
    for line in lines:
        match line.split():
            case ["$scope", _, name, _]:
                scope.append(name)
            case ["$upscope", _]:
                scope.pop()
            case ["$var", _, _, code, name, *_]:
                names.append((".".join([*scope, name]), code))
            case ["$enddefinitions", _]:
                break
    return names


def table(signals: Signals) -> str:
    """A line for each signal that is ever anything but 0, a column for each step; large numbers in hex."""
    shown: Signals = {}
    for name, values in sorted(signals.items(), key=lambda item: (item[0].count("."), item[0])):
        inherited = any(name.endswith("." + other) and values == shown[other] for other in shown)  # a port, seen inside
        if any(values) and not inherited:
            shown[name] = values
    steps = max(map(len, signals.values()), default=0)
    rows = [["cycle", *map(str, range(steps))], *([name, *map(_number, values)] for name, values in shown.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _number(value: int) -> str:
    return str(value) if value < 10_000 else hex(value)
