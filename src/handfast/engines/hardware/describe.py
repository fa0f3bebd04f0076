"""A circuit in words: what was chosen, and why."""

from __future__ import annotations

from handfast.engines.hardware.design import Design
from handfast.engines.hardware.drawing import draw
from handfast.engines.hardware.options import ADAPTIVE, DROP, EAGER, NESTED_LOOP, THROTTLE, TREE
from handfast.engines.hardware.tree import level_sizes
from handfast.flow.topology import R, S

_INDENT = " " * 13


def describe(design: Design) -> str:
    """The circuit and its reasons, as text for a terminal."""
    spec = design.join.spec
    lines = [f"join of {' and '.join(spec.names)} on hardware"]
    first, *others = spec.on_sql.strip().splitlines()
    lines += [f"  predicate  {first}", *(_INDENT + line.strip() for line in others)]
    lines.append(f"  windows    {', '.join(f'{stream.name}: {stream.window}' for stream in spec.streams)}")
    lines.append(_INDENT + design.join.interval())
    for part in (_chain, _scan, _stamps, _bits, _network, _admission):
        what, choice, reason = part(design)
        lines += [f"  {what:<10} {choice}", f"{_INDENT}{reason}"]
    lines.append(f"  result     {', '.join(design.join.output_names)}")
    lines += ["", *(f"  {line}" for line in draw(design.shape, spec.names))]
    return "\n".join(lines)


def _chain(design: Design) -> tuple[str, str, str]:
    of = " and ".join(f"{size} of {name}" for size, name in zip(design.sizes, design.join.spec.names, strict=True))
    where = "RAM" if design.shape.ram else "registers"
    held = " and ".join(f"{most:,}" for most in design.held)
    why = f"because the windows hold up to {held} tuples of these inputs"
    if design.options.algorithm == NESTED_LOOP:
        return "units", f"2, each with a whole window in {where}: {of}", why
    cores = design.shape.cores
    return "chain", f"{cores} core{'s' * (cores > 1)} in lock step, each with segments in {where}: {of}", why


def _scan(design: Design) -> tuple[str, str, str]:
    shape, (r, s) = design.shape, design.join.spec.names
    count = f"{shape.comparisons} comparison{'s' * (shape.comparisons > 1)} at a time"
    of = (
        "cycles"
        if shape.merge_clock == 1
        else f"cycles of the network's clock, which is {shape.merge_clock} times faster"
    )
    why = f"a step takes {shape.cycles_per_step} {of}, and more where results have to wait"
    if shape.algorithm == NESTED_LOOP:
        return "scan", f"both windows at the same time, {count} in each", why
    if shape.scan == EAGER:
        return "scan", f"eager: both segments at the same time, {count} in each", why
    return "scan", f"immediate: {s} for a tuple of {r}, then {r} for one of {s}, {count}", why


def _stamps(design: Design) -> tuple[str, str, str]:
    if design.layout.compares_stamps:
        return "stamps", "each core compares them", "because there is room for more tuples than the windows hold"
    return "stamps", "none are compared", "because what has a slot is what the windows hold"


def _bits(design: Design) -> tuple[str, str, str]:
    r, s = (design.layout.of(stream) for stream in (R, S))
    names = design.join.spec.names
    read = [f"{names[column.stream]}.{column.name}" for own in (r, s) for column in own.columns]
    widths = ", ".join(f"{own.shape.size} for a tuple of {name}" for own, name in zip((r, s), names, strict=True))
    travels = f"what the predicate reads travels ({', '.join(read)}), and each" if read else "each"
    why = f"{travels} tuple's place, which stands for its row"
    return "bits", f"{widths}, {design.layout.result_width} for a result", why


def _network(design: Design) -> tuple[str, str, str]:
    options = design.options
    if options.network == TREE:
        choice = f"tree of mergers; buffers of {options.network_buffer}, and of {options.core_buffer} behind every core"
        return "network", choice, "it was asked for"
    if options.network == ADAPTIVE:
        return "network", f"adaptive: a ring of nodes over buffers of {options.network_buffer}", "it was asked for"
    choice = f"pipelined: buffers of {options.network_buffer} behind every core, then mergers of one register each"
    levels = len(level_sizes(design.shape.inputs, design.shape.stage_fan_in))
    when = f"after {levels} cycle{'s' * (levels > 1)}" if levels else "at once"
    return "network", choice, f"because a result leaves in every cycle, and one that meets no other is out {when}"


def _admission(design: Design) -> tuple[str, str, str]:
    shape = design.shape
    choice = shape.admission + (f", with a step every {design.step_every} cycles" if design.step_every else "")
    low = f"{shape.margin} free slot{'s' * (shape.margin > 1)} or fewer"
    behind = "a buffer behind a core" if shape.network == TREE else "a buffer"
    if shape.admission == THROTTLE:
        why = f"steps are discarded and counted while {behind} has {low}, or a core is busy"
    elif shape.admission == DROP:
        why = f"results are dropped from {behind} and counted where others come while it has {low}"
    else:
        why = f"all stand still while a buffer has {low}"
    return "admission", choice, why
