"""A ring in words: what was chosen, and why."""

from __future__ import annotations

from handfast.engines.hardware.circular.design import RingDesign
from handfast.engines.hardware.circular.drawing import draw_ring
from handfast.engines.hardware.options import DROP, HIGHEST
from handfast.engines.hardware.tree import level_sizes
from handfast.spec.shown import shown

_INDENT = " " * 13


def describe_ring(design: RingDesign) -> str:
    """The ring and its reasons, as text for a terminal."""
    spec = design.join.spec
    lines = [f"join of {', '.join(spec.names[:-1])} and {spec.names[-1]} on hardware"]
    first, *others = spec.on_sql.strip().splitlines()
    lines += [f"  predicate  {first}", *(_INDENT + line.strip() for line in others)]
    lines.append(f"  windows    {', '.join(f'{stream.name}: {stream.window}' for stream in spec.streams)}")
    lines.append(_INDENT + design.join.interval())
    for part in (_ring, _order, _scan, _conditions, _bits, _network, _room):
        what, *said = part(design)
        lines.append(f"  {what:<10} {said[0]}")
        lines += [_INDENT + line for line in said[1:]]
    lines.append(f"  result     {', '.join(design.join.output_names)}")
    lines += ["", *(f"  {line}" for line in draw_ring(design.shape, spec.names))]
    return "\n".join(lines)


def _ring(design: RingDesign) -> tuple[str, ...]:
    sizes = [f"{size:,} of {name}" for size, name in zip(design.held, design.join.spec.names, strict=True)]
    return (
        "ring",
        f"circular: {len(sizes)} stages, each with a window in RAM: {', '.join(sizes)}",
        "because that is what the windows hold of these inputs; a tuple goes past the stages of all others",
    )


def _order(design: RingDesign) -> tuple[str, ...]:
    most = design.shape.in_flight
    return (
        "order",
        f"up to {most:,} tuple{'s' * (most > 1)} under way, and as many slots beyond each window",
        "so what a tuple looks for is still there, and what came after it is passed over",
    )


def _scan(design: RingDesign) -> tuple[str, ...]:
    shape = design.shape
    turn = "the one that is furthest along" if shape.turn == HIGHEST else "round robin by how far they have come"
    count = f"{shape.comparisons} comparison{'s' * (shape.comparisons > 1)} at a time"
    return (
        "scan",
        f"{count}; of those that wait at a stage, {turn}",
        f"a tuple without a match takes up to {shape.cycles_per_tuple:,} cycles of one stage",
    )


def _conditions(design: RingDesign) -> tuple[str, ...]:
    names = design.join.spec.names
    said = []
    for stage, checks in enumerate(design.conditions.checks):
        conditions = " AND ".join(shown(check.condition, names) for check in checks) or "nothing"
        said.append(f"at {names[stage]}: {conditions}")
    return "checks", *said, "each as soon as the tuples that it is about are there"


def _bits(design: RingDesign) -> tuple[str, ...]:
    layout, names = design.layout, design.join.spec.names
    slots = ", ".join(f"{layout.slot(k).shape.size} for a tuple of {name}" for k, name in enumerate(names))
    widest = max(layout.item(stage).size for stage in range(layout.streams))
    return "bits", f"{slots}, up to {widest} for an intermediate, {layout.result_width} for a result"


def _network(design: RingDesign) -> tuple[str, ...]:
    shape = design.shape
    levels = len(level_sizes(shape.streams, shape.stage_fan_in))
    return (
        "network",
        f"pipelined: buffers of {shape.network_buffer} behind every stage, then mergers of one register each",
        f"because a result leaves in every cycle, and one that meets no other is out after {levels} "
        f"cycle{'s' * (levels > 1)}",
    )


def _room(design: RingDesign) -> tuple[str, ...]:
    buffer = design.shape.buffer
    room = f"{buffer} intermediate{'s' * (buffer > 1)} at each stage, for each number of stages come past"
    if design.options.admission == DROP:
        return "buffers", room, "intermediates that find no room are dropped and counted, as in the paper"
    return (
        "buffers",
        room,
        "a scan waits for room, and another goes on meanwhile: nothing is dropped, nothing gets stuck",
    )
