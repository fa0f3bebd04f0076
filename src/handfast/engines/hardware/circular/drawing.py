"""Stages as a picture for a terminal: a ring or a line, whose tuples begin where, what collects the results."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.stashed.shape import LineShape
from handfast.engines.hardware.tree import level_sizes

_SHOWN = 4  # stages that are drawn one by one; of more, the ones in the middle are left out
_NEXT = " ──▶ "
_GAP = " " * len(_NEXT)
_LONGEST_NAME = 8  # letters of a stream's name


def draw_ring(shape: RingShape, names: Sequence[str]) -> list[str]:
    """The lines of the picture of a ring; `names` are those of the streams."""
    names = [_short(name) for name in names]
    boxes = [[f"stage of {name}", f"holds {size:,}"] for name, size in zip(names, shape.sizes, strict=True)]
    for stage, box in enumerate(boxes):
        box.append(f"new {names[stage - 1]}")
    head, title, held, new, foot, places = _framed(boxes)
    bus = "─" * (len(head) + 8)
    lines = [f"┌{bus}┐", f"│    {head}    │", f"└──▶ {title} ───┘", f"     {held}", f"     {new}", f"     {foot}"]
    return lines + _collected(shape, [5 + place for place in places])


def draw_line(shape: LineShape, names: Sequence[str]) -> list[str]:
    """The lines of the picture of a line of stages, whose first has the stash."""
    names = [_short(name) for name in names]
    boxes = [[f"stage of {name}", f"holds {size:,}", ""] for name, size in zip(names, shape.sizes, strict=True)][2:]
    a, b = shape.sizes[:2]
    first = [f"stage of {names[0]} and {names[1]}", f"holds {a:,} and {b:,}", f"stash of {shape.stash:,} pairs"]
    head, title, held, stash, foot, places = _framed([first, *boxes])
    lines = [f"        {head}", f"new ──▶ {title}", f"        {held}", f"        {stash}", f"        {foot}"]
    return lines + _collected(shape, [8 + place for place in places])


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _framed(boxes: list[list[str]]) -> tuple[str, str, str, str, str, list[int]]:
    """The lines of some boxes of three lines side by side, and where the middle of each is."""
    if len(boxes) > _SHOWN:
        boxes[2:-1] = [[f"{len(boxes) - 3} more", "…", "…"]]
    widths = [max(map(len, box)) for box in boxes]
    framed = [
        [f"┌{'─' * (width + 2)}┐", *(f"│ {line:^{width}} │" for line in box), f"└{'─' * (width + 2)}┘"]
        for width, box in zip(widths, boxes, strict=True)
    ]
    head, title, second, third, foot = zip(*framed, strict=True)
    starts = [sum(width + 4 + len(_GAP) for width in widths[:number]) for number in range(len(boxes))]
    places = [start + 1 + width // 2 for start, width in zip(starts, widths, strict=True)]
    return _GAP.join(head), _NEXT.join(title), _GAP.join(second), _GAP.join(third), _GAP.join(foot), places


def _collected(shape: RingShape | LineShape, places: list[int]) -> list[str]:
    """From the boxes down to the one stream of results."""
    middle = (places[0] + places[-1]) // 2
    joined = dict.fromkeys(range(places[0] + 1, places[-1]), "─") | dict.fromkeys(places[1:-1], "┴")
    joined |= {places[0]: "└", places[-1]: "┘", middle: "┼" if middle in places else "┬"}
    fifo = f"[{shape.network_buffer}]"
    levels = level_sizes(shape.stages, shape.stage_fan_in)
    tree = f"tree of {sum(levels)} merger{'s' * (sum(levels) > 1)}, a register in each"
    return [
        _at(dict.fromkeys(places, "│")),
        _at({place - len(fifo) // 2: fifo for place in places}) + "  results that fit behind each",
        _at(joined),
        _at({max(0, middle - len(tree) // 2): tree}),
        _at({middle: "│"}),
        _at({middle - 3: "results"}),
    ]


def _at(marks: dict[int, str]) -> str:
    """A line with these texts at these places."""
    line = ""
    for place, text in sorted(marks.items()):
        line = line.ljust(place) + text
    return line
