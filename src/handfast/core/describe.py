"""A plan in words."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from handfast.core.words import choices, window_choice
from handfast.kernels.compiler.operators import is_native
from handfast.kernels.compiler.program import make_program
from handfast.plan import Plan
from handfast.spec.expression import Call, conjuncts, streams_of, walk
from handfast.spec.join import ARRIVAL, Stream
from handfast.spec.shown import shown
from handfast.spec.window import CountWindow, format_duration

_INDENT = " " * 13
_WIDTH = 112
_ORDER = (
    "plain: a row's partners are sought in one window after the other, first where the fewest are found",
    "match rates that are seen while it runs decide the order, again and again",
)


Words = tuple[str, str]  # a choice, and its reason


def describe(
    plan: Plan,
    *,
    engine: str,
    cores: Words | None = None,
    algorithm: Words | None = None,
    joined_by: Words | None = None,
    in_cores: bool = True,
) -> str:
    """The plan and its reasons, as text for a terminal.

    `cores` is how they run, and `algorithm` is how they join three and more streams, where that is known. `joined_by`
    is what joins, where more than one thing could; nothing is said of cores where the join is not `in_cores`.
    """
    spec = plan.join.spec
    kind = "join" if spec.how == "inner" else f"{spec.how} join"
    lines = [f"{kind} of {_listed(spec.names)} on {engine}", *_predicate(plan)]
    if joined_by is not None:
        lines += [f"  joined by  {joined_by[0]}", *_reason(f"because {joined_by[1]}")]
    for choice in choices(plan) if in_cores else (window_choice(plan),):
        lines.append(f"  {choice.what:<10} {choice.choice}")
        lines += _reason(choice.reason if choice.what == "windows" else f"because {choice.reason}")
    if len(spec.names) > 2:
        what, why = algorithm or _ORDER
        lines += [f"  algorithm  {what}", *_reason(f"because {why}")]
    if cores is not None:
        lines += [f"  cores      {cores[0]}", _INDENT + cores[1]]
    lines += [*_fallbacks(plan), *_lateness(plan), *_when(plan)]
    lines.append(f"  result     {', '.join(plan.join.output_names)}")
    return "\n".join(lines)


def _reason(text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)


def _predicate(plan: Plan) -> Iterator[str]:
    conditions = plan.join.conditions
    found = [
        (len(conditions.equalities), "equality", "equalities"),
        (len(conditions.bands), "band", "bands"),
        (len(conditions.residual), "other condition", "other conditions"),
    ]
    first, *others = plan.join.spec.on_sql.strip().splitlines()
    yield f"  predicate  {first}"
    yield from (_INDENT + line.strip() for line in others)
    yield f"{_INDENT}= " + ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in found if n)


def _fallbacks(plan: Plan) -> Iterator[str]:
    """The conditions that fall back: they are tried after the kernels, on the pairs these find."""
    count = len(plan.join.schemas)
    for condition in conjuncts(plan.join.predicate):
        if make_program(condition, [], count).filters:
            by = next(node for node in walk(condition) if isinstance(node, Call) and _is_beyond_kernels(node))
            yield f"  filter     {shown(condition, plan.join.spec.names)}"
            says = f"no kernel says {by.op.value} of {by.args[-1].type} across streams"
            why = "it is Python, compiled by Numba" if by.function else says
            yield f"{_INDENT}because {why}: it is tried on each pair that the rest leaves"


def _is_beyond_kernels(call: Call) -> bool:
    return not is_native(call) and len(streams_of(call)) > 1


def _lateness(plan: Plan) -> Iterator[str]:
    streams = plan.join.spec.streams
    if plan.join.spec.order == ARRIVAL:
        yield "  order      by arrival"
        yield f"{_INDENT}a row's place is final when it comes: nothing waits, nothing is late"
    elif any(stream.lateness is not None for stream in streams):
        yield "  lateness   " + ", ".join(f"{s.name}: {format_duration(s.lateness or 0)}" for s in streams)
        yield f"{_INDENT}the watermark is the least, over the streams, of the newest time minus the lateness;"
        yield f"{_INDENT}a row older than the watermark before its batch is late and does not join"
    idle = [f"{s.name}: {format_duration(s.idle_timeout)}" for s in streams if s.idle_timeout is not None]
    if idle:
        yield f"  idle       {', '.join(idle)}"
        yield f"{_INDENT}a stream that has sent nothing for so long is not waited for until it sends again"


def _when(plan: Plan) -> Iterator[str]:
    """When a row of the result is given."""
    join = plan.join
    if join.spec.in_order and join.gives_unmatched:
        chances = " and ".join(dict.fromkeys(_last_chance(join.spec.streams[k]) for k in join.preserved))
        yield f"  given      a row once {chances}: only then"
        yield f"{_INDENT}it is certain which rows before it match nothing; in the order of match_time"
        return
    if join.gives_pairs or join.spec.how == "semi":
        what = "a match" if join.gives_pairs else "a row that matches"
        if join.spec.in_order:
            yield f"  given      {what} once the watermark has passed its last tuple, in the order of match_time"
        elif join.counted and join.spec.order != ARRIVAL:
            yield f"  given      {what} once the watermark has passed its last tuple: only then its place is final"
        else:
            yield f"  given      {what} {plan.routing.given}"
    if join.gives_unmatched:
        for k in join.preserved:
            stream = join.spec.streams[k]
            yield f"  unmatched  a row of {stream.name} once {_last_chance(stream)}"


def _last_chance(stream: Stream) -> str:
    """What must have happened so that nothing still to come can match a row of the stream."""
    if isinstance(stream.window, CountWindow):
        return f"{stream.window} of {stream.name} behind it have their final place"
    return f"the watermark has passed its time by {stream.window}"


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
