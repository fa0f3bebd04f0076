"""Deliberate bugs in Spark's operator, sequencer and packing: scenarios must catch each of them, without Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import handfast as hf
from handfast.core.join_core import JoinCore
from handfast.core.manifest import Manifest
from handfast.core.planner import make_plan
from handfast.engines.spark import arrivals, blocks, operator, pack, sequence
from handfast.engines.spark.core_keys import core_key
from handfast.engines.spark.kept import KeptCores
from handfast.engines.spark.operator import JoinProcessor
from handfast.engines.spark.output import METRICS, total
from handfast.engines.spark.pack import SEQUENCER, Pack
from handfast.engines.spark.packed import NOW
from handfast.engines.spark.rows import LATE, REJECTED, RefusedRows
from handfast.engines.spark.sequence import SequenceProcessor
from handfast.errors import HandfastError
from handfast.flow.metrics import Metrics
from handfast.flow.pieces import LIMIT, Limit
from handfast.flow.time import NEVER, Horizon, LastHeard, Progress
from handfast.judge import oracle
from handfast.plan import Plan
from tests.agreement.admission import adds_up
from tests.engines.spark.driven import State, Workers, manifest_of, matches_of, output_of
from tests.judges.rows import multiset, result_of, schemas_of, tables_of

SEEDS = 18  # scenarios that each mutant meets
CORES = 2
SECOND = 1_000_000
SMALL = Limit(rows=3)
JOINS: tuple[dict[str, Any], ...] = (
    {"on": "r.k = s.k"},
    {"on": "r.k BETWEEN s.k - 1 AND s.k + 1", "how": "left"},
    {"on": "r.k * s.k % 5 = 2"},
    {"on": "r.k = s.k", "window": {"r": "15 rows", "s": "2 seconds"}},
    {"on": "r.k = s.k", "idle_timeout": {"r": "1500 ms", "s": None}},
    {"on": "r.k = s.k", "how": "semi", "in_order": True},
)

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Mutant] = []


def mutant(bug: Mutant) -> Mutant:
    """Enter a bug into the list."""
    MUTANTS.append(bug)
    return bug


# -- the scenarios ---------------------------------------------------------------------------------------------------


class Scenario:
    """A join, its batches, and what befalls its tasks: attempts that fail, caches that are lost, other workers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        asked = {"window": "2 seconds", "time": "ts", "lateness": "500 ms"} | JOINS[seed % len(JOINS)]
        self.spec = hf.JoinSpec(("r", "s"), asked.pop("on"), **asked)
        self.batches = [self._batch(number) for number in range(5)]
        self.clock = [number * SECOND for number in range(5)]
        self.limit = self.chance.choice([LIMIT, SMALL])
        self.plan = make_plan(self.spec.bind(schemas_of(self.batches[0])), CORES)

    def _batch(self, number: int) -> dict[str, pa.Table]:
        often = self.spec.streams[0].idle_timeout is not None and number > 0
        silent = self.chance.random() < (0.7 if often else 0.15)
        return {name: self._table(number, 0 if silent and name == "r" else self.chance.randint(3, 12)) for name in "rs"}

    def _table(self, number: int, rows: int) -> pa.Table:
        times: list[int | None] = [number * SECOND + self.chance.randint(-SECOND, SECOND) for _ in range(rows)]
        times = [None if self.chance.random() < 0.08 else time for time in times]
        keys = [None if self.chance.random() < 0.08 else self.chance.randrange(6) for _ in times]
        ids = [self.chance.randrange(1 << 30) for _ in times]
        columns = {"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(keys, pa.int64())}
        return pa.table(columns | {"id": pa.array(ids, pa.int64())})


@cache
def _expected(seed: int) -> tuple[Any, ...]:
    """What the oracle says: matches, refused rows, and what the counters count."""
    scenario = Scenario(seed)
    join = scenario.plan.join
    admission = oracle.admit(join, map(tables_of, scenario.batches), scenario.clock)
    matches = multiset(oracle.result(join, oracle.final(join, admission), admission.watermark))
    refused = {
        (kind, stream): multiset(tuple(value for name, value in row.items() if name != "#") for row in rows[name])
        for kind, rows in ((LATE, admission.late), (REJECTED, admission.rejected))
        for stream, name in enumerate(scenario.spec.names)
    }
    final = oracle.final(join, admission)
    counted = [
        (
            sum(batch[name].num_rows for batch in scenario.batches),
            len(admission.admitted[name]) - len(final[name]),
            len(admission.late[name]),
            len(admission.rejected[name]),
        )
        for name in scenario.spec.names
    ]
    return matches, refused, counted, admission.watermark


class Wrong(Exception):
    """Something that no task may do."""


class Run:
    """A scenario at work in workers without Spark."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._scenario = Scenario(seed)
        self._chance = self._scenario.chance
        self._workers = Workers(2, monkeypatch)
        self._door, self._cores = State(), [State() for _ in range(CORES)]
        self._matches: list[tuple[Any, ...]] = []
        self._refused: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
        self._metrics = Metrics.start(self._scenario.spec.names)

    def outcome(self) -> tuple[Any, ...]:
        """What came out, in the form of `_expected`."""
        for batch, now in zip(self._scenario.batches, self._scenario.clock, strict=True):
            self._step(batch, now)
        pairs = [(kind, stream) for kind in (LATE, REJECTED) for stream in range(2)]
        refused = {pair: multiset(self._refused.get(pair, ())) for pair in pairs}
        counted = [(own.rows_in, own.waiting, own.late, own.rejected) for own in self._metrics.streams.values()]
        watermark = float("-inf") if self._metrics.watermark is None else self._metrics.watermark
        return multiset(self._matches), refused, counted, watermark

    def _step(self, batch: dict[str, pa.Table], now: int) -> None:
        plan, limit = self._scenario.plan, self._scenario.limit
        rows = self._packed(plan, batch, limit).assign(**{NOW: now})
        if plan.join.stamped:
            rows = self._attempts(lambda: SequenceProcessor(plan, limit), self._door, rows, SEQUENCER)
        shares: list[str] = []
        for core, state in enumerate(self._cores):
            output = self._attempts(lambda: JoinProcessor(plan, limit), state, rows, core)
            self._matches += matches_of(output)
            for kind, stream, data in zip(output["kind"], output["stream"], output["rows"], strict=True):
                if kind in (LATE, REJECTED):
                    own = self._refused.setdefault((kind, int(stream)), [])
                    own += result_of(pa.ipc.open_stream(data).read_all())
            shares += output[output["kind"] == METRICS]["metrics"].tolist()
            if state.blocks.keys() != {id_ for own in manifest_of(state).blocks for id_ in own}:
                raise Wrong("The state holds other blocks than its manifest names")
        self._metrics = total(shares)
        if not adds_up(self._metrics) or self._metrics.matches != len(self._matches):
            raise Wrong("The counters do not add up")

    def _packed(self, plan: Plan, batch: dict[str, pa.Table], limit: Limit) -> pd.DataFrame:
        parts = []
        for stream, table in enumerate(batch.values()):
            middle = table.num_rows // 2
            for piece in (table.slice(0, middle), table.slice(middle)):  # two partitions
                parts += [packed.to_pandas() for packed in Pack(plan, stream, limit)(iter(piece.to_batches()))]
        return pd.concat(parts, ignore_index=True)

    def _attempts(self, make: Callable[[], Any], state: State, rows: pd.DataFrame, core: int) -> pd.DataFrame:
        """The output of the last of several attempts; the others fail, and their state is forgotten."""
        own = rows[rows["core"] == core_key(core)]
        if own.empty:
            raise Wrong(f"Core {core} hears nothing of a batch")
        before = state.copy()
        outcomes = []
        for _ in range(self._chance.choice([1, 2])):
            self._workers.be(self._chance.randrange(2))
            if self._chance.random() < 0.3:
                output_of(make(), before.copy(), own, pieces=1)
            attempt = before.copy()
            shuffled = own.sample(frac=1, random_state=self._chance.randrange(1000))
            outcomes.append((attempt, output_of(make(), attempt, shuffled)))
        if outcomes[0][0].contents() != outcomes[-1][0].contents():
            raise Wrong("Another attempt leaves another state")
        state.value, state.blocks = outcomes[-1][0].contents()
        return outcomes[-1][1]


def _is_caught(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a scenario tells: by a wrong outcome, or by an error."""
    try:
        return _expected(seed) != Run(seed, monkeypatch).outcome()
    except (Wrong, HandfastError, KeyError, IndexError, TypeError, AssertionError, pa.ArrowException):
        return True


# -- the bugs --------------------------------------------------------------------------------------------------------


@mutant
def a_late_row_given_at_every_core_it_was_sent_to(patch: pytest.MonkeyPatch) -> None:
    def careless(late: Any) -> list[Any]:
        return [RefusedRows(LATE, k, operator.pack_rows(block.batch)) for k, own in enumerate(late) for block in own]

    patch.setattr(operator, "late_at_home", careless)


@mutant
def a_late_row_lost_at_the_cores(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(operator, "late_at_home", lambda late: [])


@mutant
def a_late_row_joined_nevertheless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        operator, "admit", lambda admission, came: (arrivals.admit(admission, came) and came.blocks, [[], []])
    )


@mutant
def a_rejected_row_lost(patch: pytest.MonkeyPatch) -> None:
    split = pack.split
    patch.setattr(pack, "split", lambda join, stream, batch: (split(join, stream, batch)[0], None))


@mutant
def a_rejected_row_counted_by_nobody(patch: pytest.MonkeyPatch) -> None:
    count = operator._count
    patch.setattr(operator, "_count", lambda rows, kind, k: 0 if kind == REJECTED else count(rows, kind, k))


@mutant
def a_block_left_in_the_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "removeKey", lambda self, key: None)


