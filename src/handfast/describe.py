"""A plan in words."""

from __future__ import annotations

from handfast.plan import Plan
from handfast.spec.join import ARRIVAL
from handfast.spec.window import format_duration


def describe(plan: Plan, *, engine: str) -> str:
    """The plan and its reasons, as text for a terminal."""
    spec, conditions = plan.join.spec, plan.join.conditions
    lines = [f"join of {' and '.join(spec.names)} on {engine}", f"  predicate  {spec.on}"]
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
    if spec.order == ARRIVAL:
        lines.append("  order      by arrival")
        lines.append("             a row's place is final when it comes: nothing waits, nothing is late")
    elif any(stream.lateness is not None for stream in spec.streams):
        late = ", ".join(f"{s.name}: {format_duration(s.lateness or 0)}" for s in spec.streams)
        lines.append(f"  lateness   {late}")
        lines.append(
            "             the watermark is the least, over the streams, of the newest time minus the lateness;"
        )
        lines.append("             a row older than the watermark before its batch is late and does not join")
    idle = [f"{s.name}: {format_duration(s.idle_timeout)}" for s in spec.streams if s.idle_timeout is not None]
    if idle:
        lines.append(f"  idle       {', '.join(idle)}")
        lines.append("             a stream that has sent nothing for so long is not waited for until it sends again")
    lines.append(f"  result     {', '.join(plan.join.output_names)}")
    return "\n".join(lines)
