"""The chain in machine code: whatever the schedule, every pair meets once; and a broken rule is told."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from handfast.core.span import TimeSpan
from handfast.engines.local.chains import why_python
from handfast.engines.local.native import actions, chain, meeting, memory
from handfast.engines.local.native.collector import Collector
from handfast.engines.local.native.memory import ACK, CAME, ENTRIES, EXPIRE, KEPT, TAKEN, TUPLES, WENT, WRITTEN
from handfast.engines.local.native.windows import Windows
from handfast.flow.block import Block
from handfast.flow.order import RANK
from handfast.flow.time import Horizon
from handfast.flow.topology import R, S, Side
from handfast.kernels.sizes import KernelSizes
from handfast.plan import SCAN
from tests.agreement.order import groups, stands_in_order
from tests.engines.local.native.schedule import ScheduledNative, found_natively
from tests.engines.local.schedule import bursty_case, plan_of, scheduled_case
from tests.judges.rows import multiset, result_of, tables_of
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

CORES = (1, 2, 3, 4, 7)
SCHEDULES = 200
CHUNK = 20
MUTATED = 40  # schedules that each mutant runs through, at most: until enough tell
FLOOR = 2  # so many of them tell, at least
COLLECTS = 3  # of a schedule's moves, the collector's

Patch = pytest.MonkeyPatch


@pytest.mark.parametrize("start", sampled(range(0, SCHEDULES, CHUNK), 5))
@pytest.mark.parametrize("compiled", [False, True])
def test_every_schedule_finds_what_the_oracle_finds(
    start: int, compiled: bool, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(start, start + CHUNK):
        case = bursty_case(seed)
        found = found_natively(case, seed, cores=CORES[seed % len(CORES)], compiled=compiled)
        assert case.expected_at_close() == found, f"seed {seed}: {case}"
    record_property("schedules in machine code", CHUNK)


@pytest.mark.more
@pytest.mark.parametrize("start", range(0, 100, CHUNK))
def test_every_condition_finds_what_the_oracle_finds(start: int) -> None:
    for seed in range(start, start + CHUNK):
        case = scheduled_case(seed)
        if chain_of_python(case):
            continue
        found = found_natively(case, seed, cores=CORES[seed % len(CORES)], compiled=bool(seed % 2))
        assert case.expected_at_close() == found, f"seed {seed}: {case}"


def chain_of_python(case: Case) -> bool:
    """Whether a case has a condition that keeps its chain in Python."""
    return why_python(plan_of(case, SCAN)) is not None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_passed_is_in_order(seed: int) -> None:
    case, chance = bursty_case(seed).asked(in_order=True), random.Random(seed)
    scheduled = ScheduledNative(case, cores=CORES[seed % 5], capacity=3, rows=2, bits=3, compiled=False)
    in_order(scheduled, case, chance)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_passed_is_in_order_though_chunks_are_let_go_while_that_is_asked(seed: int, monkeypatch: Patch) -> None:
    """Between how far tuples have come and the rank of the next one, the cores and the driver go on."""
    case, chance = bursty_case(seed).asked(in_order=True, window="2 seconds"), random.Random(seed)
    scheduled = ScheduledNative(case, cores=CORES[seed % 3], capacity=3, rows=2, bits=3, compiled=False)
    others = [move for k, move in enumerate(scheduled.moves) if k != COLLECTS]
    asks = chain.NativeChain.arrived

    def arrived(own: chain.NativeChain, stream: int) -> int:
        was = asks(own, stream)
        if chance.random() < 0.5:
            for _ in range(3):
                while any(move() for move in others[1:]):
                    pass
                others[0]()
        return was

    monkeypatch.setattr(chain.NativeChain, "arrived", arrived)
    in_order(scheduled, case, chance)


def in_order(scheduled: ScheduledNative, case: Case, chance: random.Random) -> None:
    """Run a schedule, and give matches as soon as those of lower ranks have passed; they are right, and in order."""
    given: list[Any] = []
    waiting: list[Any] = []
    take = scheduled.collector.work

    def work() -> bool:
        did = take()
        below = scheduled.collector.passed
        rows = [(batch, k) for batch in scheduled.found for k in range(batch.num_rows)]
        scheduled.found.clear()
        waiting.extend(rows)
        ready = [own for own in waiting if rank(own) < below]
        waiting[:] = [own for own in waiting if rank(own) >= below]
        given.extend(sorted(ready, key=rank))
        return did

    def rank(own: Any) -> int:
        batch, k = own
        return int(batch.column(RANK)[k].as_py())

    scheduled.moves[COLLECTS] = work
    try:
        scheduled.run(chance)
    finally:
        scheduled.close()
    assert not waiting
    plain = [batch.slice(k, 1).drop_columns([RANK]) for batch, k in given]
    rows = [row for batch in plain for row in result_of(pa.Table.from_batches([batch]))]
    assert case.expected_at_close() == multiset(rows)
    assert stands_in_order(rows, groups(case, tables_of(case.admitted)))


# -- the pairs of [HSJ Fig. 7, Fig. 8], step by step ---------------------------------------------------------------

ROWS = pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": [1], "n": [0]})
PLL, PLR, FS, FR = range(4)  # actions by number


@pytest.fixture(params=[False, True], ids=["as Python", "compiled"])
def two(request: pytest.FixtureRequest) -> Any:
    """Two cores: r has entered at the left one, and s at the right one."""
    spec = {"on": "r.x = s.x", "window": "1 minute", "time": "ts"}
    tables = {"r": ROWS, "s": ROWS}
    case = Case(SHAPES[0], ("r", "s"), spec, "1 minute", tables, [tables], 2)
    scheduled = ScheduledNative(case, cores=2, capacity=8, rows=1, bits=3, compiled=request.param)
    assert scheduled.step()
    left, right = scheduled.chain.cores
    assert scheduled.send(Side.LEFT)
    assert scheduled.send(Side.RIGHT)
    assert acted(scheduled, left, PLL)
    assert acted(scheduled, right, PLR)
    yield scheduled
    scheduled.close()


def acted(scheduled: ScheduledNative, core: memory.Core, number: int) -> bool:
    """Whether a core has done something; kernels are made as it asks for them."""
    while scheduled.act(core, number):
        if not core.row[memory.PENDING]:
            return True
    return False


def matched(scheduled: ScheduledNative) -> int:
    return sum(int(core.row[memory.MATCHED]) for core in scheduled.chain.cores)


def at_the_end(scheduled: ScheduledNative) -> int:
    scheduled.run(random.Random(0))
    return sum(scheduled.rows().values())


def test_tuples_that_cross_between_two_cores_do_not_miss_each_other(two: ScheduledNative) -> None:
    left, right = two.chain.cores
    assert acted(two, left, FR)
    assert acted(two, right, FS)
    assert acted(two, right, PLL)  # r meets the copy of s that was kept
    assert 1 == matched(two)
    assert acted(two, left, PLR)
    assert 1 == at_the_end(two)


def test_tuples_that_have_met_do_not_meet_again(two: ScheduledNative) -> None:
    left, right = two.chain.cores
    assert acted(two, left, FR)
    assert acted(two, right, FS)
    assert acted(two, left, PLR)  # s comes too late for r on the left core
    assert 0 == matched(two)
    assert acted(two, right, PLL)
    assert 1 == matched(two)
    assert 1 == at_the_end(two)


def test_what_met_on_the_left_core_does_not_meet_the_copy_on_the_right_one(two: ScheduledNative) -> None:
    left, right = two.chain.cores
    assert acted(two, right, FS)
    assert acted(two, left, PLR)  # s meets r here, and is acknowledged
    assert 1 == matched(two)
    assert acted(two, left, FR)
    assert acted(two, right, PLL)  # the acknowledgement came first: the copy is gone
    assert acted(two, right, PLL)
    assert 1 == at_the_end(two)


def test_a_scan_that_has_to_wait_for_the_collector_goes_on_where_it_was() -> None:
    case = bursty_case(0).asked(on="r.x <= s.x", window="1000 seconds")
    sizes = KernelSizes(tile=64, pairs=8)  # room for so few matches that no message's matches fit at once
    for seed in range(6):
        scheduled = ScheduledNative(
            case, cores=1 + seed % 3, capacity=3, rows=8, bits=5, compiled=bool(seed % 2), sizes=sizes
        )
        try:
            scheduled.run(random.Random(seed))
            assert case.expected_at_close() == scheduled.rows()
        finally:
            scheduled.close()


# -- broken rules --------------------------------------------------------------------------------------------------


def no_copy(patch: Patch) -> None:
    """The copies of forwarded S tuples are dropped at once."""

    def forward_s(core: Any) -> bool:
        did = forwards(core)
        core.row[KEPT + S] = core.row[WENT + S]
        return bool(did)

    forwards = actions.forward_s
    patch.setattr(actions, "forward_s", forward_s)


def copy_kept(patch: Patch) -> None:
    """The acknowledgement of forwarded S tuples comes one message late."""
    owed: dict[int, int] = {}

    def acknowledge(core: Any, stop: int) -> None:
        core.row[KEPT + S] = owed.get(id(core.row), core.row[KEPT + S])
        owed[id(core.row)] = stop

    patch.setattr(actions, "acknowledge_s", acknowledge)


def _swapping(patch: Patch, kind: int, before: Callable[[int], bool]) -> None:
    """A message of a kind goes before the one that was sent last, if that is still there and is of such a kind."""
    sends = actions.send

    def send(ring: Any, own: int, stop: int) -> None:
        sends(ring, own, stop)
        count, written = len(ring) - ENTRIES, ring[WRITTEN]
        if own == kind and written - ring[TAKEN] > 1:
            last, other = ENTRIES + (written - 1) % count, ENTRIES + (written - 2) % count
            if before(int(ring[other]) & 3):
                ring[last], ring[other] = ring[other], ring[last]

    patch.setattr(actions, "send", send)


def ack_overtakes(patch: Patch) -> None:
    """An acknowledgement goes before the tuples that are already in the ring."""
    _swapping(patch, ACK, lambda kind: kind == TUPLES)


def ack_dawdles(patch: Patch) -> None:
    """Tuples go before an acknowledgement that is already in the ring."""
    _swapping(patch, TUPLES, lambda kind: kind == ACK)


def expiry_overtakes(patch: Patch) -> None:
    """The driver's expiry goes before the tuples that are already in the ring."""
    _swapping(patch, EXPIRE, lambda kind: kind == TUPLES)


