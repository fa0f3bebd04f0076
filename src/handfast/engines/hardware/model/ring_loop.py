"""The loop over the cycles of a ring in the fast model, from event to event; compiled once and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from numba import njit

from handfast.engines.hardware.model.bits import UNCOUNTED, Ints, kernel
from handfast.engines.hardware.model.fifos import NONE, Fifos
from handfast.engines.hardware.model.pipelined import Stages, clock_stages, run_stages
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.model.ring_stage import LAST, NEVER, NOTHING, VALID, Ring, visit
from handfast.engines.hardware.model.sources import sources

# The numbers of a run, by their places in `Course.counts`.
CYCLE = 0
ENTERED = 1  # tuples
OLDEST = 2  # the oldest tuple that is not known to have ended
COUNT = 3  # tuples under way, and those behind one of these
UNDER_WAY = 4  # results in the network
FOUND = 5  # results that have left the stages
OUT = 6  # results that have come out
NOTED = 7  # changes of levels
BUSY = 8  # groups that all stages had compared when the last tuple entered

DONE, GOES_ON, STUCK = 0, 1, 2  # why the loop returns: all is done; there is no room; nothing moves


class Course(NamedTuple):
    """What a run is besides the stages and the network, and what it writes down."""

    counts: Ints
    coming: Ints  # by stage: new tuples in the distribution chain
    comes: Ints  # by stage and slot of its first queue: the cycle from which on the tuple is there
    taken: Ints  # by tuple: the cycle in which it entered
    found: Ints  # by result and stream: the place of the tuple
    words: Ints  # by result that has come out: which of `found` it is
    cycles: Ints  # likewise: in which cycle
    changes: Ints  # by change of a level: the cycle from which on, the queue or FIFO, the level; no room: not wanted
    noted: Ints  # by queue and FIFO: the level that was written down last


@kernel
def _note(course: Course, ring: Ring, fifos: Fifos, cycle: int) -> None:
    """Write down the levels that have changed."""
    counts, noted = course.counts, course.noted
    hops = ring.level.shape[1]
    queues = ring.level.shape[0] * hops
    for i in range(len(noted)):
        level = ring.level[i // hops, i % hops] if i < queues else fifos.level[i - queues]
        if level != noted[i]:
            noted[i] = level
            course.changes[counts[NOTED], 0] = cycle
            course.changes[counts[NOTED], 1] = i
            course.changes[counts[NOTED], 2] = level
            counts[NOTED] += 1


@kernel
def _enter(course: Course, ring: Ring, lists: Lists, cycle: int) -> None:
    """Let a tuple into the distribution chain; it will be at the stage behind its stream's."""
    number = course.counts[ENTERED]
    stages = ring.level.shape[0]
    stage = ring.origins[number] + 1 if ring.origins[number] + 1 < stages else 0
    slot = ring.head[stage, 0] + ring.level[stage, 0] + course.coming[stage]
    slot = slot if slot < ring.depth[0] else slot - ring.depth[0]
    ring.tuples[stage, 0, slot] = number
    ring.kinds[stage, 0, slot] = VALID | LAST
    ring.lists[stage, 0, slot] = lists.first[number]
    course.comes[stage, slot] = cycle + 2 + stages + stage
    course.coming[stage] += 1
    course.taken[number] = cycle
    course.counts[ENTERED] += 1


@kernel
def _arrive(course: Course, ring: Ring, cycle: int) -> None:
    """New tuples that have come to their stages are in the queues there."""
    for stage in range(len(course.coming)):
        while course.coming[stage]:
            slot = ring.head[stage, 0] + ring.level[stage, 0]
            slot = slot if slot < ring.depth[0] else slot - ring.depth[0]
            if course.comes[stage, slot] > cycle:
                break
            course.coming[stage] -= 1
            ring.level[stage, 0] += 1
            ring.highest[stage, 0] = max(ring.highest[stage, 0], ring.level[stage, 0])
            if ring.wake[stage] == NEVER:
                ring.wake[stage] = cycle


@kernel
def _write_down(course: Course, ring: Ring, lists: Lists, stage: int, entry: int) -> None:
    """Write down the result that a stage has given."""
    counts, stages, last_hop = course.counts, ring.level.shape[0], ring.level.shape[1] - 1
    head = ring.head[stage, last_hop]
    number = ring.tuples[stage, last_hop, head]
    origin = ring.origins[number]
    course.found[counts[FOUND], origin] = ring.stops[number, origin]
    for hop in range(last_hop):
        met = (origin + 1 + hop) % stages
        course.found[counts[FOUND], met] = ring.members[stage, last_hop, head, hop]
    course.found[counts[FOUND], stage] = lists.places[entry]
    counts[FOUND] += 1