@mutant
def a_block_not_written(patch: pytest.MonkeyPatch) -> None:
    replace_ = blocks.BlockStore.replace
    patch.setattr(
        blocks.BlockStore, "replace", lambda self, before, after: replace_(self, before, sorted(after, key=len)[1:])
    )


@mutant
def a_manifest_not_replaced(patch: pytest.MonkeyPatch) -> None:
    def stubborn(self: State, value: tuple[Any, ...]) -> None:
        self.value = value if self.value is None else (self.value[0], *value[1:])

    patch.setattr(State, "update", stubborn)


@mutant
def a_punctuation_only_where_a_block_goes(patch: pytest.MonkeyPatch) -> None:
    for_cores = pack.for_cores

    def sparing(*args: Any) -> list[Any]:
        return [row for row in for_cores(*args) if row.block is not None]

    patch.setattr(pack, "for_cores", sparing)
    patch.setattr(sequence, "for_cores", sparing)


@mutant
def a_punctuation_that_does_not_say_how_far_the_stream_has_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pack, "progress_of", lambda own: Progress((NEVER,) * len(own)))


@mutant
def rows_at_the_door_counted_by_every_core(patch: pytest.MonkeyPatch) -> None:
    class Everyone:
        def __eq__(self, other: object) -> bool:
            return True

    patch.setattr(operator, "FIRST", Everyone())


