"""The page of the reproduction: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from handfast.cli.areas import COMMAND, Areas
from handfast.cli.html import percent, picture_of, table, whole
from handfast.cli.reproduce import printed
from handfast.cli.reproduce.alternatives import combination_rows, ring_rows, stream_rows, tree_rows
from handfast.cli.reproduce.circuits import OPEN, by_level, slots
from handfast.cli.reproduce.claims import Claim
from handfast.cli.reproduce.experiments import Evaluation
from handfast.engines.hardware.options import ADAPTIVE, TREE

_CAPTIONS = {
    "4.5.4": "Maximum input throughput of the baseline, at 100 MHz. The thesis estimates the nested loop as one cycle "
    "for each pair of tuples, whatever matches; the broken line is a nested-loop join as a circuit, which has to wait "
    "when its two units find more results than one a cycle. Bands: from the lowest to the highest over seeds.",
    "5.1.1": "Cycles until every result is out, by the slots of every FIFO, at 100% match.",
    "5.1.2": "The same with buffers that differ by level (Table 5.1), by match rate.",
    "5.2.1": "How full the buffers get when they never fill up, where results are merged halfway to the output. Each "
    "line is the FIFO of one merger. Where some are long and others short at the same time, buffers could be shared.",
    "6.3.5": "Results, and cycles until all of them are out, of a circuit with 16 cores and 128 tuples in each stream. "
    "Both axes have the same scale, so that a circuit that gives a result in every cycle follows the bars.",
    "6.3.6": "Input throughput with the proposed network, at 100 MHz.",
}
_TITLES = {
    "4.5.4": "Figure 4.5.4: throughput of the baseline",
    "5.1.1": "Figure 5.1.1: the size of the buffers",
    "5.1.2": "Figure 5.1.2 and Table 5.1: buffers by level of the tree",
    "5.2.1": "Figure 5.2.1: what is in the buffers",
    "6.3.5": "Figure 6.3.5: results and cycles, 16 cores",
    "6.3.6": "Figure 6.3.6: throughput of the proposed network",
}
_NOT_REPRODUCED = (
    ("clock on a Virtex-6 (Figures 4.5.1 and 6.3.1, “around 150MHz”)", "open tools place nothing on Xilinx parts"),
    ("occupied slices (Tables 4.2 and 6.1, Figure 6.3.4 (a))", "packing into slices is a part of placing"),
    ("milliwatts", "the thesis gives none, and open tools know none"),
    ("lines that are only drawn (all figures)", "no number of theirs is printed; they are ours alone here"),
)


def page(
    made: Evaluation,
    claims: Sequence[Claim],
    pictures: Mapping[str, str],
    areas: Areas | None,
    area_picture: str | None,
    setting: Mapping[str, str],
) -> str:
    """The whole page.

    Args:
        made: All runs.
        claims: The comparison with what is printed.
        pictures: The figures as SVG, by their number.
        areas: What synthesis counted, if anybody has run it.
        area_picture: The same as SVG.
        setting: The machine and the versions.
    """
    scale = made.scale
    parts = [
        "<h1>The evaluation of the handshake join circuit, again</h1>",
        f"<p>Chapters 4 to 6 of the thesis [OGE], run on handfast's cycle-accurate model of its own circuits: "
        f"{scale.cores} cores of {scale.segment} tuples, streams of {scale.tuples} tuples. With a match rate <i>p</i>, "
        "<i>p</i> · <i>n</i> of the <i>n</i> tuples of each stream match each other, so results go with its square. "
        "Given as printed is only what the thesis prints as a number.</p>",
    ]
    if not scale.is_printed:
        parts.append(
            "<p><b>A quick run on a smaller circuit, to see that it works: what is printed is of "
            f"{printed.CORES} cores, and is not compared.</b></p>"
        )
    parts += ["<h2>Printed and ours</h2>", _claims(claims)]
    for number, picture in pictures.items():
        parts += [f"<h2>{escape(_TITLES[number])}</h2>", picture_of(picture, _CAPTIONS[number])]
        if number == "5.1.2":
            parts.append(_buffers(made))
    parts += _areas(areas, area_picture)
    parts += _choices(made)
    parts += [
        "<h2>What cannot be reproduced</h2>",
        table(("what", "why"), _NOT_REPRODUCED, words=2),
        "<h2>How this page was made</h2>",
        table(("", ""), setting.items(), words=2),
    ]
    return whole("The handshake join circuit, again", parts)


def _claims(claims: Sequence[Claim]) -> str:
    rows = [(own.what, own.where, own.printed or "—", own.ours, percent(own.difference), own.verdict) for own in claims]
    return table(("what", "in the thesis", "printed", "ours", "difference", ""), rows, words=2, verdict=True)


def _buffers(made: Evaluation) -> str:
    """Table 5.1: slots by level, and of all FIFOs together."""
    configurations = [by_level(made.tree, own) for own in printed.TABLE_5_1.values()]
    levels = [own.network_buffer for own in configurations]
    depth = len(levels[0]) if isinstance(levels[0], tuple) else 0
    rows = [
        (f"mergers at depth {k}", *(f"{own[k]:,}" for own in levels if isinstance(own, tuple))) for k in range(depth)
    ]
    rows.append(("join cores", *(f"{own.core_buffer:,}" for own in configurations)))
    rows.append(("all together", *(f"{slots(own):,}" for own in configurations)))
    return table(("slots", *printed.TABLE_5_1), rows, words=1)


def _areas(areas: Areas | None, picture: str | None) -> list[str]:
    parts = ["<h2>Tables 4.2 and 6.1, Figures 4.5.1–2 and 6.3.1–4: area and clock</h2>"]
    if areas is None or picture is None:
        return [
            *parts,
            f"<p>Nobody has synthesised the circuits here yet: <code>{escape(COMMAND)}</code> does that. "
            "Printed are:</p>",
            *(_printed_area(title, wanted) for title, wanted in _AREA_TABLES),
        ]
    parts.append(
        picture_of(
            picture,
            "Cells that Yosys counts for the same family (xc6v), and those printed. Ours have results of two places "
            "instead of 96 bits, and FIFOs in LUTs instead of block RAM.",
        )
    )
    for network, (title, given) in zip((TREE, ADAPTIVE), _AREA_TABLES, strict=True):
        own = areas[network]
        rows = []
        for cores, wanted in given.items():
            ours = [(own.registers.get(cores), wanted.registers), (own.luts.get(cores), wanted.luts)]
            cells = [f"{cores}"]
            for count, printed_count in ours:
                difference = count / printed_count - 1 if count is not None else None
                cells += [f"{printed_count:,}", f"{count:,}" if count is not None else "—", percent(difference, 0)]
            rows.append((*cells, f"{wanted.slices:,}"))
        head = ("cores", "registers, printed", "ours", "", "LUTs, printed", "ours", "", "slices, printed")
        parts += [f"<h3>{escape(title)}</h3>", table(head, rows, words=1)]
        lines = {"LUTs": own.lut_line, "registers": own.register_line}
        said = "; ".join(f"{name}: {line}" for name, line in lines.items())
        parts.append(f'<p class="note">Ours as straight lines over n cores: {escape(said)}.</p>')
    clocks = [
        (network, f"{cores}", f"{mhz:.0f} MHz", f"{spread:.1f} MHz")
        for network, own in areas.items()
        for cores, (mhz, spread) in sorted(own.clock.items())
    ]
    parts.append("<h3>Clock</h3>")
    if not clocks:
        parts.append(
            f"<p>Nobody has estimated it here: <code>{escape(COMMAND)} --clock 2 4</code> does that, on an ECP5.</p>"
        )
    else:
        parts += [
            "<p>The thesis' clock is that of a Virtex-6, for which there is no open tool. nextpnr places the same "
            "circuits on an ECP5, another family, so these figures serve to compare circuits with each other:</p>",
            table(("network", "cores", "clock, median over seeds", "spread"), clocks, words=1),
        ]
    return parts


_AREA_TABLES = (
    ("Table 4.2: the baseline", printed.TABLE_4_2),
    ("Table 6.1: the proposed circuit", printed.TABLE_6_1),
)


def _printed_area(title: str, wanted: Mapping[int, printed.Area]) -> str:
    rows = [(f"{n}", f"{own.registers:,}", f"{own.luts:,}", f"{own.slices:,}") for n, own in wanted.items()]
    return f"<h3>{escape(title)}</h3>" + table(("cores", "registers", "LUTs", "slices"), rows, words=1)


def _choices(made: Evaluation) -> list[str]:
    sizes = [f"FIFOs of\N{NO-BREAK SPACE}{size}" for size in printed.CYCLES]
    return [
        "<h2>What the thesis does not say, and what else it could be</h2>",
        "<p>The cycles printed for FIFOs of 8 and of 16 decide two things: a result takes the output channel 4 cycles, "
        "and empty steps flush the chain. They hardly depend on how mergers and FIFOs work in detail. So of the "
        "combinations below those are possible (✔) with which also the printed throughput comes out: the proposed "
        f"circuit is more than {printed.OVER_BASELINE} times faster than the baseline, and at "
        f"{printed.CROSSING:.0%} match the baseline is not faster than the nested loop. Of these, all figures above go "
        f"by the one that is nearest to {printed.OVER_BASELINE}. What is printed for FIFOs of 4 has no part in it.</p>",
        table(
            (
                *(choice.name for choice in OPEN),
                *(f"FIFOs of\N{NO-BREAK SPACE}{size}" for size in printed.FIXED_FROM),
                "÷ proposed",
                "÷ nested loop",
                "",
                "FIFOs of\N{NO-BREAK SPACE}4",
            ),
            combination_rows(made),
            words=len(OPEN),
            shaded={0},
        ),
        '<p class="note">Cycles at 100% match; of the baseline with 8 slots behind cores and 4 in mergers ÷ those '
        f"of the proposed circuit at 100%; cycles of the nested loop ÷ those of the baseline at {printed.CROSSING:.0%}."
        "</p>",
        "<p>Each choice by itself, all others as they are; the first line, shaded, is what was chosen.</p>",
        "<h3>Baseline at 100% match</h3>",
        table(("choice", "the text says", "", *sizes), tree_rows(made), words=3, shaded=_chosen(tree_rows(made))),
        "<h3>Proposed circuit at 100% match</h3>",
        table(
            ("choice", "the text says", "", "cycles", "cycles a result"),
            ring_rows(made),
            words=3,
            shaded=_chosen(ring_rows(made)),
        ),
        "<h3>Inputs, at 40% match</h3>",
        table(("input", "baseline", "proposed"), stream_rows(made), words=1),
    ]


def _chosen(rows: Sequence[Sequence[str]]) -> set[int]:
    """The lines that begin a choice."""
    return {number for number, row in enumerate(rows) if row[0]}
