"""Rings and stashes with a broken rule: each must be told from a right one by what comes out of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handfast.core.join_core import JoinCore
from handfast.core.probe import Arrival, Prober
from handfast.core.segment import Segment
from handfast.core.stash import Stash
from handfast.engines.local.channel import Channel
from handfast.engines.local.multiway import stashed
from handfast.engines.local.multiway.intermediate import Intermediate, Seek
from handfast.engines.local.multiway.stage import JoinStage
from handfast.engines.local.multiway.stages import Stages
from handfast.engines.local.multiway.stashed import FromStash, Keep
from handfast.flow.ring import RingTopology

Patch = pytest.MonkeyPatch


# -- on the way from stage to stage ----------------------------------------------------------------------------------


class _Lossy(dict[int, Any]):
    """Where a stage hands on to, which now and then loses what it is handed."""

    def __init__(self, stage: JoinStage, onward: Any) -> None:
        super().__init__({hop: _LossyChannel(stage, channel) for hop, channel in onward.items()})


class _LossyChannel:
    def __init__(self, stage: JoinStage, channel: Channel[Any]) -> None:
        self._stage, self._channel, self._sent = stage, channel, 0

    @property
    def room(self) -> int:
        return self._channel.room

    def send(self, message: Any) -> None:
        self._sent += 1
        if self._sent % 3 == 2:
            self._stage.ended += 1
        else:
            self._channel.send(message)


def an_intermediate_dropped(patch: Patch) -> None:
    """Every third that a stage hands on never arrives."""
    starts = Stages.__init__

    def start(self: Stages, *args: Any) -> None:
        starts(self, *args)
        for own in self.stages:
            own.onward = _Lossy(own, own.onward)

    patch.setattr(Stages, "__init__", start)


def an_intermediate_handed_on_twice(patch: Patch) -> None:
    """A stage scans again what it has just ended."""
    drops = Channel.drop_first

    def drop_first(self: Channel[Any]) -> None:
        first = self._messages[0][1]
        again = isinstance(first, Intermediate) and len(first.hops) == 1 and self.taken % 3 == 0
        if not again or getattr(self, "again", None) is first:
            drops(self)
        else:
            setattr(self, "again", first)  # noqa: B010 — a note of the test's own

    patch.setattr(Channel, "drop_first", drop_first)
    advances = JoinStage._advance

    def advance(self: JoinStage, hop: int) -> bool:
        before, ended = self.buffers[hop].taken, self.ended
        did = advances(self, hop)
        if self.ended > ended and self.buffers[hop].taken == before:
            self.ended = ended
        return did

    patch.setattr(JoinStage, "_advance", advance)


def what_an_index_found_not_copied(patch: Patch) -> None:
    """The index writes over what waits before the next stage."""
    patch.setattr(Intermediate, "kept", lambda self: self)


def the_end_told_too_early(patch: Patch) -> None:
    """The driver is done when everything has been let in."""
    patch.setattr(Stages, "_are_empty", lambda self: True)


def what_was_made_counted_before_what_has_ended(patch: Patch) -> None:
    """Both sums can agree though something is under way."""

    def are_empty(self: Stages) -> bool:
        made = sum(stage.made for stage in self.stages)
        return sum(stage.ended for stage in self.stages) == self._submitted + made

    patch.setattr(Stages, "_are_empty", are_empty)


def made_counted_after_it_was_handed_on(patch: Patch) -> None:
    """The next stage may be done with it before."""
    sends = Channel.send

    def send(self: Channel[Any], message: Any) -> None:
        sends(self, message)
        counts = getattr(self, "counts", None)
        if counts is not None:
            counts.made += 1

    def advance(self: JoinStage, hop: int) -> bool:
        made = self.made
        onward = self.onward.get(hop)
        if onward is not None:
            setattr(onward, "counts", self)  # noqa: B010 — a note of the test's own
            self.made = made - 1
        ended = self.ended
        did = advances(self, hop)
        if onward is not None and (not did or self.ended != ended):
            self.made = made
        return did

    advances = JoinStage._advance
    patch.setattr(Channel, "send", send)
    patch.setattr(JoinStage, "_advance", advance)


# -- who meets whom --------------------------------------------------------------------------------------------------


def partners_that_were_stored_later_counted(patch: Patch) -> None:
    """A stage does not look at where the new tuples' partners stop."""

    def seek(self: Seek, partial: Intermediate) -> Iterator[Any]:
        return partial.prober.extended(partial.arrival.new, partial.members, self.start, self.to)

    patch.setattr(Seek, "__call__", seek)