@mutant
def a_kept_core_taken_though_its_digest_differs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JoinCore, "follow", lambda self, manifest, load: True)


@mutant
def a_core_kept_while_it_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeptCores, "take", lambda self, owner: self._kept.get(owner))


@mutant
def a_core_that_follows_with_the_marks_that_it_had(patch: pytest.MonkeyPatch) -> None:
    follow = JoinCore.follow

    def forgetful(self: JoinCore, manifest: Manifest, load: Any) -> bool:
        return follow(self, replace(manifest, marks=tuple(("",) * len(own) for own in manifest.blocks)), load)

    patch.setattr(JoinCore, "follow", forgetful)


@mutant
def counters_not_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Metrics, "decode", staticmethod(lambda data: Metrics.start(("r", "s")) if data else data))


@mutant
def progress_not_restored(patch: pytest.MonkeyPatch) -> None:
    admission = operator.Admission
    patch.setattr(operator, "Admission", lambda join, progress=None, last=None: admission(join, None, last))


@mutant
def who_was_heard_of_not_restored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LastHeard, "decode", staticmethod(lambda data: None))


@mutant
def blocks_in_the_order_of_their_coming(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(arrivals, "sorted", list, raising=False)


@mutant
def every_piece_of_a_batch_reaches_the_horizon(patch: pytest.MonkeyPatch) -> None:
    def hasty(core: Any, admitted: Any, horizon: Horizon, limit: Limit) -> Iterator[Any]:
        for step, _ in operator.sorted_slices(admitted, limit):
            yield from core.step(step, horizon)

    patch.setattr(operator, "_steps", hasty)


@mutant
def a_piece_of_the_output_lost(patch: pytest.MonkeyPatch) -> None:
    gathered = operator.gathered
    patch.setattr(operator, "gathered", lambda rows, limit: list(gathered(rows, limit))[:1])


@mutant
def a_piece_that_was_cut_off_lost(patch: pytest.MonkeyPatch) -> None:
    gathered = arrivals.gathered_blocks
    patch.setattr(arrivals, "gathered_blocks", lambda own, limit: list(gathered(own, limit))[:1])


@mutant
def a_piece_of_the_sequencer_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequence.Dispatch, "piece", lambda self, stream, block: self._held.__setitem__(stream, block) or ())


