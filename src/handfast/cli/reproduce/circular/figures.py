"""The paper's figures again, as SVG, and what it claims without drawing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast.cli.drawing import COLOURS, LineEnd, as_svg, name_lines, new_figure
from handfast.cli.reproduce.circular.experiments import LADDER, OURS, Order, RingEvaluation
from handfast.engines.hardware.circular.workload import PATTERNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE = (9.0, 4.6)


def over_tuples(made: RingEvaluation, probability: float, order: Order = OURS) -> str:
    """Input throughput over the tuples so far, a line for each number of streams [CMJ Fig. 7]."""
    figure = new_figure(_WIDE)
    axes = figure.add_subplot()
    ends = []
    for number, streams in enumerate(made.scale.streams):
        tuples, rates = made.cost(made.from_empty(streams, probability, order)).over_tuples()
        colour = COLOURS[number]
        axes.plot(tuples, rates, color=colour, linewidth=1.8)
        filled = streams * made.scale.window
        axes.axvline(filled, color=colour, linestyle="--", linewidth=1)
        ends.append(LineEnd(float(tuples[-1]), float(rates[-1]), f"{streams} streams", colour))
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.set_xlabel("tuples so far, of all streams together")
    axes.set_ylabel("tuples a second\n(logarithmic scale)")
    axes.xaxis.set_major_formatter(_thousands)
    axes.yaxis.set_major_formatter(_thousands)
    axes.yaxis.set_minor_formatter(_few)
    axes.grid(alpha=0.3, which="both")
    name_lines(axes, ends)
    return as_svg(figure)


def utilisation(made: RingEvaluation) -> str:
    """The part of their cycles in which stages compare, by order, number of streams and pattern."""
    figure = new_figure((9.0, 4.2))
    panels = figure.subplots(1, len(PATTERNS), sharey=True)
    high = made.scale.probabilities[-1]
    for axes, pattern in zip(panels, PATTERNS, strict=True):
        _bars(axes, made, pattern, high)
        axes.set_title(_TITLES[pattern], fontsize=11)
    panels[0].set_ylabel("part of cycles in which stages compare")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return as_svg(figure)


_TITLES = dict(zip(PATTERNS, ("keys of their own for each pair of neighbours", "one key for all streams"), strict=True))


def _bars(axes: Axes, made: RingEvaluation, pattern: str, probability: float) -> None:
    width = 0.8 / len(LADDER)
    for number, order in enumerate(LADDER):
        shown = [made.cost(made.steady(n, probability, order, pattern)).utilisation for n in made.scale.shown]
        places = [k + (number - (len(LADDER) - 1) / 2) * width for k in range(len(shown))]
        axes.bar(places, shown, width=0.92 * width, color=COLOURS[number], label=order.says)
        for place, value in zip(places, shown, strict=True):
            axes.annotate(
                f"{value:.0%}", (place, value), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7
            )
    axes.set_xticks(range(len(made.scale.shown)), labels=[f"{n} streams" for n in made.scale.shown])
    axes.set_ylim(0, 1.1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(alpha=0.3, axis="y")


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"


def _few(value: float, _: object = None) -> str:
    """The label of a tick between the powers on a logarithmic scale: 2 and 5 have one."""
    return f"{value:,.0f}" if f"{value:e}"[0] in "25" else ""
