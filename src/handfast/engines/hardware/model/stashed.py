"""The fast model of a line with a stash: in every cycle what the RTL does, result by result and queue by queue."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from handfast.engines.hardware.model import line_loop as loop
from handfast.engines.hardware.model.circular import Entering, RingRun, finished, new_course, with_more_room
from handfast.engines.hardware.model.line_stage import COMPUTED, OVERWRITTEN, SIZE, Line
from handfast.engines.hardware.model.pipelined import empty_stages
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.model.ring_loop import GOES_ON, STUCK
from handfast.engines.hardware.model.ring_stage import NEVER
from handfast.errors import InternalError

if TYPE_CHECKING:
    from handfast.engines.hardware.stashed.shape import LineShape


def run(shape: LineShape, entering: Entering, lists: Lists, *, every: int = 0, levels: bool = False) -> RingRun:
    """Run a line from reset until it has given all results; its output is always taken.

    Args:
        shape: The line.
        entering: What enters.
        lists: Which tuples match: of a tuple of the first two streams, those in the other's window, then those in the
            window of each stage behind; of any other stream, those in the windows of the first two, one after the
            other, then likewise.
        every: Tuple k is offered from cycle k · `every` on; with 0, as soon as the one before it was taken.
        levels: Whether the level of every queue and FIFO is wanted for every cycle.
    """
    line = _new_line(shape, entering)
    network, fifos = empty_stages(
        shape.stages, fan_in=shape.stage_fan_in, depth=shape.network_buffer, margin=shape.margin
    )
    course = new_course(shape.streams, 2 * shape.stages, shape.in_flight, len(entering.origins), levels)
    while (status := loop.advance(course, line, lists, network, fifos, shape.in_flight, every)) == GOES_ON:
        course = with_more_room(course)
    if status == STUCK:
        raise InternalError("The line stands still before it has given every result")
    found = finished(course, line.done, line.scans, line.compared, line.waited)
    highest = np.concatenate([line.highest, fifos.highest])
    return replace(
        found(0, highest, levels), overwritten=int(line.stash[OVERWRITTEN]), computed=int(line.stash[COMPUTED])
    )


def _new_line(shape: LineShape, entering: Entering) -> Line:
    """The stages of a line, without an item."""
    n, slots = shape.stages, max(shape.in_flight, shape.buffer)
    size = -(-shape.stash // shape.comparisons) * shape.comparisons  # pairs: whole groups
    most = max(*shape.sizes, size, 1)  # matches of a scan
    by_stage, by_row = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    stash = np.zeros(10, np.int64)
    stash[SIZE] = size
    return Line(
        level=by_stage.copy(),
        highest=by_stage.copy(),
        head=by_stage.copy(),
        depth=np.array([shape.in_flight, *[shape.buffer] * (n - 1)], np.int64),
        tuples=np.zeros((n, slots), np.int64),
        kinds=np.zeros((n, slots), np.int64),
        lists=np.zeros((n, slots), np.int64),
        members=np.zeros((n, slots, shape.streams), np.int64),
        state=by_stage.copy(),
        wake=by_stage.copy(),
        passed=by_stage.copy(),
        group=by_row.copy(),
        groups=by_row.copy(),
        hit=by_row.copy(),
        hits=by_row.copy(),
        hit_group=np.zeros((n + 1, most), np.int64),
        hit_entry=np.zeros((n + 1, most), np.int64),
        hit_first=np.zeros(most, np.int64),
        scanning=np.zeros(1, np.int64),
        pushed=by_stage.copy(),
        popped=by_stage.copy(),
        origins=np.asarray(entering.origins, np.int64),
        stops=np.asarray(entering.stops, np.int64),
        held=np.asarray(entering.held, np.int64),
        done=np.full(len(entering.origins), NEVER, np.int64),
        stash=stash,
        pair_a=np.zeros(max(1, size), np.int64),
        pair_b=np.zeros(max(1, size), np.int64),
        compared=by_stage.copy(),
        scans=by_stage.copy(),
        waited=by_stage.copy(),
        since=np.full(n, -1, np.int64),
        comparisons=shape.comparisons,
    )