@mutant
def a_late_row_lost_at_the_sequencer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequence, "admit", lambda admission, came: (arrivals.admit(admission, came)[0], [[], []]))


@mutant
def places_counted_from_the_start_in_every_batch(patch: pytest.MonkeyPatch) -> None:
    recall = SequenceProcessor._recall

    def forgetful(self: SequenceProcessor) -> Any:
        admission, stamper, before = recall(self)
        stamper.counts = [0] * len(stamper.counts)
        return admission, stamper, before

    patch.setattr(SequenceProcessor, "_recall", forgetful)


@mutant
def tuples_that_wait_forgotten(patch: pytest.MonkeyPatch) -> None:
    recall = SequenceProcessor._recall

    def forgetful(self: SequenceProcessor) -> Any:
        admission, stamper, before = recall(self)
        stamper.waiting = [[] for _ in stamper.waiting]
        return admission, stamper, before

    patch.setattr(SequenceProcessor, "_recall", forgetful)


@mutant
def the_sequencer_tells_of_a_horizon_that_it_has_not_reached(patch: pytest.MonkeyPatch) -> None:
    horizon = sequence.Horizon
    patch.setattr(sequence, "Horizon", lambda time, counts: horizon(time + SECOND, tuple(c + 5 for c in counts)))


@mutant
def what_waits_at_the_sequencer_told_with_every_piece(patch: pytest.MonkeyPatch) -> None:
    punctuation = sequence.Punctuation

    def telling(rows: int, progress: Any, **told: Any) -> Any:
        return replace(punctuation(rows, progress, **told), waiting=told.get("waiting", 1) or 1)

    patch.setattr(sequence, "Punctuation", telling)


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.__name__)
def test_some_scenario_catches(
    bug: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    bug(monkeypatch)
    kills = sum(_is_caught(seed, monkeypatch) for seed in range(SEEDS))
    record_property("kills", f"{kills} of {SEEDS}")
    assert kills, f"{SEEDS} scenarios did not tell that {bug.__name__.replace('_', ' ')}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_without_a_bug_nothing_is_caught(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _expected(seed) == Run(seed, monkeypatch).outcome()


def test_the_scenarios_have_something_to_tell() -> None:
    outcomes = [_expected(seed) for seed in range(SEEDS)]
    assert all(matches for matches, _, _, _ in outcomes)
    assert {(kind, stream) for kind in (LATE, REJECTED) for stream in range(2)} == {
        pair for _, refused, _, _ in outcomes for pair, rows in refused.items() if rows
    }
