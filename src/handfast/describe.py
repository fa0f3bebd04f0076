"""A plan in words."""

from __future__ import annotations

from handfast.kernels.program import make_program
from handfast.kernels.reach import is_native
from handfast.plan import Plan
from handfast.spec.expression import Call, Expr, conjuncts, streams_of, walk
from handfast.spec.shown import shown
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
    for condition in _filters(plan):
        by = next(node for node in walk(condition) if isinstance(node, Call) and _is_beyond_kernels(node))
        lines.append(f"  filter     {shown(condition, spec.names)}")
        lines.append(
            f"             because no kernel says {by.op.value} of {by.args[-1].type} across streams: "
            "it is tried on each pair that the rest leaves"
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


def _filters(plan: Plan) -> list[Expr]:
    """The conditions that fall back: they are tried after the kernels, on the pairs these find."""
    count = len(plan.join.schemas)
    return [part for part in conjuncts(plan.join.predicate) if make_program(part, [], count).filters]


def _is_beyond_kernels(call: Call) -> bool:
    return not is_native(call) and len(streams_of(call)) > 1