def the_partner_that_was_stored_last_missed(patch: Patch) -> None:
    """The stop is one too low."""
    extended = Prober.extended

    def short(self: Prober, new: Any, partial: Any, start: int, to: int, stop: int | None = None) -> Iterator[Any]:
        return extended(self, new, partial, start, to, None if stop is None else stop - 1)

    patch.setattr(Prober, "extended", short)


def tuples_that_start_at_the_wrong_stage(patch: Patch) -> None:
    """A new tuple enters one stage late, and passes its own at last."""
    ways = RingTopology.way

    def way(self: RingTopology, origin: int) -> tuple[int, ...]:
        right = ways(self, origin)
        return (*right[1:], origin) if origin == self.order[0] else right

    patch.setattr(RingTopology, "way", way)


def expired_while_the_ring_is_busy(patch: Patch) -> None:
    """Tuples go at the beginning of the step that takes them out of their windows, not at its end."""
    steps = JoinCore.step

    def step(self: JoinCore, admitted: Any, horizon: Any) -> Iterator[Any]:
        finder = self._finder
        assert finder is not None

        class Hasty:
            cut, moved = staticmethod(finder.cut), staticmethod(finder.moved)

            @staticmethod
            def find(prober: Prober, arrivals: Any) -> Any:
                for stream, segment in enumerate(self.segments):
                    span = self.plan.join.spec.streams[stream].window
                    length = getattr(span, "length", None)
                    if length is not None:
                        segment.expire(lambda block, length=length: block.most_time + length <= horizon.time)
                return finder.find(prober, arrivals)

        self._finder = Hasty  # type: ignore[assignment]
        try:
            yield from steps(self, admitted, horizon)
        finally:
            self._finder = finder

    patch.setattr(JoinCore, "step", step)


def what_is_asked_of_all_members_forgotten(patch: Patch) -> None:
    """A partner fits the member that it was found from, and nobody looks at the others."""
    patch.setattr(Prober, "fitting", lambda self, new, members, start, to: members)


def own_stage_loses_its_tuples(patch: Patch) -> None:
    """The stage that holds the window of the new tuples' own stream passes nothing on."""
    patch.setattr(stashed, "pass_on", lambda partial: iter(()))


# -- the stash -------------------------------------------------------------------------------------------------------


def positions_in_the_stash_that_are_stale(patch: Patch) -> None:
    """The stash is not told that tuples were stored anew, at other positions."""
    patch.setattr(Stash, "moved", lambda self, before, after: None)


def an_overwrite_missed(patch: Patch) -> None:
    """A pair makes room for another, and the stash counts as whole."""

    def overwrite(self: Stash, count: int, segments: Any) -> None:
        self.first += count

    patch.setattr(Stash, "_overwrite", overwrite)


def nothing_computed_again(patch: Patch) -> None:
    """What the stash has is taken for all there is."""
    patch.setattr(Stash, "is_whole", lambda self, segments: True)


def computed_again_once_only(patch: Patch) -> None:
    """After one look the stash counts as whole again."""
    is_whole = Stash.is_whole

    def short(self: Stash, segments: Any) -> bool:
        whole = is_whole(self, segments)
        self._lost = None
        return whole

    patch.setattr(Stash, "is_whole", short)


