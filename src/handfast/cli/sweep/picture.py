"""The picture of a sweep: how many tuples a circuit takes, over what was varied."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from handfast.cli.drawing import COLOURS, INCHES, MARKERS, LineEnd, name_lines, new_figure, save_png
from handfast.cli.sweep.best import per_thousand

_MATCH_RATE, _MATCH_PROBABILITY, _SEED = "match_rate", "match_probability", "seed"
_LINES = len(COLOURS)
_PANELS = 4  # at most, side by side
_WIDE = 20.0  # between the lowest and the highest: beyond it the scale is logarithmic
_UNITS = {"match_rate": "match rate", "segment": "tuples in a segment", "tuples": "tuples in each stream"}

Row = Mapping[str, Any]


def draw(path: Path, rows: Sequence[Row], varied: Sequence[str], takes: str = "tuples of each stream") -> None:
    """Draw a sweep: one parameter along the axis, one as panels if there are many, the others as lines.

    What has no place is a band: the line is the median, and the band goes from the lowest to the highest.
    """
    along, panel, lined, banded = _places(rows, varied)
    panels = sorted({row[panel] for row in rows}) if panel else [None]
    width, height = INCHES
    figure = new_figure((width if len(panels) == 1 else 4.5 * len(panels) + 1.5, height))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    names = _names(rows, lined)
    values = [per_thousand(row) for row in rows]
    for axes, value in zip(grid, panels, strict=True):
        shown = [row for row in rows if panel is None or row[panel] == value]
        if max(values) > _WIDE * min(values):
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.08 * max(values))
        if along == _MATCH_PROBABILITY:  # from one power of ten to the next
            axes.set_xscale("log")
        ends = _draw_lines(axes, shown, along, lined, names)
        if panel:
            axes.set_title(f"{_words(panel)} {value}", fontsize=11)
        axes.set_xlabel(_UNITS.get(along, _words(along)))
        if along == _MATCH_RATE:
            axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:.0%}")
        axes.grid(alpha=0.3)
        if lined and value == panels[-1]:
            name_lines(axes, ends)
    grid[0].set_ylabel(f"{takes} in 1,000 cycles")
    title = "How many tuples a circuit takes"
    if banded:
        title += f"\nline: median, band: lowest to highest, over {' and '.join(map(_words, banded))}"
    figure.suptitle(title, fontsize=12)
    save_png(figure, path)


def _places(rows: Sequence[Row], varied: Sequence[str]) -> tuple[str, str | None, list[str], list[str]]:
    """What goes along the axis, what is panels, what is lines, and what is left for bands."""
    counts = {name: len({row[name] for row in rows}) for name in varied}
    numbers = [name for name in varied if name != _SEED and not isinstance(rows[0][name], str)]
    matching = _MATCH_RATE if _MATCH_RATE in rows[0] else _MATCH_PROBABILITY  # of chains, or of rings
    along = matching if matching in numbers or not numbers else max(numbers, key=counts.__getitem__)
    left = [name for name in varied if name not in (along, _SEED)]
    panel = None
    if prod(counts[name] for name in left) > _LINES:
        panel = next((name for name in left if counts[name] <= _PANELS), None)
        left = [name for name in left if name != panel]
    lined: list[str] = []
    for name in left:
        if prod(counts[own] for own in [*lined, name]) <= _LINES:
            lined.append(name)
    return along, panel, lined, [name for name in varied if name not in (along, panel, *lined)]


def _names(rows: Sequence[Row], lined: Sequence[str]) -> list[tuple[Any, ...]]:
    """The lines, by their values, in the order of the rows."""
    return list(dict.fromkeys(tuple(row[name] for name in lined) for row in rows))


def _draw_lines(
    axes: Any, rows: Sequence[Row], along: str, lined: Sequence[str], names: Sequence[tuple[Any, ...]]
) -> list[LineEnd]:
    ends = []
    for number, name in enumerate(names):
        points: dict[Any, list[float]] = {}
        for row in rows:
            if tuple(row[own] for own in lined) == name:
                points.setdefault(row[along], []).append(per_thousand(row))
        if not points:
            continue
        xs = sorted(points)
        middle = [statistics.median(points[x]) for x in xs]
        colour, marker = COLOURS[number % _LINES], MARKERS[number % _LINES]
        axes.plot(xs, middle, color=colour, marker=marker, linewidth=2)
        if any(len(points[x]) > 1 for x in xs):
            axes.fill_between(xs, [min(points[x]) for x in xs], [max(points[x]) for x in xs], color=colour, alpha=0.15)
        said = ", ".join(_said(own, value) for own, value in zip(lined, name, strict=True))
        ends.append(LineEnd(xs[-1], middle[-1], said, colour))
    return ends


def _said(name: str, value: Any) -> str:
    """A value as the name of a line: words stand for themselves, numbers need their parameter."""
    if isinstance(value, str):
        return value or f"no {_words(name)}"
    said = f"{value:.0%}" if name == _MATCH_RATE else f"{value:g}" if isinstance(value, float) else f"{value:,}"
    return f"{_words(name)} {said}"


def _words(name: str) -> str:
    return name.replace("_", " ")
