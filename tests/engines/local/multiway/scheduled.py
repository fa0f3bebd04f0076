"""The real ring and the real stash, in threads whose every switch is chosen by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from handfast.core import join_core, orders, segment, stash
from handfast.core.recipe import Recipe, recipe
from handfast.core.workload import Workload
from handfast.engines.local.low_latency import LowLatency
from handfast.engines.local.multiway import choice, finder
from handfast.engines.local.multiway.choice import Layout
from handfast.engines.local.multiway.stage import JoinStage
from handfast.engines.local.options import LocalOptions
from handfast.engines.local.planning import lay_out
from handfast.kernels.course import Ranges
from handfast.kernels.partial import fan_out
from handfast.kernels.sizes import KernelSizes
from handfast.plan import ALGORITHMS
from tests.engines.local.baton import Baton, by_turns
from tests.engines.local.driven import Wrong
from tests.engines.local.schedule import fed
from tests.judges.rows import multiset, result_of
from tests.strategies import Case
from tests.strategies.graphs import graph_case

CASES = 25  # each is run by many schedules
STASHES = (None, None, 0, 1, 4)


@contextmanager
def small_pieces(piece: int, pairs: int) -> Iterator[None]:
    """So few tuples go from stage to stage together, and a scan gives what it finds in pieces of so few pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "_PIECE", piece)
        patch.setattr(choice, "_SMALLEST", 1)
        patch.setattr(Recipe.__init__, "__defaults__", (KernelSizes(pairs=max(2, pairs), candidates=pairs),))
        patch.setattr(Ranges.every_pair, "__defaults__", (pairs,))
        patch.setattr(fan_out, "__defaults__", (pairs,))
        for module, spare in ((segment, "_SPARE"), (stash, "_SPARE"), (join_core, "_SPARE_STRINGS")):
            patch.setattr(module, spare, 3)  # so few that have expired may linger
        patch.setattr(segment, "_FAN", 3)  # so many blocks become one
        recipe.cache_clear()
        try:
            yield
        finally:
            recipe.cache_clear()


Laid = tuple[str, tuple[int, ...]]


@contextmanager
def fickle(chance: random.Random) -> Iterator[list[Laid]]:
    """Every few tuples another layout is taken, whatever it costs; they are listed."""
    taken: list[Laid] = []
    lays_out = finder.choose

    def choose(workload: Workload, algorithm: str | None, present: Layout | None, arriving: int) -> Layout:
        if present is not None and chance.random() < 0.5:
            return present
        layout = lays_out(workload, algorithm or chance.choice(ALGORITHMS), None, arriving)
        layout = replace(layout, order=tuple(chance.sample(layout.order, len(layout.order))))
        taken.append((layout.algorithm, layout.order))
        return layout

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finder, "choose", choose)
        patch.setattr(orders, "_FIRST", 5)
        patch.setattr(orders, "_MOST", 9)
        yield taken


@contextmanager
def stages_by_turns(chance: random.Random) -> Iterator[Baton]:
    """As `by_turns`, and whoever counts or reads what was made and what has ended may be interrupted there too."""
    with by_turns(chance, capacity=2, rows=1) as baton, pytest.MonkeyPatch.context() as patch:
        for name in ("made", "ended"):
            patch.setattr(JoinStage, name, _counter(baton, f"_{name} now"), raising=False)
        yield baton


def _counter(baton: Baton, place: str) -> property:
    def read(stage: JoinStage) -> int:
        baton.switch()
        return stage.__dict__.get(place, 0)

    def write(stage: JoinStage, count: int) -> None:
        baton.switch()
        stage.__dict__[place] = count

    return property(read, write)


@dataclass(frozen=True)
class Judged:
    """A case of three to five streams, and what is right."""

    case: Case
    expected: Any


@cache
def judged() -> list[Judged]:
    """The first cases that have matches, and not too many of them."""
    found: list[Judged] = []
    seed = 0
    while len(found) < CASES:
        case = graph_case(seed)
        if len(case.streams) < 6 and not case.spec.in_order and case.spec.order == "event":
            expected = case.expected_at_close()
            if 5 <= sum(expected.values()) <= 60:
                found.append(Judged(case, expected))
        seed += 1
    return found


def check(seed: int) -> None:
    """Run a case by the schedule of this seed; raise if anything is wrong with what comes of it."""
    chance = random.Random(seed)
    own = judged()[seed % CASES]
    algorithm = ("circular", "stashed")[seed // CASES % 2]
    options = LocalOptions(
        cores=chance.choice((1, 1, 1, 2)),
        algorithm=algorithm,
        stage_buffer=chance.choice((1, 1, 2, 4)),
        stash_size=chance.choice(STASHES),
    )
    case = own.case
    layouts = fickle(chance) if chance.random() < 0.3 else nullcontext()
    with small_pieces(chance.choice((1, 2, 3)), chance.choice((1, 3))), layouts, stages_by_turns(chance):
        plan = lay_out(case.spec, {name: table.schema for name, table in case.tables.items()}, options)
        cores = LowLatency(plan, options)
        found: list[pa.RecordBatch] = []
        try:
            *steps, last = fed(case, plan)
            for step in steps:
                found += cores.feed(*step)
            found += cores.finish(*last)
        finally:
            cores.stop()
    rows = multiset(row for batch in found for row in result_of(pa.Table.from_batches([batch])))
    if own.expected != rows:
        raise Wrong(f"seed {seed}: other matches, {options}: {case}")


def holds(seed: int) -> bool:
    """Whether a schedule finds nothing wrong."""
    try:
        check(seed)
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
    return True
