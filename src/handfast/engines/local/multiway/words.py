"""The algorithm that joins three and more streams, in words: what was chosen, and the numbers it was chosen by."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.engines.local.multiway.choice import Layout, Seen, layout_for
from handfast.plan import ALGORITHMS, CIRCULAR, PLAIN


def algorithm_words(names: Sequence[str], layout: Layout, seen: Seen, asked: str | None) -> tuple[str, str]:
    """What was chosen last, and why."""
    return _what(names, layout, seen), _why(names, layout, seen, asked)


def _what(names: Sequence[str], layout: Layout, seen: Seen) -> str:
    if layout.algorithm == PLAIN:
        ways = (seen.workload.best_way(origin) for origin in seen.workload.streams)
        return "plain: " + ", ".join(" to ".join(names[stream] for stream in way) for way in ways)
    if layout.algorithm == CIRCULAR:
        return f"circular: a ring of {', '.join(names[stream] for stream in layout.order)}"
    pair, others = layout.order[:2], layout.order[2:]
    kept = " and ".join(names[stream] for stream in pair)
    return f"stashed: the pairs of {kept} are kept, then {', '.join(names[stream] for stream in others)}"


def _why(names: Sequence[str], layout: Layout, seen: Seen, asked: str | None) -> str:
    workload = seen.workload
    rates = ", ".join(
        f"{names[a]} in {names[b]} {workload.rate(a, b):.3g}"
        for a in workload.streams
        for b in workload.streams
        if a != b
    )
    offered = {own: layout_for(workload, own, seen.arriving).cost for own in ALGORITHMS}
    offered[layout.algorithm] = layout.cost
    costs = ", ".join(f"{own} {cost:,.0f}" for own, cost in offered.items())
    chosen = "it was asked for" if asked else "it is expected to cost the least, or little more than that"
    return f"{chosen}: nanoseconds a row, {costs}; partners of a row seen in the first {seen.tuples:,} rows: {rates}"
