"""The thesis' figures again, as SVG: what is ours, and beside it only what the thesis prints as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handfast.cli.areas import Areas
from handfast.cli.drawing import COLOURS, MARKERS, MUTED, LineEnd, as_svg, name_lines, new_figure
from handfast.cli.reproduce import printed
from handfast.cli.reproduce.circuits import by_level, uniform
from handfast.cli.reproduce.claims import crossing, estimate
from handfast.cli.reproduce.experiments import TRACED_LEVEL, Evaluation, Job, Spread
from handfast.engines.hardware.options import ADAPTIVE, TREE
from handfast.engines.hardware.workload import BURST, GAUSSIAN, RANDOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE = (9.0, 4.6)
_LOOP, _BASE, _RING, _RING_BURST = MUTED, COLOURS[1], COLOURS[0], COLOURS[3]
_TITLES = {RANDOM: "random", GAUSSIAN: "Gaussian", BURST: "burst"}


def throughput(made: Evaluation, *, with_proposed: bool) -> str:
    """Tuples a second by match rate: the baseline and the nested loop [OGE Fig. 4.5.4], or all [OGE Fig. 6.3.6]."""
    figure = new_figure(_WIDE)
    axes = figure.add_subplot()
    rates = made.scale.rates
    ends = [_flat(axes, made, rates), _spread(axes, made, rates, made.loop, "nested loop, our circuit", _LOOP, "--")]
    ends.append(_spread(axes, made, rates, made.tree, "baseline", _BASE))
    if with_proposed:
        ends.append(_spread(axes, made, rates, made.ring, "proposed, random", _RING))
        bursts = [_million(made, made.cycles(made.burst(made.ring, rate))) for rate in rates]
        axes.plot(rates, bursts, color=_RING_BURST, marker="s", linewidth=2)
        ends.append(LineEnd(rates[-1], bursts[-1], "proposed, burst", _RING_BURST))
    where = crossing(made)
    if where is not None:
        level = _million(made, estimate(made))
        axes.plot([where], [level], marker="o", ms=11, mfc="none", mec="#2b2d42")
        axes.annotate(
            f"they cross at {where:.1%}",
            (where, level),
            xytext=(14, 30),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": "#2b2d42"},
            fontsize=10,
        )
    axes.set_yscale("log")
    _as_rate(axes)
    axes.set_ylabel("million tuples a second and stream\n(logarithmic scale)")
    for lines in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        lines(_one_two_five)
    name_lines(axes, ends)
    return as_svg(figure)


def buffer_sizes(made: Evaluation) -> str:
    """Cycles by the slots of every FIFO [OGE Fig. 5.1.1], with the three that are printed."""
    figure = new_figure(_WIDE)
    axes = figure.add_subplot()
    sizes = made.scale.buffers
    cycles = [made.cycles(Job(uniform(made.tree, size), made.everything())) for size in sizes]
    axes.plot(sizes, cycles, color=_BASE, marker="o", linewidth=2)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, labels=[f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 1.15 * max(cycles))
    ends = [LineEnd(sizes[-1], cycles[-1], "ours", _BASE)]
    if made.scale.is_printed:
        axes.plot(list(printed.CYCLES), list(printed.CYCLES.values()), "x", ms=11, mew=2.5, color="#2b2d42")
        size, wanted = next(iter(printed.CYCLES.items()))
        axes.annotate(
            f"×  printed: {', '.join(f'{value:,}' for value in printed.CYCLES.values())}",
            (size, wanted),
            xytext=(28, -2),
            textcoords="offset points",
            fontsize=10,
        )
    axes.yaxis.set_major_formatter(_thousands)
    axes.set_xlabel("slots of every FIFO (logarithmic scale)")
    axes.set_ylabel("cycles until every result is out")
    axes.grid(alpha=0.3)
    name_lines(axes, ends)
    return as_svg(figure)


def buffer_levels(made: Evaluation) -> str:
    """Cycles by match rate for buffers that differ by level [OGE Fig. 5.1.2]."""
    figure = new_figure(_WIDE)
    axes = figure.add_subplot()
    rates = made.scale.few_rates
    ends = []
    for number, (name, buffers) in enumerate(printed.TABLE_5_1.items()):
        spreads = [made.spread(made.random(by_level(made.tree, buffers), rate)) for rate in rates]
        ends.append(_line(axes, rates, spreads, name, COLOURS[number], MARKERS[number]))
    _as_rate(axes)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(_thousands)
    axes.set_ylabel("cycles until every result is out")
    name_lines(axes, ends)
    return as_svg(figure)


def traces(made: Evaluation) -> str:
    """How full the FIFOs of one level are over time, for three kinds of input at two match rates [OGE Fig. 5.2.1]."""
    figure = new_figure((9.0, 8.4))
    import matplotlib.lines
    import matplotlib.ticker

    rates = sorted({rate for _, rate in made.traces})
    grid = figure.subplots(len(_TITLES), len(rates), sharex="col", sharey="col", squeeze=False)
    count = 2**TRACED_LEVEL
    colours = [matplotlib.colormaps["viridis"](k / (count - 1) * 0.92) for k in range(count)]
    for row, (pattern, title) in enumerate(_TITLES.items()):
        for column, rate in enumerate(rates):
            axes, trace = grid[row][column], made.traces[pattern, rate]
            for merger in range(count):
                axes.plot(trace.cycles, trace.levels[:, merger], color=colours[merger], linewidth=1.3)
            axes.set_title(f"{title}, {rate:.0%} match", fontsize=11)
            axes.yaxis.set_major_formatter(_thousands)
            axes.xaxis.set_major_formatter(_thousands)
            axes.grid(alpha=0.3)
            if row == len(_TITLES) - 1:
                axes.set_xlabel("cycles")
        grid[row][0].set_ylabel("results in the FIFO")
    for column, axes in enumerate(grid[0]):  # a column has one scale
        axes.set_ylim(bottom=0)
        shown = [made.traces[pattern, rates[column]] for pattern in _TITLES]
        last = max((int(own.cycles[own.levels.any(axis=1)].max(initial=0)) for own in shown), default=0)
        axes.set_xlim(0, 1.1 * last + 1)  # behind it all of these are empty
        axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    handles = [matplotlib.lines.Line2D([], [], color=colours[k]) for k in range(count)]
    names = [f"{k + 1}" for k in range(count)]
    figure.legend(
        handles,
        names,
        loc="outside lower center",
        ncols=count,
        frameon=False,
        title=f"merger at depth {TRACED_LEVEL}, from the left end of the chain to the right",
    )
    return as_svg(figure)


def results_and_cycles(made: Evaluation) -> str:
    """Results as bars and cycles as lines, by match rate, of the small circuit [OGE Fig. 6.3.5]."""
    figure = new_figure(_WIDE)
    axes = figure.add_subplot()
    rates = [rate for rate in made.scale.rates if round(rate * 10) == round(rate * 100) / 10]
    results = [made.costs[made.random(made.small_ring, rate)[0]].results for rate in rates]
    bars = axes.twinx()
    bars.bar(rates, results, width=0.05, color="#d8dee6", zorder=0)
    bars.set_ylabel("results (bars)")
    axes.set_zorder(bars.get_zorder() + 1)
    axes.patch.set_visible(False)
    ends = []
    for name, shape, colour, marker in (
        ("baseline", made.small_tree, _BASE, "s"),
        ("proposed", made.small_ring, _RING, "o"),
    ):
        spreads = [made.spread(made.random(shape, rate)) for rate in rates]
        ends.append(_line(axes, rates, spreads, name, colour, marker))
    _as_rate(axes)
    top = 1.12 * max(end.y for end in ends)
    axes.set_ylim(0, top)
    bars.set_ylim(0, top)  # one scale for both: a result a cycle is where a line touches its bar
    for each in (axes, bars):
        each.yaxis.set_major_formatter(_thousands)
    axes.set_ylabel("cycles until every result is out (lines)")
    for end in ends:
        axes.annotate(
            end.name, (end.x, end.y), xytext=(-22, 6), textcoords="offset points", ha="right", color=end.colour
        )
    return as_svg(figure)


def areas(found: Areas) -> str:
    """LUTs and registers by cores, ours and printed [OGE Tables 4.2 and 6.1, Fig. 6.3.3]."""
    figure = new_figure((9.0, 4.6))
    panels = figure.subplots(1, 2)
    for axes, what in zip(panels, ("luts", "registers"), strict=True):
        ends = []
        for number, (network, table) in enumerate(((TREE, printed.TABLE_4_2), (ADAPTIVE, printed.TABLE_6_1))):
            colour = (_BASE, _RING)[number]
            ours = getattr(found[network], what)
            most = max(ours)
            wanted = {n: getattr(own, what) for n, own in table.items() if n <= most}
            axes.plot(list(ours), list(ours.values()), color=colour, marker="o", linewidth=2)
            axes.plot(list(wanted), list(wanted.values()), color=colour, marker="x", linestyle=":", mew=2)
            ends.append(LineEnd(most, ours[most], f"{network}, ours", colour))
            ends.append(LineEnd(max(wanted), wanted[max(wanted)], f"{network}, printed", colour))
        axes.set_xlabel("cores")
        axes.set_title("LUTs" if what == "luts" else "registers (flip-flops)", fontsize=11)
        axes.yaxis.set_major_formatter(_thousands)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        name_lines(axes, ends)
    return as_svg(figure)


# -- pieces ----------------------------------------------------------------------------------------------------------


def _million(made: Evaluation, cycles: float) -> float:
    """Tuples a second and stream, in millions, of a run of so many cycles."""
    return made.scale.tuples * printed.CLOCK_MHZ / cycles


def _flat(axes: Axes, made: Evaluation, rates: Sequence[float]) -> LineEnd:
    level = _million(made, estimate(made))
    axes.plot(rates, [level] * len(rates), color=_LOOP, linewidth=2)
    return LineEnd(rates[-1], level, "nested loop, as estimated", _LOOP)


def _spread(
    axes: Axes, made: Evaluation, rates: Sequence[float], shape: Any, name: str, colour: str, style: str = "-"
) -> LineEnd:
    """The throughput of a circuit with random inputs."""
    spreads = [made.spread(made.random(shape, rate)) for rate in rates]
    inverse = [
        Spread(_million(made, own.median), *(_million(made, cycles) for cycles in (own.high, own.low)))
        for own in spreads
    ]
    return _line(axes, rates, inverse, name, colour, "" if style != "-" else "o", style)


def _line(
    axes: Axes,
    xs: Sequence[float],
    spreads: Sequence[Spread],
    name: str,
    colour: str,
    marker: str,
    style: str = "-",
) -> LineEnd:
    middle = [own.median for own in spreads]
    axes.plot(xs, middle, color=colour, marker=marker, linestyle=style, linewidth=2)
    axes.fill_between(xs, [own.low for own in spreads], [own.high for own in spreads], color=colour, alpha=0.15)
    return LineEnd(xs[-1], middle[-1], name, colour)


def _as_rate(axes: Axes) -> None:
    axes.set_xlabel("match rate")
    axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:.0%}")
    axes.grid(alpha=0.3)


def _one_two_five(value: float, _: object = None) -> str:
    """The label of a tick on a logarithmic scale; of the ticks between the powers, 2 and 5 have one."""
    return f"{value:g}" if f"{value:e}"[0] in "125" else ""


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"


Figure = Callable[[Evaluation], str]
FIGURES: Mapping[str, Figure] = {
    "4.5.4": lambda made: throughput(made, with_proposed=False),
    "5.1.1": buffer_sizes,
    "5.1.2": buffer_levels,
    "5.2.1": traces,
    "6.3.5": results_and_cycles,
    "6.3.6": lambda made: throughput(made, with_proposed=True),
}


def check() -> None:
    """Refuse to go on without what draws."""
    new_figure()
