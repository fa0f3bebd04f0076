"""The loop over the cycles of a line in the fast model, from event to event; compiled once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from handfast.engines.hardware.model.bits import UNCOUNTED, kernel
from handfast.engines.hardware.model.fifos import NONE, Fifos
from handfast.engines.hardware.model.line_stage import Line, visit_line
from handfast.engines.hardware.model.pipelined import Stages, clock_stages, run_stages
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.model.ring_loop import (
    BUSY,
    COUNT,
    CYCLE,
    DONE,
    ENTERED,
    FOUND,
    GOES_ON,
    NOTED,
    OLDEST,
    OUT,
    STUCK,
    UNDER_WAY,
    Course,
)
from handfast.engines.hardware.model.ring_stage import LAST, NEVER, VALID
from handfast.engines.hardware.model.sources import sources


@kernel
def _note(course: Course, line: Line, fifos: Fifos, cycle: int) -> None:
    """Write down the levels that have changed."""
    counts, noted, stages = course.counts, course.noted, len(line.level)
    for i in range(len(noted)):
        level = line.level[i] if i < stages else fifos.level[i - stages]
        if level != noted[i]:
            noted[i] = level
            course.changes[counts[NOTED], 0] = cycle
            course.changes[counts[NOTED], 1] = i
            course.changes[counts[NOTED], 2] = level
            counts[NOTED] += 1


@kernel
def _slot_behind(line: Line, coming: int) -> int:
    """The slot of the first queue that is so many behind what is there."""
    slot: int = line.head[0] + line.level[0] + coming
    return slot if slot < line.depth[0] else slot - line.depth[0]


@kernel
def _enter(course: Course, line: Line, lists: Lists, cycle: int) -> None:
    """Let a tuple in; it will be at the first stage when it has been stored."""
    number = course.counts[ENTERED]
    slot = _slot_behind(line, course.coming[0])
    line.tuples[0, slot] = number
    line.kinds[0, slot] = VALID | LAST
    line.lists[0, slot] = lists.first[number]
    origin = line.origins[number]
    line.members[0, slot, origin] = line.stops[number, origin]
    course.comes[0, slot] = cycle + 2 + line.members.shape[2]
    course.coming[0] += 1
    course.taken[number] = cycle
    course.counts[ENTERED] += 1


@kernel
def _arrive(course: Course, line: Line, cycle: int) -> None:
    """New tuples that have come to the first stage are in its queue."""
    while course.coming[0]:
        if course.comes[0, _slot_behind(line, 0)] > cycle:
            break
        course.coming[0] -= 1
        line.level[0] += 1
        line.highest[0] = max(line.highest[0], line.level[0])
        if line.wake[0] == NEVER:
            line.wake[0] = cycle


@kernel
def _clock(line: Line, cycle: int) -> None:
    """End the cycle: what was popped is gone, what was pushed is there, and stages that this concerns wake up."""
    for stage in range(len(line.level)):
        if line.popped[stage]:
            line.popped[stage] = 0
            line.level[stage] -= 1
            after = line.head[stage] + 1
            line.head[stage] = after if after < line.depth[stage] else 0
            if stage and line.wake[stage - 1] == NEVER:
                line.wake[stage - 1] = cycle + 1
        if line.pushed[stage]:
            line.pushed[stage] = 0
            line.level[stage] += 1
            line.highest[stage] = max(line.highest[stage], line.level[stage])
            if line.wake[stage] == NEVER:
                line.wake[stage] = cycle + 1


@kernel
def _next_event(course: Course, line: Line, in_flight: int, every: int, cycle: int) -> int:
    """The next cycle in which something happens; the network has nothing to do."""
    counts = course.counts
    if counts[ENTERED] == len(course.taken) and counts[COUNT] == 0:
        return cycle + 1
    soonest = NEVER
    for stage in range(len(line.wake)):
        soonest = min(soonest, line.wake[stage])
    if course.coming[0]:
        soonest = min(soonest, course.comes[0, _slot_behind(line, 0)])
    if counts[OLDEST] < counts[ENTERED]:
        soonest = min(soonest, line.done[counts[OLDEST]])
    if counts[ENTERED] < len(course.taken) and counts[COUNT] < in_flight:
        soonest = min(soonest, counts[ENTERED] * every)
    return max(soonest, cycle + 1)


def _compiled(digest: str) -> Callable[..., int]:

    def advance(
        course: Course,
        line: Line,
        lists: Lists,
        network: Stages,
        fifos: Fifos,
        in_flight: int,
        every: int,
    ) -> int:
        if not digest:  # named here, so that it is part of the function
            return STUCK
        counts = course.counts
        stages = len(line.level)
        wanted = len(course.changes) > 0
        cycle = counts[CYCLE]
        status = GOES_ON
        while counts[FOUND] + stages <= len(course.found) and counts[OUT] < len(course.words):
            if wanted and counts[NOTED] + 2 * len(course.noted) > len(course.changes):
                break
            _arrive(course, line, cycle)
            if wanted:
                _note(course, line, fifos, cycle)
            if counts[ENTERED] == len(course.taken) and counts[COUNT] == 0 and counts[UNDER_WAY] == 0:
                status = DONE
                break
            enters = counts[ENTERED] < len(course.taken) and counts[COUNT] < in_flight
            enters = enters and cycle >= counts[ENTERED] * every
            leaves = counts[OLDEST] < counts[ENTERED] and line.done[counts[OLDEST]] <= cycle

            now = network.phase[0]
            for stage in range(stages):
                if line.wake[stage] <= cycle and visit_line(
                    line, stage, cycle, lists, now, network, fifos, counts[FOUND]
                ):
                    for stream in range(line.members.shape[2]):
                        course.found[counts[FOUND], stream] = line.members[stage, line.head[stage], stream]
                    counts[FOUND] += 1
                    counts[UNDER_WAY] += 1
            if counts[UNDER_WAY]:
                network.phase[0] = 1 - now
                word = run_stages(now, network, fifos)
                clock_stages(1 - now, network, fifos)
                if word != NONE:
                    course.words[counts[OUT]] = word
                    course.cycles[counts[OUT]] = cycle
                    counts[OUT] += 1
                    counts[UNDER_WAY] -= 1
            if enters:
                _enter(course, line, lists, cycle)
                if counts[ENTERED] == len(course.taken):
                    counts[BUSY] = line.compared.sum()
            _clock(line, cycle)
            counts[COUNT] += int(enters) - int(leaves)
            counts[OLDEST] += int(leaves)
            if wanted:
                _note(course, line, fifos, cycle + 1)
            cycle = cycle + 1 if counts[UNDER_WAY] else _next_event(course, line, in_flight, every, cycle)
            if cycle == NEVER:
                status = STUCK
                break
        counts[CYCLE] = cycle
        return status

    compiled: Callable[..., int] = njit(cache=True, **UNCOUNTED)(advance)
    return compiled


advance = _compiled(sources())
