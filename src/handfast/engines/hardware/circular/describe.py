"""A ring of stages, or a line with a stash, in words: what was chosen, and why."""

from __future__ import annotations

from collections.abc import Sequence

from handfast.engines.hardware.circular.conditions import Check as RingCheck
from handfast.engines.hardware.circular.design import RingDesign
from handfast.engines.hardware.circular.drawing import draw_line, draw_ring
from handfast.engines.hardware.options import DROP, HIGHEST
from handfast.engines.hardware.stashed.conditions import Check as LineCheck
from handfast.engines.hardware.stashed.design import LineDesign
from handfast.engines.hardware.stashed.shape import LineShape
from handfast.engines.hardware.tree import level_sizes
from handfast.spec.shown import shown

_INDENT = " " * 13


def describe_stages(design: RingDesign | LineDesign) -> str:
    """The circuit and its reasons, as text for a terminal."""
    spec = design.join.spec
    lines = [f"join of {', '.join(spec.names[:-1])} and {spec.names[-1]} on hardware"]
    first, *others = spec.on_sql.strip().splitlines()
    lines += [f"  predicate  {first}", *(_INDENT + line.strip() for line in others)]
    lines.append(f"  windows    {', '.join(f'{stream.name}: {stream.window}' for stream in spec.streams)}")
    lines.append(_INDENT + design.join.interval())
    for what, *said in (_stages(design), _order(design), _scan(design), _conditions(design), *_parts(design)):
        lines.append(f"  {what:<10} {said[0]}")
        lines += [_INDENT + line for line in said[1:]]
    lines.append(f"  result     {', '.join(design.join.output_names)}")
    if isinstance(design, LineDesign):
        picture = draw_line(design.shape, spec.names)
    else:
        picture = draw_ring(design.shape, spec.names)
    return "\n".join([*lines, "", *(f"  {line}" for line in picture)])


def _stages(design: RingDesign | LineDesign) -> tuple[str, ...]:
    names = design.join.spec.names
    sizes = ", ".join(f"{size:,} of {name}" for size, name in zip(design.sizes, names, strict=True))
    count = f"{design.shape.stages} stages with windows in RAM: {sizes}"
    held = " and ".join(f"{most:,}" for most in design.held)
    why = f"because the windows hold up to {held} tuples of these inputs"
    if isinstance(design, LineDesign):
        a, b = names[:2]
        return (
            "line",
            f"stashed: {count}",
            why,
            f"up to {design.shape.stash:,} pairs of {a} and {b} are kept, for the tuples of the others",
            "where one is overwritten that could still match, pairs are computed again until it has expired",
        )
    return "ring", f"circular: {count}", why, "a tuple goes past the stages of all others"


def _order(design: RingDesign | LineDesign) -> tuple[str, ...]:
    most = design.shape.in_flight
    return (
        "order",
        f"up to {most:,} tuple{'s' * (most > 1)} under way, and as many slots beyond each window",
        "so what a tuple looks for is still there, and what came after it is passed over",
    )


def _scan(design: RingDesign | LineDesign) -> tuple[str, ...]:
    shape = design.shape
    count = f"{shape.comparisons} comparison{'s' * (shape.comparisons > 1)} at a time"
    why = f"a scan without a match takes up to {shape.cycles_per_tuple:,} cycles of a stage"
    if isinstance(shape, LineShape):
        return "scan", count, why
    turn = "the one that is furthest along" if shape.turn == HIGHEST else "round robin by how far they have come"
    return "scan", f"{count}; of those that wait at a stage, {turn}", why


def _conditions(design: RingDesign | LineDesign) -> tuple[str, ...]:
    names = design.join.spec.names
    said = []
    every: Sequence[Sequence[RingCheck | LineCheck]] = design.conditions.checks
    for stage, checks in enumerate(every):
        own = [names[stage]] if isinstance(design, RingDesign) else names[:2] if stage == 0 else [names[stage + 1]]
        conditions = "; ".join(shown(check.condition, names) for check in checks) or "nothing"
        said.append(f"at {' and '.join(own)}: {conditions}")
    return "checks", *said, "each as soon as the tuples that it is about are there"


def _parts(design: RingDesign | LineDesign) -> tuple[tuple[str, ...], ...]:
    return _bits(design), _network(design), _room(design)


def _bits(design: RingDesign | LineDesign) -> tuple[str, ...]:
    layout, names = design.layout, design.join.spec.names
    slots = ", ".join(f"{layout.slot(k).shape.size} for a tuple of {name}" for k, name in enumerate(names))
    widest = max(layout.item(stage).size for stage in range(design.shape.stages))
    return "bits", f"{slots}, up to {widest} for an intermediate, {layout.result_width} for a result"


def _network(design: RingDesign | LineDesign) -> tuple[str, ...]:
    shape = design.shape
    levels = len(level_sizes(shape.stages, shape.stage_fan_in))
    return (
        "network",
        f"pipelined: buffers of {shape.network_buffer} behind every stage, then mergers of one register each",
        f"because a result leaves in every cycle, and one that meets no other is out after {levels} "
        f"cycle{'s' * (levels > 1)}",
    )


def _room(design: RingDesign | LineDesign) -> tuple[str, ...]:
    buffer = design.shape.buffer
    room = f"{buffer} intermediate{'s' * (buffer > 1)} at each stage, for each number of stages come past"
    if isinstance(design, LineDesign):
        wait = "nothing ever comes back, so what waits does so for stages behind it: nothing is dropped or gets stuck"
        return "buffers", f"{buffer} intermediate{'s' * (buffer > 1)} before each stage", wait
    if design.options.admission == DROP:
        return "buffers", room, "intermediates that find no room are dropped and counted, as in the paper"
    return (
        "buffers",
        room,
        "a scan waits for room, and another goes on meanwhile: nothing is dropped, nothing gets stuck",
    )