@kernel
def _clock(ring: Ring, cycle: int) -> None:
    """End the cycle: what was popped is gone, what was pushed is there, and stages that this concerns wake up."""
    stages = ring.level.shape[0]
    for stage in range(stages):
        hop = ring.pops[stage]
        if hop != NOTHING:
            ring.pops[stage] = NOTHING
            ring.level[stage, hop] -= 1
            after = ring.head[stage, hop] + 1
            ring.head[stage, hop] = after if after < ring.depth[hop] else 0
            before = stage - 1 if stage else stages - 1
            if ring.wake[before] == NEVER:
                ring.wake[before] = cycle + 1
        hop = ring.pushes[stage]
        if hop != NOTHING:
            ring.pushes[stage] = NOTHING
            ring.level[stage, hop] += 1
            ring.highest[stage, hop] = max(ring.highest[stage, hop], ring.level[stage, hop])
            if ring.wake[stage] == NEVER:
                ring.wake[stage] = cycle + 1


@kernel
def _next_event(course: Course, ring: Ring, in_flight: int, every: int, cycle: int) -> int:
    """The next cycle in which something happens; the network has nothing to do."""
    counts = course.counts
    if counts[ENTERED] == len(course.taken) and counts[COUNT] == 0:
        return cycle + 1
    soonest = NEVER
    for stage in range(len(course.coming)):
        soonest = min(soonest, ring.wake[stage])
        if course.coming[stage]:
            slot = ring.head[stage, 0] + ring.level[stage, 0]
            slot = slot if slot < ring.depth[0] else slot - ring.depth[0]
            soonest = min(soonest, course.comes[stage, slot])
    if counts[OLDEST] < counts[ENTERED]:
        soonest = min(soonest, ring.done[counts[OLDEST]])
    if counts[ENTERED] < len(course.taken) and counts[COUNT] < in_flight:
        soonest = min(soonest, counts[ENTERED] * every)
    return max(soonest, cycle + 1)


def _compiled(digest: str) -> Callable[..., int]:

    def advance(
        course: Course,
        ring: Ring,
        lists: Lists,
        network: Stages,
        fifos: Fifos,
        in_flight: int,
        every: int,
    ) -> int:
        if not digest:  # named here, so that it is part of the function
            return STUCK
        counts = course.counts
        stages = len(course.coming)
        wanted = len(course.changes) > 0
        cycle = counts[CYCLE]
        status = GOES_ON
        while counts[FOUND] + stages <= len(course.found) and counts[OUT] < len(course.words):
            if wanted and counts[NOTED] + 2 * len(course.noted) > len(course.changes):
                break
            _arrive(course, ring, cycle)
            if wanted:
                _note(course, ring, fifos, cycle)
            if counts[ENTERED] == len(course.taken) and counts[COUNT] == 0 and counts[UNDER_WAY] == 0:
                status = DONE
                break
            enters = (
                counts[ENTERED] < len(course.taken) and counts[COUNT] < in_flight and cycle >= counts[ENTERED] * every
            )
            leaves = counts[OLDEST] < counts[ENTERED] and ring.done[counts[OLDEST]] <= cycle

            now = network.phase[0]
            for stage in range(stages):
                if ring.wake[stage] <= cycle:
                    entry = visit(ring, stage, cycle, lists, now, network, fifos, counts[FOUND])
                    if entry != NOTHING:
                        _write_down(course, ring, lists, stage, entry)
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
                _enter(course, ring, lists, cycle)
                if counts[ENTERED] == len(course.taken):
                    counts[BUSY] = ring.compared.sum()
            _clock(ring, cycle)
            counts[COUNT] += int(enters) - int(leaves)
            counts[OLDEST] += int(leaves)
            if wanted:
                _note(course, ring, fifos, cycle + 1)
            cycle = cycle + 1 if counts[UNDER_WAY] else _next_event(course, ring, in_flight, every, cycle)
            if cycle == NEVER:
                status = STUCK
                break
        counts[CYCLE] = cycle
        return status

    compiled: Callable[..., int] = njit(cache=True, **UNCOUNTED)(advance)
    return compiled


advance = _compiled(sources())
