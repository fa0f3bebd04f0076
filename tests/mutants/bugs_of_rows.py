"""Bugs of the rows that are given: unmatched ones, semi joins, the result in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from handfast.core import held, join_core, output, planner, segment, span
from handfast.core.routing import range as range_routing
from handfast.core.routing.outgoing import Outgoing
from handfast.flow import time as flow_time
from handfast.flow.order import RANK
from tests.mutants.registry import mutant


@mutant
def a_row_that_matches_nothing_given_twice(patch: pytest.MonkeyPatch) -> None:
    unmatched = output.Output.unmatched

    def forgetful(self: Any, horizon: Any) -> Iterator[Any]:
        before = [[marks.copy() for marks in own.marks] for own in self._segments]
        yield from unmatched(self, horizon)
        for own, marks in zip(self._segments, before, strict=True):
            own.marks = marks

    patch.setattr(output.Output, "unmatched", forgetful)


@mutant
def a_row_that_matches_nothing_given_before_it_is_certain(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, block: Any, horizon: Any) -> Any:
        return block.times <= horizon.time

    patch.setattr(span.TimeSpan, "over", hasty)


@mutant
def a_row_that_matches_nothing_given_a_tuple_early(patch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, block: Any, horizon: Any) -> Any:
        if horizon.time == flow_time.END:
            return np.ones(len(block), np.bool_)
        return block.seen[self.stream] <= horizon.counts[self.stream] - self.rows

    patch.setattr(span.CountSpan, "over", hasty)


@mutant
def a_row_that_matches_nothing_kept_back_at_the_end(patch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Any, block: Any, horizon: Any) -> Any:
        return block.seen[self.stream] < horizon.counts[self.stream] - self.rows

    patch.setattr(span.CountSpan, "over", forgetful)


@mutant
def a_row_that_met_a_stored_one_given_as_unmatched(patch: pytest.MonkeyPatch) -> None:
    settle = output._settle
    patch.setattr(
        output,
        "_settle",
        lambda new, own, stream, rows: np.unique(rows) if stream == new.stream else settle(new, own, stream, rows),
    )


@mutant
def a_stored_row_that_met_a_new_one_given_as_unmatched(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment.Segment, "settle", lambda self, positions: np.unique(positions))


@mutant
def a_row_without_a_key_forgotten_though_it_matches_nothing(patch: pytest.MonkeyPatch) -> None:
    insert = join_core.JoinCore._insert

    def careless(self: Any, new: Any) -> Any:
        hopeless = np.zeros(len(new.block), np.bool_)
        for own in new.keys.values():
            hopeless |= own.dead
        new.marks = new.marks | hopeless
        return insert(self, new)

    patch.setattr(join_core.JoinCore, "_insert", careless)


@mutant
def preserved_rows_on_several_cores(patch: pytest.MonkeyPatch) -> None:
    make_plan = planner.make_plan

    def other_anchor(*args: Any, **asked: Any) -> Any:
        made = make_plan(*args, **asked)
        return replace(made, anchor=1 - made.anchor) if made.join.preserved else made

    patch.setattr("handfast.engines.local.planning.make_plan", other_anchor)


@mutant
def wild_tuples_of_an_outer_join_left_where_they_fall(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(range_routing, "_WILD_CORE", -1)


@mutant
def tuples_divided_among_cores_that_all_must_see(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Outgoing, "to_every_core", lambda self: self.to_homes(self.core_by_content()))


@mutant
def a_semi_row_given_with_every_match(patch: pytest.MonkeyPatch) -> None:
    def careless(self: Any, new: Any, members: Any) -> Iterator[Any]:
        rows = members[0]
        if len(rows):
            yield self._given({0: self._rows(new, 0, rows)}, self._times(new, 0, rows), self._at_seen(new, members))

    patch.setattr(output.Output, "_semi", careless)


@mutant
def a_semi_row_at_its_last_match(patch: pytest.MonkeyPatch) -> None:
    completed = output.Output.completed

    def late(self: Any, new: Any) -> Iterator[Any]:
        self._firsts = [(rows, times, tuple(-own for own in seen)) for rows, times, seen in self._firsts]
        yield from completed(self, new)

    patch.setattr(output.Output, "completed", late)


def _as_found(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.drop_columns([RANK]) for batch in batches)


@mutant
def matches_in_the_order_they_are_found(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("handfast.engines.local.engine.by_rank", _as_found)


@mutant
def matches_given_before_the_watermark_passes_them(patch: pytest.MonkeyPatch) -> None:
    from handfast.spec.join import BoundJoin

    given = output.Output._given
    patch.setattr(BoundJoin, "stamped", property(lambda self: self.counted))
    patch.setattr(output.Output, "_at_seen", lambda self, new, members: (self._at_times(new, members),))
    patch.setattr(output.Output, "_given", lambda self, own, times, seen: given(self, own, times, seen or (times,)))


@mutant
def rows_in_order_given_as_soon_as_they_are_decided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(held.Held, "release", lambda self, decided, horizon: decided)


@mutant
def rows_in_order_given_a_moment_early(patch: pytest.MonkeyPatch) -> None:
    sift = held.Held._sift

    def hasty(self: Any, rows: Any, horizon: Any, waiting: Any) -> Iterator[Any]:
        ahead = flow_time.Horizon(min(horizon.time + 1, flow_time.END), tuple(n + 1 for n in horizon.counts))
        yield from sift(self, rows, ahead, waiting)

    patch.setattr(held.Held, "_sift", hasty)


@mutant
def rows_in_order_held_for_one_of_the_preserved_streams_only(patch: pytest.MonkeyPatch) -> None:
    start = held.Held.__init__

    def careless(self: Any, join: Any) -> None:
        start(self, join)
        self._spans = self._spans[:1]

    patch.setattr(held.Held, "__init__", careless)


@mutant
def rows_of_a_step_in_the_order_they_are_found(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("handfast.engines.local.low_latency.by_rank", _as_found)
