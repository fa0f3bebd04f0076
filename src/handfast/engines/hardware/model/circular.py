"""The fast model of a ring: in every cycle what the RTL does, result by result and queue by queue.

What matches is given; the model says when. Numba compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handfast.engines.hardware.circular.shape import RingShape
from handfast.engines.hardware.model import ring_loop as loop
from handfast.engines.hardware.model.bits import Ints
from handfast.engines.hardware.model.pipelined import empty_stages
from handfast.engines.hardware.model.ring_lists import Lists
from handfast.engines.hardware.model.ring_stage import NEVER, NOTHING, Ring
from handfast.engines.hardware.options import ROUND_ROBIN
from handfast.errors import InternalError

_ROOM = 1 << 12  # results, or changes of levels, that there is room for at first


@dataclass(frozen=True, slots=True)
class Entering:
    """New tuples in the order of their rank.

    Attributes:
        origins: The stream of each.
        stops: By tuple and stream: how many tuples of the stream came before.
        held: By tuple and stream: how many of these the stream's window holds.
    """

    origins: Ints
    stops: Ints
    held: Ints


@dataclass(frozen=True, slots=True)
class RingRun:
    """What a ring did, or a line, which has one queue before each stage.

    Attributes:
        results: By result, in the order in which they come out, and stream: the place of its tuple.
        cycles: The cycle of each; the first tuple is offered in cycle 0.
        taken: The cycle in which each tuple entered.
        idle: The cycle from which on the circuit says that every match has come out.
        ended: From which cycle on it is known of each tuple that it has ended.
        scans: By stage, how many scans have begun.
        compared: By stage, how many groups of slots were compared.
        busy: How many all stages together had compared when the last tuple entered; scans that have not ended are left
            out.
        waited: By stage, for how many cycles what it had found had nowhere to go, while nothing else was to do.
        dropped: How many intermediates were dropped.
        highest: The most that each queue and FIFO held: by stage and hop, then the FIFO behind each stage.
        levels: By queue or FIFO and cycle its level, up to `idle`; None if not asked for.
        overwritten: How many pairs of a stash were overwritten that could still match.
        computed: For how many tuples pairs were computed that were missing from a stash.
    """

    results: NDArray[np.int64]
    cycles: Ints
    taken: Ints
    idle: int
    ended: Ints
    scans: Ints
    compared: Ints
    busy: int
    waited: Ints
    dropped: int
    highest: Ints
    levels: NDArray[np.int64] | None
    overwritten: int = 0
    computed: int = 0

    @property
    def utilisation(self) -> float:
        """The part of their cycles in which stages compare slots, until the last tuple enters."""
        return self.busy / (len(self.scans) * max(1, int(self.taken[-1])))


def run(shape: RingShape, entering: Entering, lists: Lists, *, every: int = 0, levels: bool = False) -> RingRun:
    """Run a ring from reset until it has given all results; its output is always taken.

    Args:
        shape: The ring.
        entering: What enters.
        lists: Which tuples match.
        every: Tuple k is offered from cycle k · `every` on; with 0, as soon as the one before it was taken.
        levels: Whether the level of every queue and FIFO is wanted for every cycle.
    """
    ring = _new_ring(shape, entering)
    network, fifos = empty_stages(
        shape.streams, fan_in=shape.stage_fan_in, depth=shape.network_buffer, margin=shape.margin
    )
    n = shape.streams
    course = new_course(n, n * (n - 1) + n, shape.in_flight, len(entering.origins), levels)
    while (status := loop.advance(course, ring, lists, network, fifos, shape.in_flight, every)) == loop.GOES_ON:
        course = with_more_room(course)
    if status == loop.STUCK:
        raise InternalError("The ring stands still before it has given every result")
    found = finished(course, ring.done, ring.scans, ring.compared, ring.waited)
    return found(int(ring.dropped.sum()), np.concatenate([ring.highest.reshape(-1), fifos.highest]), levels)


def finished(
    course: loop.Course, ended: Ints, scans: Ints, compared: Ints, waited: Ints
) -> Callable[[int, Ints, bool], RingRun]:
    """What was written down in a run that has come to its end; what is left to say: dropped, highest, levels."""

    def found(dropped: int, highest: Ints, levels: bool) -> RingRun:
        out = int(course.counts[loop.OUT])
        return RingRun(
            results=course.found[course.words[:out]],
            cycles=course.cycles[:out],
            taken=course.taken,
            idle=int(course.counts[loop.CYCLE]),
            ended=ended,
            scans=scans,
            compared=compared,
            busy=int(course.counts[loop.BUSY]),
            waited=waited,
            dropped=dropped,
            highest=highest,
            levels=_levels(course) if levels else None,
        )

    return found


def _new_ring(shape: RingShape, entering: Entering) -> Ring:
    """The stages of a ring, without an item."""
    n, hops = shape.streams, shape.streams - 1
    slots = max(shape.in_flight, shape.buffer)
    by_stage, by_hop = np.zeros(n, np.int64), np.zeros((n, hops), np.int64)
    by_slot = np.zeros((n, hops, slots), np.int64)
    return Ring(
        level=by_hop.copy(),
        highest=by_hop.copy(),
        head=by_hop.copy(),
        depth=np.array([shape.in_flight, *[shape.buffer] * (hops - 1)], np.int64),
        tuples=by_slot.copy(),
        kinds=by_slot.copy(),
        lists=by_slot.copy(),
        members=np.zeros((n, hops, slots, hops), np.int64),
        state=by_stage.copy(),
        hop=by_stage.copy(),
        wake=by_stage.copy(),
        group=by_stage.copy(),
        sent=by_stage.copy(),
        begun=by_hop.copy(),
        blocked=by_hop.copy(),
        passed=by_hop.copy(),
        kept_group=by_hop.copy(),
        kept_sent=by_hop.copy(),
        next=by_hop.copy(),
        pushes=np.full(n, NOTHING, np.int64),
        pops=np.full(n, NOTHING, np.int64),
        origins=np.asarray(entering.origins, np.int64),
        stops=np.asarray(entering.stops, np.int64),
        held=np.asarray(entering.held, np.int64),
        done=np.full(len(entering.origins), NEVER, np.int64),
        compared=by_stage.copy(),
        scans=by_stage.copy(),
        waited=by_stage.copy(),
        since=np.full(n, NOTHING, np.int64),
        dropped=by_stage.copy(),
        comparisons=shape.comparisons,
        round_robin=shape.turn == ROUND_ROBIN,
        drops=shape.drops,
    )


def new_course(streams: int, queues: int, in_flight: int, tuples: int, levels: bool) -> loop.Course:
    """A run that begins.

    Args:
        streams: How many there are.
        queues: How many queues and FIFOs have levels.
        in_flight: How many tuples may be under way.
        tuples: How many there are.
        levels: Whether levels are wanted.
    """
    return loop.Course(
        counts=np.zeros(9, np.int64),
        coming=np.zeros(streams, np.int64),
        comes=np.zeros((streams, in_flight), np.int64),
        taken=np.full(tuples, -1, np.int64),
        found=np.zeros((_ROOM, streams), np.int64),
        words=np.zeros(_ROOM, np.int64),
        cycles=np.zeros(_ROOM, np.int64),
        changes=np.zeros((max(_ROOM, 4 * queues) if levels else 0, 3), np.int64),
        noted=np.zeros(queues, np.int64),
    )


def with_more_room(course: loop.Course) -> loop.Course:
    """The same run with twice the room for what it writes down."""
    return course._replace(
        found=_doubled(course.found),
        words=_doubled(course.words),
        cycles=_doubled(course.cycles),
        changes=_doubled(course.changes),
    )


def _doubled(array: Ints) -> Ints:
    """With as much room again."""
    return np.concatenate([array, np.zeros_like(array)])


def _levels(course: loop.Course) -> NDArray[np.int64]:
    """By queue and cycle, from the changes."""
    found = np.zeros((len(course.noted), int(course.counts[loop.CYCLE]) + 1), np.int64)
    for cycle, queue, level in course.changes[: int(course.counts[loop.NOTED])].tolist():
        found[queue, cycle:] = level
    return found
