"""Deliberate bugs: the agreement suite must catch every one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from llvmlite import ir

import handfast as hf
from handfast.core import held, join_core, output, planner, probe, recipe, segment, span
from handfast.core.routing import range as range_routing
from handfast.core.routing.hash import HashRouting
from handfast.core.routing.meet import MeetRouting
from handfast.core.routing.outgoing import Outgoing
from handfast.core.routing.range import RangeRouting
from handfast.core.routing.routing import Routing
from handfast.flow import admission, stamper
from handfast.flow import time as flow_time
from handfast.flow.block import EVERYWHERE, HOME
from handfast.flow.order import RANK
from handfast.kernels import columns, compute, filters, strings
from handfast.kernels.compiler import codegen, compile
from handfast.kernels.index import keys
from handfast.spec.expression import Op
from handfast.spec.join import HOW
from handfast.spec.moment import LATEST
from tests.agreement.order import given_by_steps, groups, stands_in_order
from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.judges.rows import result_of, tables_of
from tests.strategies import MULTI, SHAPES, Case

CASES = 600  # so many that every shape has its turn

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []
# where to begin the search for a case that tells, if it is far from the first
EARLIEST = {
    "an_error_counts_though_its_value_is_not_chosen": 417,
    "a_pair_of_tuples_that_went_everywhere_emitted_on_every_core": 295,
    "an_idle_stream_waited_for": 137,
    "wild_tuples_of_an_outer_join_left_where_they_fall": 88,
    "expiry_a_microsecond_early": 106,
}


def mutant(bug: Mutant) -> Mutant:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug


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
    pairs = probe.Prober._pairs

    def without_ties(self: Any, start: int, to: int, run: Any, own: Any) -> Iterator[Any]:
        for at, found in pairs(self, start, to, run, own):
            apart = run.times[at] != self._segments[to].times[found]
            yield at[apart], found[apart]

    patch.setattr(probe.Prober, "_pairs", without_ties)


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
    admit_times = admission.admit_times
    patch.setattr(admission, "admit_times", lambda column, first, last: admit_times(column, first, LATEST))


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
def a_null_matched(patch: pytest.MonkeyPatch) -> None:
    decode = columns.ColumnReader._decode
    patch.setattr(columns.ColumnReader, "_decode", lambda self, column, type_: (decode(self, column, type_)[0], None))


@mutant
def a_row_without_a_time_taken_in(patch: pytest.MonkeyPatch) -> None:
    def lenient(column: Any, valid_from: int, valid_to: int) -> Any:
        return flow_time.micros(column), np.zeros(len(column), np.bool_)

    patch.setattr(admission, "admit_times", lenient)


@mutant
def an_overflow_taken_for_a_number(patch: pytest.MonkeyPatch) -> None:
    arithmetic = codegen.Emitter._arithmetic
    patch.setattr(codegen.Emitter, "_arithmetic", lambda self, *args: (arithmetic(self, *args)[0], None))


@mutant
def an_error_on_the_right_of_or_counts_always(patch: pytest.MonkeyPatch) -> None:
    lazy = codegen.Emitter._lazy

    def eager(self: Any, op: Op, a: Any, b: Any) -> Any:
        value = lazy(self, op, a, b)
        return replace(value, error=self._either(a.error, b.error))

    patch.setattr(codegen.Emitter, "_lazy", eager)


@mutant
def nan_equal_to_nothing(patch: pytest.MonkeyPatch) -> None:
    compare = codegen.Emitter._compare

    def ieee(self: Any, op: Op, a: ir.Value, b: ir.Value, type_: Any) -> ir.Value:
        if type_.is_floating:
            return self._b.fcmp_ordered({Op.EQ: "==", Op.LT: "<", Op.LE: "<="}[op], a, b)
        return compare(self, op, a, b, type_)

    patch.setattr(codegen.Emitter, "_compare", ieee)


@mutant
def minus_zero_in_another_cell_than_zero(patch: pytest.MonkeyPatch) -> None:
    canonical = keys.canonical

    def raw(values: Any) -> Any:
        return values.astype(np.float64).view(np.uint64) if values.dtype.kind == "f" else canonical(values)

    patch.setattr(keys, "canonical", raw)


@mutant
def what_no_kernel_can_say_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(filters.Filters, "holding", lambda self, runs, at: np.arange(len(at[0])))


@mutant
def an_error_counts_though_its_value_is_not_chosen(patch: pytest.MonkeyPatch) -> None:
    choice = codegen.Emitter._choice

    def eager(self: Any, op: Op, args: list[Any], type_: Any) -> Any:
        value = choice(self, op, args, type_)
        return replace(value, error=self._either(*(arg.error for arg in args)))

    patch.setattr(codegen.Emitter, "_choice", eager)


@mutant
def a_function_of_null_has_a_value(patch: pytest.MonkeyPatch) -> None:
    run = compute._Rule.run

    def careless(self: Any, known: Any, table: Any, count: int) -> Any:
        return {column: (values, None) for column, (values, _) in run(self, known, table, count).items()}

    patch.setattr(compute._Rule, "run", careless)


@mutant
def wild_tuples_forgotten(patch: pytest.MonkeyPatch) -> None:
    make = keys.KeyMaker.make

    def tame(self: Any, own: Any) -> Any:
        made = make(self, own)
        return replace(made, wild=np.zeros(len(made.wild), np.bool_))

    patch.setattr(keys.KeyMaker, "make", tame)


@mutant
def partners_sought_in_their_own_bucket_only(patch: pytest.MonkeyPatch) -> None:
    from handfast.kernels.index.bands import BandScale

    patch.setattr(BandScale, "partners", lambda self, side, own: (self.buckets(own), self.buckets(own)))


@mutant
def strings_ordered_by_when_they_came(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strings.StringTable, "ranks", lambda self: np.arange(len(self)))


@mutant
def new_tuples_do_not_meet_each_other(patch: pytest.MonkeyPatch) -> None:
    def decided(self: Any, taken: Any, horizon: Any) -> Iterator[Any]:
        every = [
            self._read(k, block, np.zeros(len(block), np.bool_)) for k, block in enumerate(taken) if block is not None
        ]
        for new in every:
            for members in self._prober.matches(new):
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

    def careless(self: Any, new: Any) -> None:
        hopeless = np.zeros(len(new.block), np.bool_)
        for own in new.keys.values():
            hopeless |= own.dead
        new.marks |= hopeless
        insert(self, new)

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


@mutant
def a_third_member_outside_its_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(probe.Prober, "_fitting", lambda self, new, members, start, to: members)


@mutant
def what_is_asked_of_three_streams_at_once_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(probe.Prober, "_whole", lambda self, new, members: members)


@mutant
def keys_that_not_all_streams_share_taken_as_common(patch: pytest.MonkeyPatch) -> None:
    destinations = HashRouting.destinations

    def careless(self: Any, tuples: Any) -> Iterator[Any]:
        keyed = tuples.plan.keys[tuples.stream]
        return destinations(self, tuples) if keyed else tuples.to_homes(tuples.core_by_content())

    patch.setattr(HashRouting, "destinations", careless)


@pytest.fixture(autouse=True)
def fresh_kernels() -> Iterator[None]:
    """No kernel or recipe made with a bug outlives its test."""
    caches = (recipe.recipe, compile.scan_kernel, compile.check_kernel, compile.derive_kernel)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def _case(seed: int) -> Case:
    """Cases of time and of count windows, of every join, of two streams and more, of admission and orders, by turns."""
    kind, number = seed % 6, seed // 6
    if kind == 5:
        chance = random.Random(seed)
        case = Case.of(seed)
        return (
            case.valid(chance) if number % 3 == 0 else case.idle(chance) if number % 3 == 1 else case.arriving(chance)
        )
    if kind == 0:
        return Case.of(seed, shape=SHAPES[number % len(SHAPES)])
    if kind == 1:
        return Case.of(seed).counted(random.Random(seed))
    if kind == 2:
        case = Case.of(seed, shape=MULTI[number % len(MULTI)])
        return case if seed % 2 else case.counted(random.Random(seed))
    if kind == 3:
        case = Case.of(seed).asked(how=HOW[number % len(HOW)], in_order=True)
        return case.counted(random.Random(seed)) if number % 4 == 3 else case
    case = Case.of(seed).asked(how=("left", "right", "full", "semi", "anti")[number % 5])
    return case.counted(random.Random(seed)) if number % 2 else case


def _is_caught(case: Case) -> bool:
    """Whether the case tells by a wrong result."""
    if case.expected() != local_bounded(case):
        return True
    if case.spec.in_order:
        table = hf.join(case.tables, **case.kwargs, options=hf.LocalOptions(cores=case.cores))
        if not stands_in_order(result_of(table), groups(case, tables_of(case.tables))):
            return True
        if not stands_in_order(given_by_steps(case), groups(case, tables_of(case.admitted))):
            return True
    return (case.expected_of_steps(), case.expected_at_close()) != local_steps_and_close(case)


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_the_suite_catches(bug: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    first = EARLIEST.get(bug.__name__, 0)
    caught = next((seed for seed in [*range(first, CASES), *range(first)] if _is_caught(_case(seed))), None)
    assert caught is not None, f"{CASES} cases did not tell that {bug.__name__.replace('_', ' ')}"


def test_without_a_bug_nothing_is_caught() -> None:
    assert [] == [seed for seed in range(60) if _is_caught(_case(seed))]