def computed_again_until_the_first_that_was_lost_has_expired(patch: Patch) -> None:
    """Of what was overwritten the lowest positions are remembered."""
    overwrites = Stash._overwrite

    def overwrite(self: Stash, count: int, segments: Any) -> None:
        before = self._lost
        overwrites(self, count, segments)
        if before is not None:
            self._lost = before

    patch.setattr(Stash, "_overwrite", overwrite)


def what_was_lost_forgotten_when_tuples_move(patch: Patch) -> None:
    """A stash whose tuples were stored anew counts as whole."""
    patch.setattr(Stash, "_moved_bounds", lambda self, lost, before, after: None)


def the_windows_a_stash_begins_with_forgotten(patch: Patch) -> None:
    """A new stash counts as whole though there are tuples already."""

    def begin(self: Stash, stops: Any, segments: Any) -> None:
        self._empty()
        self._lost = None

    patch.setattr(Stash, "begin", begin)


def the_first_piece_kept_alone(patch: Patch) -> None:
    """Of the pairs of new tuples those of one piece are kept."""

    def keep(self: Keep, partial: Intermediate) -> Iterator[Any]:
        first = True
        for members in Seek(partial.arrival.new.stream, self.to)(partial):
            if first:
                self.stash.add(partial.arrival, members, partial.prober.segments)
            first = False
            yield members

    patch.setattr(Keep, "__call__", keep)


def pairs_kept_of_tuples_that_are_stored_elsewhere(patch: Patch) -> None:
    """A core keeps the pairs of a tuple that another core stores."""
    adds = Stash.add

    def add(self: Stash, arrival: Arrival, members: Any, segments: Any) -> None:
        adds(self, replace(arrival, kept=np.ones_like(arrival.kept)), members, segments)

    patch.setattr(Stash, "add", add)


def tuples_that_look_into_the_stash_first(patch: Patch) -> None:
    """New tuples of the other streams overtake those whose pairs are to be kept."""
    sends = Stages._send

    def send(self: Stages, prober: Prober, waiting: deque[Arrival]) -> None:
        if waiting and isinstance(self.ways[0][0][1], Keep | FromStash):
            first = sorted(waiting, key=lambda own: isinstance(self.ways[own.new.stream][0][1], Keep))
            waiting.clear()
            waiting.extend(first)
        sends(self, prober, waiting)

    patch.setattr(Stages, "_send", send)


def moved_tuples_taken_for_expired_ones(patch: Patch) -> None:
    """A block that comes first is not found again."""
    moves = Segment.moved

    def moved(self: Segment, positions: Any, to: Segment) -> Any:
        there = moves(self, positions, to)
        there[there == to.first] = -1
        return there

    patch.setattr(Segment, "moved", moved)


BROKEN: list[Callable[[Patch], None]] = [
    an_intermediate_dropped,
    an_intermediate_handed_on_twice,
    what_an_index_found_not_copied,
    the_end_told_too_early,
    what_was_made_counted_before_what_has_ended,
    made_counted_after_it_was_handed_on,
    partners_that_were_stored_later_counted,
    the_partner_that_was_stored_last_missed,
    tuples_that_start_at_the_wrong_stage,
    expired_while_the_ring_is_busy,
    what_is_asked_of_all_members_forgotten,
    own_stage_loses_its_tuples,
    an_overwrite_missed,
    nothing_computed_again,
    computed_again_once_only,
    computed_again_until_the_first_that_was_lost_has_expired,
    what_was_lost_forgotten_when_tuples_move,
    the_windows_a_stash_begins_with_forgotten,
    the_first_piece_kept_alone,
    pairs_kept_of_tuples_that_are_stored_elsewhere,
    tuples_that_look_into_the_stash_first,
]
# told by sessions that let many tuples go
OF_MOVES: list[Callable[[Patch], None]] = [
    positions_in_the_stash_that_are_stale,
    moved_tuples_taken_for_expired_ones,
]
