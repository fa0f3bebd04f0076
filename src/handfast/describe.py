"""A plan in words."""

from __future__ import annotations

from handfast.plan import Plan
from handfast.spec.window import format_duration


def describe(plan: Plan, *, engine: str) -> str:
    """The plan and its reasons, as text for a terminal."""
    spec, conditions = plan.join.spec, plan.join.conditions
    first, *others = spec.on.strip().splitlines()
    lines = [f"join of {' and '.join(spec.names)} on {engine}", f"  predicate  {first}"]
    lines.extend(f"             {line.strip()}" for line in others)
    found = [
        (len(conditions.equalities), "equality", "equalities"),
        (len(conditions.bands), "band", "bands"),
        (len(conditions.residual), "other condition", "other conditions"),
    ]
    lines.append("             = " + ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in found if n))
    for choice in plan.choices():
        lines.append(f"  {choice.what:<10} {choice.choice}")
        lines.append(
            f"             because {choice.reason}" if choice.what != "windows" else f"             {choice.reason}"
        )
    if any(stream.lateness is not None for stream in spec.streams):
        late = ", ".join(f"{s.name}: {format_duration(s.lateness or 0)}" for s in spec.streams)
        lines.append(f"  lateness   {late}")
        lines.append(
            "             the watermark is the least, over the streams, of the newest time minus the lateness;"
        )
        lines.append("             a row older than the watermark before its batch is late and does not join")
    lines.append(f"  result     {', '.join(plan.join.output_names)}")
    return "\n".join(lines)
