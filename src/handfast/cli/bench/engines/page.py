"""The page that puts the engines side by side: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from handfast.cli.bench.engines.result import Compared
from handfast.cli.bench.engines.seen import CIRCUIT, LOCAL, ORACLE, SPARK, Seen, rate_of, time_of
from handfast.cli.drawing import COLOURS, as_svg, new_figure
from handfast.cli.html import picture_of, preformatted, table, whole

_COLOURS = dict(zip((ORACLE, LOCAL, SPARK, CIRCUIT), COLOURS[-1:] + COLOURS[:3], strict=True))
_MEANS = (
    (
        ORACLE,
        "The definition of the join, in plain Python, row by row. It is what the others are held against, and not made "
        "to be fast. Its rows are there from the beginning, so it has no latency.",
    ),
    (
        LOCAL,
        "Rate: all rows as tables, the median of five turns after one that compiles. Latency: a session is given row "
        "by row, and a match's wait is that of the call that gives its last row.",
    ),
    (
        SPARK,
        "Streaming, a file of each stream in a batch. Rate and latency are those of the second half of the batches; a "
        "match waits until its batch has ended. With so few rows this is what a batch costs whatever is in it: "
        "`handfast demo` shows a million rows.",
    ),
    (
        CIRCUIT,
        "The circuit itself, simulated by Verilator. Seconds are its cycles at the clock that was asked for, and not "
        "those that the simulator takes on this machine, which is far slower. Rate: of the second half of the rows, "
        "fed as fast as it takes them. Latency: from the cycle in which it takes a match's last row to that in which "
        "the match leaves; in a chain, two rows meet when those that come later have pushed them past each other.",
    ),
    (
        "energy",
        "No engine's energy is measured. The circuit's figure is one of activity: bits of registers and outputs of "
        "RAMs that change for a row, counted over the whole run. It compares circuits; wires and the clock are not in "
        "it.",
    ),
)


def page(compared: Sequence[Compared], setting: Mapping[str, str]) -> str:
    """The whole page."""
    parts = [
        "<h1>One join on every engine</h1>",
        "<p>The same rows and the same join on the oracle, the local engine, Spark and a circuit. Matches are compared "
        "as multisets with the oracle's. Rates and latencies are on logarithmic scales, and they do not mean the same "
        "on every engine; what they mean stands at the end.</p>",
    ]
    for own in compared:
        parts += _workload(own)
    parts += [
        "<h2>What the figures mean</h2>",
        table(("engine", ""), [(name, says) for name, says in _MEANS], words=2),
        "<h2>How this page was made</h2>",
        table(("", ""), setting.items(), words=2),
    ]
    return whole("One join on every engine", parts)


def _workload(own: Compared) -> list[str]:
    work = own.workload
    count = {2: "Two streams", 3: "Three streams"}[work.streams]
    expected = len(own.seen[0].matches)
    head = ("engine", "what ran", "matches", "", "rows a second", "latency, median", "99%", "work")
    rows = [
        (
            seen.engine,
            seen.ran,
            f"{len(seen.matches):,}",
            own.verdict(seen),
            rate_of(seen.rate),
            time_of(seen.latency.median) if seen.latency else "—",
            time_of(seen.latency.most) if seen.latency else "—",
            seen.work or "—",
        )
        for seen in own.seen
    ]
    facts = (
        ("join", work.on),
        ("windows", f"{work.spec.streams[0].window}: {work.window:,} rows of each stream"),
        ("rows", f"{work.rows:,} of each stream, which bring one in turn; {expected:,} matches"),
    )
    return [
        f"<h2>{escape(count)}</h2>",
        table(("", ""), facts, words=2),
        table(head, rows, words=2),
        picture_of(_bars(own.seen), "Rows of all streams in a second, and the median latency of a match."),
        "<h3>The circuit</h3>",
        preformatted(own.circuit),
    ]


def _bars(seen: Sequence[Seen]) -> str:
    """Rates, and latencies of those that have one, a bar for each engine."""
    figure = new_figure((9.0, 2.8))
    rates, waits = figure.subplots(1, 2)
    for axes, says, values in (
        (rates, "rows a second", {own.engine: own.rate for own in seen}),
        (
            waits,
            "seconds from the last row to the match",
            {own.engine: own.latency.median for own in seen if own.latency},
        ),
    ):
        names = list(values)
        drawn = axes.barh(names, list(values.values()), color=[_COLOURS[name] for name in names], height=0.6)
        axes.bar_label(
            drawn, labels=[rate_of(v) if axes is rates else time_of(v) for v in values.values()], padding=3, fontsize=9
        )
        axes.set_xscale("log")
        axes.margins(x=0.35)
        axes.invert_yaxis()
        axes.set_xlabel(says, fontsize=9)
        axes.tick_params(labelsize=9)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    return as_svg(figure)
