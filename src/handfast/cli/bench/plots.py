"""The pictures of the benchmarks: plain data in, a PNG out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handfast.cli.drawing import new_figure, save_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURED, _MODELLED, _LAW, _PAPER = "#0b6e99", "#d1495b", "#8d99ae", "#2b2d42"
_BARS = "#0b6e99"
_CPUS = ("#0b6e99", "#d1495b", "#edae49", "#00798c")  # by how many there are
_LEAST_SECONDS = 1e-6  # a logarithmic axis has no zero, and a clock that reads it saw less than this

Series = Mapping[int, float]


def scaling(path: Path, measured: Series, modelled: Series, law: Series, paper: Series, window: str) -> None:
    """Draw tuples a second and stream by cores, the rate on a square scale as the work grows [HSJ Fig. 16].

    A small picture inside shows the cores that were measured, or that the paper had: beside a thousand they vanish.
    """
    figure = new_figure()
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot()
    everything = [measured, modelled, law, paper]
    ticks = _powers(core for series in everything for core in series)
    _rates(axes, *everything)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, labels=[_thousands(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("cores (logarithmic scale)")
    axes.set_ylabel("tuples a second and stream (square scale)")
    axes.set_title(f"The rate that a chain of so many cores sustains, with windows of {window}")
    near = max((8, *_powers([*measured, *paper])))
    if 4 * near <= ticks[-1]:
        inside = axes.inset_axes((0.12, 0.42, 0.45, 0.36))
        _rates(inside, *({core: rate for core, rate in series.items() if core <= near} for series in everything))
        inside.set_xlim(0, 1.03 * near)
        inside.xaxis.set_major_locator(MaxNLocator(integer=True))
        inside.set_title(f"up to {near} cores (linear scale)", fontsize=9)
        inside.tick_params(labelsize=8)
    axes.legend(loc="upper left", ncols=2, frameon=False)
    save_png(figure, path)


def bars(path: Path, title: str, ylabel: str, values: Mapping[str, float]) -> None:
    """Draw one bar for every name, with its value: SIMD on and off [HSJ Fig. 15], the local joins [000 Fig. 9]."""
    figure = new_figure()
    axes = figure.add_subplot()
    drawn = axes.bar(list(values), list(values.values()), width=0.55, color=_BARS, label="measured")
    axes.bar_label(drawn, labels=[_short(value) for value in values.values()], padding=3)
    axes.margins(y=0.12)
    axes.set_xlim(-0.75, len(values) - 0.25)
    axes.yaxis.set_major_formatter(_thousands)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.set_axisbelow(True)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="best", frameon=False)
    save_png(figure, path)


def bubble(path: Path, by_age: NDArray[Any], by_size: NDArray[Any], times: NDArray[Any]) -> None:
    """Draw where a burst's tuples are, core by core over time, with both ways of forwarding [000 §3.6].

    The segments are arrays by time and core, as `model.bubble` gives them.
    """
    figure = new_figure()
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    most = max(2, int(by_age.max()), int(by_size.max()))
    least = max(1, most // 32)  # what is smaller has one colour: a few tuples more or less are not what is seen here
    colours = LogNorm(least, most, clip=True)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, sizes, title in ((left, by_age, "by age: the bubble travels"), (right, by_size, "by size: it spreads")):
        drawn = axes.pcolormesh(
            times, np.arange(sizes.shape[1]), np.maximum(sizes.T, least), norm=colours, shading="nearest"
        )
        axes.set_title(f"Forwarded {title}", fontsize=11)
        axes.set_xlabel("steps since the burst entered")
    left.set_ylabel("core")
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    ticks = [least * 2**power for power in range((most // least).bit_length())]
    bar = figure.colorbar(drawn, ax=[left, right], label="tuples in the segment (logarithmic scale)")
    bar.set_ticks(ticks, labels=[f"≤ {ticks[0]:,}", *map(_thousands, ticks[1:])])
    bar.minorticks_off()
    figure.suptitle("Where the tuples are when a burst enters a time-based window (modelled)")
    save_png(figure, path)


def latency(path: Path, series: Mapping[str, ArrayLike]) -> None:
    """Draw what share of the matches was given within so many seconds of the second tuple's arrival, by mode."""
    figure = new_figure()
    axes = figure.add_subplot()
    for name, seconds in series.items():
        ordered = np.maximum(np.sort(np.asarray(seconds, dtype=float)), _LEAST_SECONDS)
        shares = np.arange(1, len(ordered) + 1) / max(1, len(ordered))
        (line,) = axes.step(ordered, shares, where="post", linewidth=2, label=_with_median(name, ordered))
        if len(ordered):
            axes.plot([np.median(ordered)], [0.5], marker="o", color=line.get_color())
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_duration)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("from the second tuple's arrival to the match")
    axes.set_ylabel("share of the matches")
    axes.set_title("How soon a match is given, by way of forwarding (measured)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save_png(figure, path)


def ring(
    path: Path, measured: Mapping[int, Mapping[int, ArrayLike]], modelled: Mapping[int, Series], every: Series
) -> None:
    """Draw new rows a second by the number of streams, which is that of the stages [CMJ Fig. 7].

    `measured` and `modelled` are by the number of CPUs, and then of streams; `every` has a CPU for each stage.
    """
    figure = new_figure()
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_subplot()
    axes.plot(*_points(every), color=_LAW, linestyle=(0, (2, 2)), label="modelled, a CPU for each stage")
    for colour, (cpus, turns) in zip(_CPUS, sorted(measured.items()), strict=False):
        name = f"{cpus} CPU{'s' * (cpus > 1)}"
        if cpus in modelled:
            axes.plot(*_points(modelled[cpus]), color=colour, linestyle="--", label=f"modelled, {name}")
        low, middle, high = (
            np.array([np.quantile(np.asarray(turns[n], dtype=float), share) for n in sorted(turns)])
            for share in (0.25, 0.5, 0.75)
        )
        spread = np.array([middle - low, high - middle])
        shown = f"measured, {name}: median and quartiles"
        axes.errorbar(
            sorted(turns), middle, spread, color=colour, linestyle="", marker="o", ms=7, capsize=4, label=shown
        )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(_thousands)
    axes.set_xlabel("streams, each with a stage of its own")
    axes.set_ylabel("new rows a second, of all streams")
    axes.set_title("The rate of a ring of stages where rows seldom match")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", frameon=False)
    save_png(figure, path)


# -- pieces --------------------------------------------------------------------------------------


def _rates(axes: Axes, measured: Series, modelled: Series, law: Series, paper: Series) -> None:
    """The four series: what is computed as lines, what was observed as markers."""
    if law:
        axes.plot(*_points(law), color=_LAW, linestyle=(0, (2, 2)), label="square-root law, modelled")
    if modelled:
        axes.plot(*_points(modelled), color=_MODELLED, linestyle="--", linewidth=2, label="handfast, modelled")
    if paper:
        axes.plot(*_points(paper), color=_PAPER, linestyle="", marker="s", label="handshake join, paper")
    if measured:
        axes.plot(*_points(measured), color=_MEASURED, linestyle="", marker="o", ms=8, label="handfast, measured")
    top = 1.05 * max((rate for series in (measured, modelled, law, paper) for rate in series.values()), default=1.0)
    # equal lengths of the axis are equal work: it grows with the square of the rate
    axes.set_yscale("function", functions=(np.square, lambda work: np.sqrt(np.maximum(work, 0))))
    axes.set_ylim(0, top)
    ticks = [_round(top * (fifth / 5) ** 0.5) for fifth in range(6)]
    axes.set_yticks([tick for tick in ticks if tick <= top])
    axes.yaxis.set_major_formatter(_thousands)
    axes.grid(alpha=0.3)


def _points(series: Series) -> tuple[list[int], list[float]]:
    return sorted(series), [series[cores] for cores in sorted(series)]


def _powers(cores: Iterable[int]) -> list[int]:
    """The powers of two from the one below all of these to the one above."""
    known = list(cores) or [1]
    return [2**power for power in range(min(known).bit_length() - 1, (max(known) - 1).bit_length() + 1)]


def _round(value: float) -> float:
    """The value with two digits."""
    return float(f"{value:.2g}")


def _with_median(name: str, ordered: NDArray[np.float64]) -> str:
    return f"{name}: half within {_duration(float(np.median(ordered)))}" if len(ordered) else f"{name}: no match"


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}"  # the second argument is the place of a tick


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _duration(seconds: float, _: object = None) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
