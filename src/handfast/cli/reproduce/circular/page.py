"""The page about rings: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from handfast.cli.html import percent, picture_of, table, whole
from handfast.cli.reproduce.circular import figures
from handfast.cli.reproduce.circular.experiments import (
    LADDER,
    PAPER,
    PRINTED_PROBABILITY,
    WINDOW,
    Cost,
    RingEvaluation,
)
from handfast.cli.reproduce.claims import Claim
from handfast.engines.hardware.circular.workload import NEIGHBOURS, ONE_KEY
from handfast.engines.hardware.stashed.shape import LineShape

_FIGURES = "abc"  # of the paper's Figure 7, from the lowest match probability to the highest
_NOT_REPRODUCED = (
    ("match probabilities of Figures 7a and 7b", "the paper does not print them; those here are ours"),
    ("lines that are only drawn (all of Figure 7)", "no number of theirs is printed; they are ours alone here"),
    ("the keys of the inputs", "the paper says that the probability is that of “any two consecutive tuples”, no more"),
    ("dropped intermediates", 'no circuit here drops any; with admission="drop" it does, and counts them'),
)


def page(made: RingEvaluation, claims: Sequence[Claim], setting: Mapping[str, str]) -> str:
    """The whole page."""
    scale = made.scale
    low, high = scale.probabilities[0], scale.probabilities[-1]
    parts = [
        "<h1>The circular pipeline for joins of several streams, again</h1>",
        "<p>Figure 7 of the paper [CMJ] and what it claims, run on handfast's cycle-accurate model of its own circuits "
        f"at 100 MHz: windows of {scale.window:,} rows, streams that bring a tuple in turn. Two tuples of neighbouring "
        "streams match with the probability <i>mp</i>, so a tuple finds <i>mp</i> · <i>w</i> partners in a window of "
        "<i>w</i> rows. Given as printed is only what the paper prints.</p>",
    ]
    if not scale.is_printed:
        parts.append(
            f"<p><b>A quick run with smaller windows, to see that it works; the paper's have {WINDOW:,} rows.</b></p>"
        )
    parts += ["<h2>The paper and ours</h2>", _claims(claims)]
    for number, probability in enumerate(scale.probabilities):
        name = f"mp {probability:g}"
        if number < len(_FIGURES):
            name = f"Figure 7{_FIGURES[number]}: {name}"
        if probability == PRINTED_PROBABILITY:
            name += ", as printed"
        caption = (
            "Input throughput, of all streams together. Broken lines: all windows are full, N · w tuples have come. "
            "Before that, scans are shorter."
        )
        parts += [f"<h2>{escape(name)}</h2>", picture_of(figures.over_tuples(made, probability), caption)]
    parts += [
        f"<h2>The same with the paper's order: mp {high:g}</h2>",
        "<p>In the paper, a stage takes intermediates before new tuples, and order control is for as many tuples as "
        "there are stages. So it is here, with one slot for the intermediates of each hop, and without dropping "
        "any.</p>",
        picture_of(figures.over_tuples(made, high, PAPER), f"Input throughput; {PAPER.says}."),
        "<h2>Against the formula</h2>",
        "<p>A scan takes <i>w</i> cycles, and a tuple Σ (<i>mp</i> · <i>w</i>)<sup>k</sup> scans, for k from 0 to "
        "N − 2. So if all N stages always compare, N · <i>f</i> / (<i>w</i> · Σ (<i>mp</i> · <i>w</i>)<sup>k</sup>) "
        "tuples enter in a second. Ours with full windows; the last column is the part of their cycles in which "
        "stages compare.</p>",
        _formula(made),
        f"<h2>Why stages stand still, and what helps: mp {high:g}</h2>",
        picture_of(
            figures.utilisation(made),
            "The part of their cycles in which stages compare: by which item is next, how many tuples may be under "
            "way, and how many slots there are for the intermediates of each hop at each stage.",
        ),
        "<p>All intermediates that a tuple has after a hop are at one stage. If those of the highest hop are always "
        "next, stages work off one burst after another, depth first, and the stages behind a burst fill the one queue "
        "that its stage does not serve. Longer queues do not help then. With hops in turn every queue is served, and "
        "as the circuit is free of deadlock whichever hop is next, nothing is lost. Where all streams have one key, "
        "the work is far less even: intermediates of a tuple that finds many partners all find as many again.</p>",
        _orders(made),
        "<h2>Comparing several slots at a time</h2>",
        "<p>A window is cut into as many banks of RAM. Tuples a second with full windows:</p>",
        _comparisons(made, (low, high)),
        "<h2>Stashed-MJ against Circular-MJ: three streams, one key</h2>",
        "<p>A line of two stages: the first has two windows and keeps their matching pairs in a stash, so that a tuple "
        "of the third stream probes the pairs instead of scanning a window. A stash that is too small for the pairs in "
        "their windows overwrites some that could still match; then they are computed again. Scan cycles of all stages "
        "together, from empty windows on until twice as many tuples have come as fill them; tuples a second at the "
        "end. The stash saves comparisons, not time: one scanner serves two windows and the stash, so the first stage "
        "is busy while the second waits, and two stages take in fewer tuples than three, also for each stage.</p>",
        _stashed(made),
        "<h2>What cannot be reproduced</h2>",
        table(("what", "why"), _NOT_REPRODUCED, words=2),
        "<h2>How this page was made</h2>",
        table(("", ""), setting.items(), words=2),
    ]
    return whole("The circular pipeline, again", parts)


def _claims(claims: Sequence[Claim]) -> str:
    rows = [
        (own.what, own.where, own.printed or "—", own.ours, percent(own.difference, 2), own.verdict) for own in claims
    ]
    return table(("what", "in the paper", "to be expected", "ours", "difference", ""), rows, words=3, verdict=True)


def _formula(made: RingEvaluation) -> str:
    rows = []
    for probability in made.scale.probabilities:
        for streams in made.scale.streams:
            cost, bound = made.cost(made.steady(streams, probability)), made.bound(streams, probability)
            rows.append(
                (
                    f"{probability:g}",
                    f"{streams}",
                    f"{bound:,.0f}",
                    f"{cost.throughput:,.0f}",
                    f"{cost.throughput / bound:.3f}",
                    f"{cost.utilisation:.1%}",
                )
            )
    return table(("mp", "streams", "formula, U = 1", "ours", "U by the formula", "stages compare"), rows, words=1)


def _orders(made: RingEvaluation) -> str:
    high = made.scale.probabilities[-1]
    rows = []
    for pattern, says in ((NEIGHBOURS, "each pair of neighbours its own"), (ONE_KEY, "one for all")):
        for streams in made.scale.shown:
            for order in LADDER:
                cost = made.cost(made.steady(streams, high, order, pattern))
                rows.append(
                    (
                        says,
                        order.says,
                        f"{streams}",
                        f"{cost.throughput:,.0f}",
                        f"{cost.utilisation:.1%}",
                        f"{cost.waited:.1%}",
                        f"{cost.dropped}",
                    )
                )
    head = ("keys", "order", "streams", "tuples a second", "stages compare", "have no room", "dropped")
    return table(head, rows, words=2)


def _stashed(made: RingEvaluation) -> str:
    rows = []
    for probability in made.scale.probabilities:
        ring = made.unstashed(probability)
        without = made.cost(ring)
        rows.append((f"{probability:g}", "none (ring)", *_line_of(without, without, 3), "", ""))
        for kept in made.scale.kept:
            job = made.stashed(probability, kept)
            cost = made.cost(job)
            assert isinstance(job.shape, LineShape)
            counts = (f"{cost.overwritten:,}", f"{cost.computed:,}")
            rows.append((f"{probability:g}", f"{job.shape.stash:,} pairs", *_line_of(cost, without, 2), *counts))
    head = (
        "mp",
        "stash",
        "scan cycles",
        "÷ ring",
        "tuples a second",
        "for each stage",
        "pairs overwritten",
        "tuples that computed again",
    )
    return table(head, rows, words=2)


def _line_of(cost: Cost, ring: Cost, stages: int) -> tuple[str, ...]:
    rate = cost.at_the_end
    return f"{cost.groups:,}", f"{cost.groups / ring.groups:.2f}", f"{rate:,.0f}", f"{rate / stages:,.0f}"


def _comparisons(made: RingEvaluation, probabilities: Sequence[float]) -> str:
    scale = made.scale
    rows = []
    for probability in probabilities:
        for streams in scale.shown:
            costs = made.each(made.steady(streams, probability, comparisons=k) for k in scale.comparisons)
            last = costs[-1].throughput / costs[0].throughput
            rows.append((f"{probability:g}", f"{streams}", *(f"{own.throughput:,.0f}" for own in costs), f"{last:.2f}"))
    head = ("mp", "streams", *(f"{k}" for k in scale.comparisons), f"{scale.comparisons[-1]} ÷ {scale.comparisons[0]}")
    return table(head, rows, words=1)
