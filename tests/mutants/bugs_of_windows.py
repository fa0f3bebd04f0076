"""Bugs of windows, ties, watermarks and of who meets whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handfast.core import join_core, output, probe, recipe, span
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.meet import MeetRouting
from handfast.core.routing.range import RangeRouting
from handfast.core.routing.routing import Routing
from handfast.flow import admission, stamper
from handfast.flow import time as flow_time
from handfast.flow.block import EVERYWHERE, HOME
from handfast.spec.moment import LATEST
from tests.mutants.registry import mutant


def _change_rule(patch: pytest.MonkeyPatch, change: Callable[[int, int], tuple[int, int]]) -> None:
    rule = recipe.window_rule

    def changed(plan: Any, pair: Any) -> Any:
        made = rule(plan, pair)
        return replace(made, lengths=change(*made.lengths))

    patch.setattr(recipe, "window_rule", changed)


@mutant
def at_most_for_less_than_at_the_edge_of_the_first_window(patch: pytest.MonkeyPatch) -> None:
    _change_rule(patch, lambda first, second: (first + 1, second))


@mutant
def at_most_for_less_than_at_the_edge_of_the_second_window(patch: pytest.MonkeyPatch) -> None:
    _change_rule(patch, lambda first, second: (first, second + 1))


@mutant
def the_windows_of_the_two_streams_exchanged(patch: pytest.MonkeyPatch) -> None:
    _change_rule(patch, lambda first, second: (second, first))


@mutant
def tuples_of_the_same_time_do_not_meet(patch: pytest.MonkeyPatch) -> None:
    pairs = probe.Prober.pairs

    def without_ties(
        self: Any, start: int, to: int, run: Any, keys: Any, stored: Any, stop: Any = None
    ) -> Iterator[Any]:
        for at, found in pairs(self, start, to, run, keys, stored, stop):
            apart = run.times[at] != stored.columns().times[found]
            yield at[apart], found[apart]

    patch.setattr(probe.Prober, "pairs", without_ties)


@mutant
def expiry_a_microsecond_early(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, block: Any, horizon: Any) -> bool:
        return block.most_time + self.length <= horizon.time + 1

    patch.setattr(span.TimeSpan, "is_over", hasty)


@mutant
def expiry_a_tuple_early(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, block: Any, horizon: Any) -> bool:
        return int(block.seen[self.stream].max()) <= horizon.counts[self.stream] - self.rows

    patch.setattr(span.CountSpan, "is_over", hasty)


@mutant
def ties_between_the_streams_the_other_way_round(patch: pytest.MonkeyPatch) -> None:
    came_before = stamper.came_before
    patch.setattr(stamper, "came_before", lambda times, at, is_first: came_before(times, at, not is_first))


@mutant
def a_place_given_before_it_is_final(patch: pytest.MonkeyPatch) -> None:
    stamp = stamper.Stamper.stamp
    patch.setattr(stamper.Stamper, "stamp", lambda self, arrivals, watermark: stamp(self, arrivals, flow_time.END))


@mutant
def ties_within_a_stream_by_arrival(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stamper, "by_time", lambda block, sequence: block.take(np.argsort(block.times, kind="stable")))


@mutant
def expiry_by_the_newest_time_instead_of_the_watermark(patch: pytest.MonkeyPatch) -> None:
    step = join_core.JoinCore.step

    def hasty(self: Any, admitted: Any, horizon: Any) -> Iterator[Any]:
        newest = max((block.most_time for block in admitted if block is not None), default=flow_time.NEVER)
        yield from step(self, admitted, replace(horizon, time=max(newest, horizon.time)))

    patch.setattr(join_core.JoinCore, "step", hasty)


@mutant
def a_border_copy_lost(patch: pytest.MonkeyPatch) -> None:
    destinations = RangeRouting.destinations

    def without_copies(self: Any, tuples: Any) -> Iterator[Any]:
        for core, rows, flags in destinations(self, tuples):
            kept = (flags & (HOME | EVERYWHERE)) != 0
            yield core, rows[kept], flags[kept]

    patch.setattr(RangeRouting, "destinations", without_copies)


@mutant
def a_pair_of_tuples_that_went_everywhere_emitted_on_every_core(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RangeRouting, "emitted", Routing.emitted)


@mutant
def a_tuple_stored_on_every_core_it_meets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MeetRouting, "kept", Routing.kept)


@mutant
def a_late_row_joined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow_time.Progress, "watermark", lambda self, lateness: flow_time.NEVER)


@mutant
def late_by_the_watermark_of_its_own_batch(patch: pytest.MonkeyPatch) -> None:
    admit = admission.Admission.admit

    def hasty(self: Any, blocks: Any, progress: Any, now: int) -> Any:
        self.progress = self.progress.advanced(progress)
        return admit(self, blocks, progress, now)

    patch.setattr(admission.Admission, "admit", hasty)


@mutant
def a_row_after_the_valid_times_taken_in(patch: pytest.MonkeyPatch) -> None:
    invalid = admission._invalid
    patch.setattr(admission, "_invalid", lambda block, column, first, _: invalid(block, column, first, LATEST))


@mutant
def an_idle_stream_waited_for(patch: pytest.MonkeyPatch) -> None:
    heard = admission.Admission._heard

    def patient(self: Any, sent: Any, now: int) -> Any:
        self._timeouts = [flow_time.END] * len(self._timeouts)
        return heard(self, sent, now)

    patch.setattr(admission.Admission, "_heard", patient)


@mutant
def the_highest_time_for_that_of_the_last_arrival(patch: pytest.MonkeyPatch) -> None:
    def highest(self: Any, new: Any, members: Any) -> Any:
        return np.max([self._times(new, stream, at) for stream, at in members.items()], axis=0)

    patch.setattr(output.Output, "_at_times", highest)


@mutant
def arrivals_put_in_the_order_of_time(patch: pytest.MonkeyPatch) -> None:
    stamp = stamper.Stamper.stamp

    def sorted_first(self: Any, arrivals: Any, watermark: int) -> Any:
        return stamp(self, [a.take(np.argsort(a.times, kind="stable")) if a else a for a in arrivals], watermark)

    patch.setattr(stamper.Stamper, "stamp", sorted_first)


@mutant
def the_furthest_stream_sets_the_watermark(patch: pytest.MonkeyPatch) -> None:
    def furthest(self: Any, lateness: Any) -> int:
        return max(high - late for high, late in zip(self.highest, lateness, strict=True))

    patch.setattr(flow_time.Progress, "watermark", furthest)


@mutant
def new_tuples_do_not_meet_each_other(patch: pytest.MonkeyPatch) -> None:
    def decided(self: Any, taken: Any, horizon: Any) -> Iterator[Any]:
        every = [
            self._read(k, block, np.zeros(len(block), np.bool_)) for k, block in enumerate(taken) if block is not None
        ]
        for new in every:
            for members in self._prober.matches(new, self._orders.of(new.stream, self._segments)):
                yield from self._output.matched(new, self._emitted(new, members))
            yield from self._output.completed(new)
        for new in every:
            self._insert(new)
        yield from self._output.unmatched(horizon)

    patch.setattr(join_core.JoinCore, "_decided", decided)


@mutant
def equal_keys_routed_by_more_than_the_key(patch: pytest.MonkeyPatch) -> None:
    destinations = HashRouting.destinations

    def scattered(self: Any, tuples: Any) -> Iterator[Any]:
        keyed = tuples.plan.keys[tuples.stream]
        return tuples.to_homes(tuples.core_by_content()) if keyed else destinations(self, tuples)

    patch.setattr(HashRouting, "destinations", scattered)


@mutant
def a_third_member_outside_its_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(probe.Prober, "fitting", lambda self, new, members, start, to: members)


@mutant
def what_is_asked_of_three_streams_at_once_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(probe.Prober, "whole", lambda self, new, members: members)


@mutant
def keys_that_not_all_streams_share_taken_as_common(patch: pytest.MonkeyPatch) -> None:
    destinations = HashRouting.destinations

    def careless(self: Any, tuples: Any) -> Iterator[Any]:
        keyed = tuples.plan.keys[tuples.stream]
        return destinations(self, tuples) if keyed else tuples.to_homes(tuples.core_by_content())

    patch.setattr(HashRouting, "destinations", careless)