def r_kept(patch: Patch) -> None:
    """Forwarded R tuples stay in the core that they were sent from."""

    def remove_r(core: Any, stop: int) -> None:
        core.row[WENT + R] = stop

    patch.setattr(actions, "remove_r", remove_r)


def r_passes_without_meeting(patch: Patch) -> None:
    """Tuples of R are passed on by a core in the middle that they have not met."""
    meets = actions.meet

    def meet(core: Any, stream: int, stop: int) -> bool:
        return True if stream == R and not core.row[memory.ENDS] else bool(meets(core, stream, stop))

    patch.setattr(actions, "meet", meet)


def forwarded_while_a_scan_waits(patch: Patch) -> None:
    """A core forwards, and takes messages from the other side, though it has to wait in the middle of a scan."""
    patch.setattr(actions, "PENDING", memory.ROW - 1)  # a word that nobody writes
    lagging(patch)


def lagging(patch: Patch) -> None:
    """The collector is late now and then, so that there is no room for matches. Nothing is wrong with that."""
    chance, rooms = random.Random(5), meeting.room

    def room(ring: Any, words: int) -> int:
        return int(rooms(ring, words)) if chance.random() < 0.4 else 0

    patch.setattr(meeting, "room", room)


def expired_before_the_tuples(patch: Patch) -> None:
    """The driver's expiries enter before the tuples that may still meet what expires."""
    sends = Windows.messages

    def messages(windows: Windows, *args: Any) -> Any:
        return sorted(sends(windows, *args), key=lambda message: int(message[1][0]) & 3 == TUPLES)

    patch.setattr(Windows, "messages", messages)


