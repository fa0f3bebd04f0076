"""Circular-MJ: a ring of one stage for each stream; new tuples go round it past all others [CMJ §II].

The blocks of a step are stored first, each in its own stream's window; then they go round. A partner counts only if it
was stored before the new tuples (`Arrival.stops`), so every match is found once, from the member that was stored last,
whichever stage is ahead: this is the order control of [CMJ §II-C]. Tuples expire after the step, when the ring is
empty, so that none expires too early.
"""

from __future__ import annotations

from handfast.core.workload import Workload
from handfast.engines.local.multiway.intermediate import Seek
from handfast.engines.local.multiway.stages import Way
from handfast.flow.ring import RingTopology


def circular_ways(workload: Workload, ring: RingTopology) -> list[Way]:
    """By stream, the way of its new tuples: from the stage after its own to the one before it."""
    steps = [workload.steps((origin, *ring.way(origin))) for origin in workload.streams]
    return [[(to, Seek(start, to)) for start, to in own] for own in steps]
