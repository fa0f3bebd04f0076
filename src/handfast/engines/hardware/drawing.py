"""A circuit as a picture for a terminal: its cores, where the streams enter, what collects the results."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.engines.hardware.options import ADAPTIVE, NESTED_LOOP, PIPELINED
from handfast.engines.hardware.shape import CircuitShape
from handfast.engines.hardware.tree import level_sizes
from handfast.flow.topology import R, S

_SHOWN = 4  # cores that are drawn one by one; of more, the ones in the middle are left out
_THERE, _BACK = " ──▶ ", " ◀── "
_GAP = " " * len(_THERE)
_LONGEST_NAME = 8  # letters of a stream's name: more would not fit into a terminal, box beside box


def draw(shape: CircuitShape, names: Sequence[str]) -> list[str]:
    """The lines of the picture; `names` are those of the R and of the S stream."""
    names = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    alone = shape.algorithm == NESTED_LOOP
    boxes = _units(shape, names) if alone else _cores(shape, names)
    width = max(len(line) for box in boxes for line in box)
    rule = "─" * (width + 2)
    framed = [[f"┌{rule}┐", *(f"│ {line:^{width}} │" for line in box), f"└{rule}┘"] for box in boxes]
    head, title, r_line, s_line, foot = zip(*framed, strict=True)
    indent = len(names[R]) + len(_THERE)
    rows = [
        " " * indent + _GAP.join(head),
        " " * indent + _GAP.join(title),
        names[R] + _THERE + (_GAP if alone else _THERE).join(r_line),
        " " * indent + (_GAP if alone else _BACK).join(s_line) + _BACK + names[S],
        " " * indent + _GAP.join(foot),
    ]
    return rows + _collected(shape, len(boxes), width + 4, indent)


def _cores(shape: CircuitShape, names: Sequence[str]) -> list[list[str]]:
    """What is written into each core's box: a stream passes where its share is written."""
    held = [f"{shape.sizes[R]} of {names[R]}", f"{shape.sizes[S]} of {names[S]}"]
    boxes = [[f"core {number}", *held] for number in range(shape.cores)]
    if shape.cores > _SHOWN:
        boxes[2:-1] = [[f"{shape.cores - 3} more", "…", "…"]]
    return boxes


def _units(shape: CircuitShape, names: Sequence[str]) -> list[list[str]]:
    scanned = [(names[S], shape.sizes[S]), (names[R], shape.sizes[R])]
    return [[f"unit {unit}", "scans", f"{size} of {name}"] for unit, (name, size) in enumerate(scanned)]


def _collected(shape: CircuitShape, boxes: int, width: int, indent: int) -> list[str]:
    """From the boxes down to the one stream of results."""
    places = [indent + width // 2 + (width + len(_GAP)) * k for k in range(boxes)]
    middle = (places[0] + places[-1]) // 2
    lines = [_at(dict.fromkeys(places, "│"))]
    if shape.network != ADAPTIVE:
        fifo = f"[{shape.network_buffer if shape.network == PIPELINED else shape.core_buffer}]"
        lines.append(_at({place - len(fifo) // 2: fifo for place in places}) + "  results that fit behind each")
    if boxes > 1:
        bar = dict.fromkeys(range(places[0] + 1, places[-1]), "─") | dict.fromkeys(places[1:-1], "┴")
        bar |= {places[0]: "└", places[-1]: "┘", middle: "┼" if middle in places else "┬"}
        lines.append(_at(bar))
    lines += [_at({max(0, middle - len(text) // 2): text}) for text in _network(shape)]
    return [*lines, _at({middle: "│"}), _at({middle - 3: "results"})]


def _network(shape: CircuitShape) -> list[str]:
    """The merging network in words, from the cores on."""
    inputs = shape.inputs
    if shape.network == ADAPTIVE:
        return [f"ring of {_some(inputs, 'node')}", f"{inputs} × [{shape.network_buffer}]", "tree without buffers"]
    if inputs == 1:
        return []
    stages = shape.network == PIPELINED
    mergers = level_sizes(inputs, shape.stage_fan_in if stages else shape.fan_in)
    each = "a register" if stages else f"[{shape.network_buffer}]"
    return [f"tree of {_some(sum(mergers), 'merger')}, {_some(len(mergers), 'level')}, {each} in each"]


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _at(marks: dict[int, str]) -> str:
    """A line with these texts at these places."""
    line = ""
    for place, text in sorted(marks.items()):
        line = line.ljust(place) + text
    return line
