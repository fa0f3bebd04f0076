"""A ring as a picture for a terminal: its stages, whose tuples begin where, what collects the results."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.tree import level_sizes

_SHOWN = 5  # stages that are drawn one by one; of more, the ones in the middle are left out
_NEXT = " ──▶ "
_GAP = " " * len(_NEXT)
_LONGEST_NAME = 8  # letters of a stream's name


def draw_ring(shape: RingShape, names: Sequence[str]) -> list[str]:
    """The lines of the picture; `names` are those of the streams."""
    names = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names]
    boxes = [[f"stage of {name}", f"holds {size:,}"] for name, size in zip(names, shape.sizes, strict=True)]
    for stage, box in enumerate(boxes):
        box.append(f"new {names[stage - 1]}")
    if len(boxes) > _SHOWN:
        boxes[2:-1] = [[f"{len(boxes) - 3} more", "…", "…"]]
    width = max(len(line) for box in boxes for line in box)
    rule = "─" * (width + 2)
    framed = [[f"┌{rule}┐", *(f"│ {line:^{width}} │" for line in box), f"└{rule}┘"] for box in boxes]
    head, title, held, new, foot = zip(*framed, strict=True)
    inside = _GAP.join(head)
    bus = "─" * (len(inside) + 8)
    places = [6 + width // 2 + (width + 4 + len(_GAP)) * k for k in range(len(boxes))]
    middle = (places[0] + places[-1]) // 2
    joined = dict.fromkeys(range(places[0] + 1, places[-1]), "─") | dict.fromkeys(places[1:-1], "┴")
    joined |= {places[0]: "└", places[-1]: "┘", middle: "┼" if middle in places else "┬"}
    fifo = f"[{shape.network_buffer}]"
    levels = level_sizes(shape.streams, shape.stage_fan_in)
    tree = f"tree of {sum(levels)} merger{'s' * (sum(levels) > 1)}, a register in each"
    return [
        f"┌{bus}┐",
        f"│    {inside}    │",
        f"└──▶ {_NEXT.join(title)} ───┘"[: len(bus) + 2],
        f"     {_GAP.join(held)}",
        f"     {_GAP.join(new)}",
        f"     {_GAP.join(foot)}",
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
