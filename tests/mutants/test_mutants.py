"""Deliberate bugs: the agreement suite must catch every one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from handfast.core import join_core, recipe, route, span
from handfast.flow import admission, stamper
from handfast.flow import time as flow_time
from handfast.flow.block import EVERYWHERE, HOME
from handfast.kernels import codegen, columns, compile, keys, strings
from handfast.plan import Routing
from handfast.spec.expression import Op
from tests.agreement.runs import local_bounded, local_steps_and_close
from tests.strategies import Case

CASES = 400

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []


def mutant(bug: Mutant) -> Mutant:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug


def _change_rule(patch: pytest.MonkeyPatch, change: Callable[[int, int], tuple[int, int]]) -> None:
    rule = recipe.window_rule
    patch.setattr(recipe, "window_rule", lambda plan: replace(rule(plan), lengths=change(*rule(plan).lengths)))


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
    meet = join_core.JoinCore._pairs

    def without_ties(self: Any, stream: int, run: Any, stored: Any) -> Iterator[Any]:
        for new_at, stored_at in meet(self, stream, run, stored):
            apart = run.columns.times[new_at] != stored.times[stored_at]
            yield new_at[apart], stored_at[apart]

    patch.setattr(join_core.JoinCore, "_pairs", without_ties)


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
    patch.setattr(stamper, "in_order", lambda block, sequence: block.take(np.argsort(block.times, kind="stable")))


@mutant
def expiry_by_the_newest_time_instead_of_the_watermark(patch: pytest.MonkeyPatch) -> None:
    step = join_core.JoinCore.step

    def hasty(self: Any, admitted: Any, horizon: Any) -> Iterator[Any]:
        newest = max((block.most_time for block in admitted if block is not None), default=flow_time.NEVER)
        yield from step(self, admitted, replace(horizon, time=max(newest, horizon.time)))

    patch.setattr(join_core.JoinCore, "step", hasty)


@mutant
def a_border_copy_lost(patch: pytest.MonkeyPatch) -> None:
    by_range = route.Router._by_range

    def without_copies(self: Any, own: Any) -> Iterator[Any]:
        for core, rows, flags in by_range(self, own):
            kept = (flags & (HOME | EVERYWHERE)) != 0
            yield core, rows[kept], flags[kept]

    patch.setattr(route.Router, "_by_range", without_copies)


@mutant
def a_pair_of_tuples_that_went_everywhere_emitted_on_every_core(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(join_core.JoinCore, "_owned", lambda self, stream, new, stored: np.ones(len(new), np.bool_))


@mutant
def a_tuple_stored_on_every_core_it_meets(patch: pytest.MonkeyPatch) -> None:
    def insert(self: Any, stream: int, block: Any, run: Any) -> None:
        self._segments[stream].insert(block, run.columns, run.keys)

    patch.setattr(join_core.JoinCore, "_insert", insert)


@mutant
def a_late_row_joined(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow_time.Progress, "watermark", lambda self, lateness: flow_time.NEVER)


@mutant
def late_by_the_watermark_of_its_own_batch(patch: pytest.MonkeyPatch) -> None:
    admit = admission.Admission.admit

    def hasty(self: Any, blocks: Any, progress: Any) -> Any:
        self.progress = self.progress.advanced(progress)
        return admit(self, blocks, progress)

    patch.setattr(admission.Admission, "admit", hasty)


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
    def raw(values: Any) -> Any:
        return (
            values.astype(np.float64).view(np.uint64)
            if values.dtype.kind == "f"
            else values.astype(np.int64).view(np.uint64)
        )

    patch.setattr(keys, "canonical", raw)


@mutant
def wild_tuples_forgotten(patch: pytest.MonkeyPatch) -> None:
    make = keys.KeyMaker.make

    def tame(self: Any, side: int, own: Any) -> Any:
        made = make(self, side, own)
        return replace(made, wild=np.zeros(len(made.wild), np.bool_))

    patch.setattr(keys.KeyMaker, "make", tame)


@mutant
def partners_sought_in_their_own_bucket_only(patch: pytest.MonkeyPatch) -> None:
    from handfast.kernels.bands import BandScale

    patch.setattr(BandScale, "partners", lambda self, side, own: (self.buckets(own), self.buckets(own)))


@mutant
def strings_ordered_by_when_they_came(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(strings.StringTable, "ranks", lambda self: np.arange(len(self)))


@mutant
def new_tuples_do_not_meet_each_other(patch: pytest.MonkeyPatch) -> None:
    def step(self: Any, taken: Any, horizon: Any) -> Iterator[Any]:
        runs = [self._read(k, block) if block is not None else None for k, block in enumerate(taken)]
        for stream, (block, run) in enumerate(zip(taken, runs, strict=True)):
            if run is not None:
                yield from self._meet(stream, block, run)
        for stream, (block, run) in enumerate(zip(taken, runs, strict=True)):
            if run is not None:
                self._insert(stream, block, run)
        self._expire(horizon)

    patch.setattr(join_core.JoinCore, "step", step)


@mutant
def equal_keys_routed_by_more_than_the_key(patch: pytest.MonkeyPatch) -> None:
    by_hash = route.Router._by_hash

    def scattered(self: Any, own: Any) -> Iterator[Any]:
        if self._plan.routing is Routing.HASH:
            yield from self._everywhere(own)
        else:
            yield from by_hash(self, own)

    patch.setattr(route.Router, "_by_hash", scattered)


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
    """Cases of time windows and of count windows by turns."""
    return Case.of(seed) if seed % 2 else Case.of(seed).counted(random.Random(seed))


def _is_caught(case: Case) -> bool:
    """Whether the case tells by a wrong result."""
    if case.expected() != local_bounded(case):
        return True
    return (case.expected_of_steps(), case.expected_at_close()) != local_steps_and_close(case)


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_the_suite_catches(bug: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    caught = next((seed for seed in range(CASES) if _is_caught(_case(seed))), None)
    assert caught is not None, f"{CASES} cases did not tell that {bug.__name__.replace('_', ' ')}"


def test_without_a_bug_nothing_is_caught() -> None:
    assert [] == [seed for seed in range(40) if _is_caught(_case(seed))]