def expired_too_soon(patch: Patch) -> None:
    """The driver lets tuples expire when half of their window is over."""

    def half_over(span: TimeSpan, block: Block, horizon: Horizon) -> Any:
        return block.times <= horizon.time - span.length // 2

    patch.setattr(TimeSpan, "over", half_over)


def too_many_expired(patch: Patch) -> None:
    """An expiry removes one tuple more, where there is one."""
    expires = actions.expire

    def expire(core: Any, stream: int, stop: int) -> None:
        expires(core, stream, min(stop + 1, max(stop, int(core.row[CAME + stream]))))

    patch.setattr(actions, "expire", expire)


def an_expiry_forgotten(patch: Patch) -> None:
    """An expiry that comes before its tuples is forgotten."""

    def expire(core: Any, stream: int, stop: int) -> None:
        gone = min(stop, core.row[CAME + stream])
        core.row[KEPT + stream] = core.row[WENT + stream] = max(gone, core.row[WENT + stream])

    patch.setattr(actions, "expire", expire)


def a_message_over_two_chunks(patch: Patch) -> None:
    """A message may have tuples of two chunks."""
    patch.setattr(
        actions,
        "cut",
        lambda core, stream: min(core.row[CAME + stream], core.row[WENT + stream] + core.rules[memory.ROWS]),
    )


