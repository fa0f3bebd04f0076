"""What all pictures share: an empty figure, colours that can be told apart, names beside lines, PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handfast.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES, _DPI = (9.0, 6.0), 100  # 900 × 600 pixels
COLOURS = ("#0b6e99", "#d1495b", "#3a7d44", "#8f4bb5", "#c77d00", "#2b2d42", "#7a8794")  # also apart without colour:
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # each line has its own marks
MUTED = "#7a8794"

_GAP = 0.055  # of the height of the axes: a name's line


class LineEnd(NamedTuple):
    """The last point of a line, and its name."""

    x: float
    y: float
    name: str
    colour: str


def new_figure(inches: tuple[float, float] = INCHES) -> Figure:
    """An empty figure that belongs to no window: saving draws it with Agg, and there is no state to share."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("Plots need", "bench", error.name or "matplotlib") from error
    figure = Figure(figsize=inches, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure as PNG."""
    figure.savefig(path, format="png")


def as_svg(figure: Figure) -> str:
    """A figure as SVG; the same figure is the same text."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "handfast"}):  # names inside are random otherwise
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def name_lines(axes: Axes, ends: Sequence[LineEnd]) -> None:
    """Write the name of each line behind its last point, in its colour; names that would overlap are moved apart.

    The limits of the axes must be what they are going to be.
    """
    axes.get_ylim()  # where they are automatic, they are found now
    to_axes = axes.transScale + axes.transLimits
    heights = sorted((float(to_axes.transform((end.x, end.y))[1]), end) for end in ends)
    places: list[float] = []
    for height, _ in heights:
        places.append(max(height, places[-1] + _GAP) if places else height)
    over = max(0.0, places[-1] - 1.0) if places else 0.0
    for k in reversed(range(len(places))):  # what was pushed out at the top comes down, and pushes others down
        highest = places[k + 1] - _GAP if k + 1 < len(places) else 1.0
        places[k] = min(places[k], highest) if over else places[k]
    for (_, end), place in zip(heights, places, strict=True):
        axes.annotate(
            end.name,
            xy=(end.x, end.y),
            xytext=(1.02, place),
            textcoords="axes fraction",
            va="center",
            color=end.colour,
            fontsize=10,
            annotation_clip=False,
        )