def chunks_used_again_too_soon(patch: Patch) -> None:
    """Chunks go when the last core is done with them, though another still has copies."""

    def released(own: chain.NativeChain, stream: int) -> int:
        return int(own.cores[own.topology.last(stream)].row[CAME + stream])

    patch.setattr(chain.NativeChain, "released", released)


def rows_let_go_before_their_matches(patch: Patch) -> None:
    """The collector lets rows go before it has made matches of them."""
    works = Collector.work

    def work(collector: Collector) -> bool:
        collector._store()
        collector._release([collector._chain.arrived(stream) for stream in (R, S)])
        return works(collector)

    patch.setattr(Collector, "work", work)


MUTANTS = [
    no_copy,
    copy_kept,
    ack_overtakes,
    ack_dawdles,
    r_kept,
    r_passes_without_meeting,
    forwarded_while_a_scan_waits,
    expiry_overtakes,
    expired_before_the_tuples,
    expired_too_soon,
    too_many_expired,
    an_expiry_forgotten,
    a_message_over_two_chunks,
    rows_let_go_before_their_matches,
    chunks_used_again_too_soon,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_schedules_catch_a_broken_rule(
    mutant: Callable[[Patch], None], monkeypatch: Patch, record_property: Callable[[str, object], None]
) -> None:
    mutant(monkeypatch)
    telling = list(islice((seed for seed in range(MUTATED) if not holds(seed)), FLOOR))
    record_property(f"seeds in machine code that tell {mutant.__name__}, up to", telling[-1] if telling else MUTATED)
    assert len(telling) == FLOOR, f"only {telling} of {MUTATED} schedules tell the broken chain from a right one"


def test_a_collector_that_lags_changes_nothing(monkeypatch: Patch) -> None:
    lagging(monkeypatch)
    assert all(holds(seed) for seed in range(15))


def holds(seed: int) -> bool:
    """Whether a schedule finds what is right."""
    case = bursty_case(seed)
    try:
        return case.expected_at_close() == found_natively(case, seed, cores=CORES[seed % len(CORES)], compiled=False)
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
