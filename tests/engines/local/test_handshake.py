"""The handshake chain: whatever the schedule, every pair meets once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from handfast.core.join_core import JoinCore
from handfast.core.span import TimeSpan
from handfast.engines.local.chain_driver import Windows
from handfast.engines.local.channel import Channel
from handfast.engines.local.handshake import HandshakeCore, Signal
from handfast.flow.block import Block
from handfast.flow.time import Horizon
from handfast.flow.topology import R, S, Side
from tests.engines.local.schedule import ScheduledChain, bursty_case, found_by, scheduled_case
from tests.sampling import sampled
from tests.strategies import SHAPES, Case

CORES = (1, 2, 3, 4, 7)
SCHEDULES = 500
CHUNK = 50
MUTATED = 30  # schedules that each mutant runs through
FLOOR = 3  # so many of them tell, at least


@pytest.mark.parametrize("start", sampled(range(0, SCHEDULES, CHUNK), 2))
def test_every_schedule_finds_what_the_oracle_finds(start: int, record_property: Callable[[str, object], None]) -> None:
    for seed in range(start, start + CHUNK):
        case = scheduled_case(seed)
        found = found_by(case, seed, cores=CORES[seed % len(CORES)])
        assert case.expected_at_close() == found, f"seed {seed}: {case}"
    record_property("schedules", CHUNK)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SCHEDULES, 10_000 + SCHEDULES, 500))
def test_thousands_of_schedules_find_what_the_oracle_finds(start: int) -> None:
    for seed in range(start, start + 500):
        case = scheduled_case(seed)
        found = found_by(case, seed, cores=CORES[seed % len(CORES)])
        assert case.expected_at_close() == found, f"seed {seed}: {case}"


# -- the pairs of [HSJ Fig. 7, Fig. 8], step by step ---------------------------------------------------------------

ROWS = pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": [1]})


def two_cores() -> ScheduledChain:
    """Two cores: r has entered at the left one, and s at the right one."""
    spec = {"on": "r.x = s.x", "window": "1 minute", "time": "ts"}
    tables = {"r": ROWS, "s": ROWS}
    scheduled = ScheduledChain(
        Case(SHAPES[0], ("r", "s"), spec, "1 minute", tables, [tables], 2), cores=2, capacity=8, rows=1
    )
    left, right = scheduled.chain.cores
    assert scheduled.send(Side.LEFT)
    assert scheduled.send(Side.RIGHT)
    assert left.process_left(scheduled.found.append)
    assert right.process_right(scheduled.found.append)
    return scheduled


def crossing() -> ScheduledChain:
    """r has been sent right and s left, and neither has been received: both are between the cores."""
    scheduled = two_cores()
    left, right = scheduled.chain.cores
    assert left.forward_r()
    assert right.forward_s()
    assert (1, 1) == (len(right.from_left), len(left.from_right))
    return scheduled


def test_tuples_that_cross_between_two_cores_do_not_miss_each_other() -> None:
    scheduled = crossing()
    left, right = scheduled.chain.cores
    assert right.process_left(scheduled.found.append)  # r meets the copy of s that was kept
    assert 1 == len(scheduled.found)
    assert left.process_right(scheduled.found.append)
    scheduled.run(random.Random(0))
    assert 1 == sum(scheduled.rows().values())


def test_tuples_that_have_met_do_not_meet_again() -> None:
    scheduled = crossing()
    left, right = scheduled.chain.cores
    assert left.process_right(scheduled.found.append)  # s comes too late for r on the left core
    assert [] == scheduled.found
    assert right.process_left(scheduled.found.append)
    assert 1 == len(scheduled.found)
    scheduled.run(random.Random(0))
    assert 1 == sum(scheduled.rows().values())


def test_what_met_on_the_left_core_does_not_meet_the_copy_on_the_right_one() -> None:
    scheduled = two_cores()
    left, right = scheduled.chain.cores
    assert right.forward_s()
    assert left.process_right(scheduled.found.append)  # s meets r here, and is acknowledged
    assert 1 == len(scheduled.found)
    assert left.forward_r()
    assert right.process_left(scheduled.found.append)  # the acknowledgement came first: the copy is gone
    assert right.process_left(scheduled.found.append)
    scheduled.run(random.Random(0))
    assert 1 == sum(scheduled.rows().values())


# -- what the protocol is made of ----------------------------------------------------------------------------------


def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of a forwarded S block is dropped at once."""

    def forward_s(core: HandshakeCore) -> bool:
        before = core.forwarded
        did = forwards(core)
        if core.forwarded > before:
            block = core.windows[S].popleft()
            core.forwarded -= 1
            core._copied -= len(block)
            core._remove(S, block)
        return did

    forwards = HandshakeCore.forward_s
    monkeypatch.setattr(HandshakeCore, "forward_s", forward_s)
    monkeypatch.setattr(HandshakeCore, "_acknowledge_s", lambda core: None)


def copy_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The acknowledgement of a forwarded S block comes one block late."""
    acknowledges = HandshakeCore._acknowledge_s

    def acknowledge(core: HandshakeCore) -> None:
        if getattr(core, "_owed", False):
            acknowledges(core)
        core._owed = True

    monkeypatch.setattr(HandshakeCore, "_acknowledge_s", acknowledge)


def ack_overtakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledgement goes before the tuples that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        if message is Signal.ACK:
            channel._messages.rotate(1)

    monkeypatch.setattr(Channel, "send", send)


def ack_dawdles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples go before the acknowledgements that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        waiting = [k for k, (_, held) in enumerate(channel._messages) if held is Signal.ACK]
        if isinstance(message, Block) and waiting:
            channel._messages.insert(waiting[0], channel._messages.pop())

    monkeypatch.setattr(Channel, "send", send)


def expiry_overtakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's expiry of a block goes before the tuples that are already in the channel."""
    sends = Channel.send

    def send(channel: Channel[Any], message: Any) -> None:
        sends(channel, message)
        if message is Signal.EXPIRE:
            channel._messages.rotate(1)

    monkeypatch.setattr(Channel, "send", send)


def r_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forwarded R block stays in the core that it was sent from."""
    removes = JoinCore.remove

    def remove(core: JoinCore, stream: int, block: Block) -> None:
        if stream != R:
            removes(core, stream, block)

    monkeypatch.setattr(JoinCore, "remove", remove)


def r_passes_without_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of R is passed on by a core in the middle that it has not met."""
    scans = HandshakeCore._scan_and_insert

    def scan_and_insert(core: HandshakeCore, stream: int, block: Block, give: Any) -> None:
        if stream == R and core.right is not None and core.to_right.room > 1 and core.left is not None:
            core.to_right.send(block)
        else:
            scans(core, stream, block, give)

    monkeypatch.setattr(HandshakeCore, "_scan_and_insert", scan_and_insert)


def expired_before_the_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's expiries enter before the tuples that may still meet what expires."""
    sends = Windows.messages

    def messages(windows: Windows, *args: Any) -> Any:
        made = list(sends(windows, *args))
        return sorted(made, key=lambda message: isinstance(message[1], Block))

    monkeypatch.setattr(Windows, "messages", messages)


def expired_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver lets blocks expire when half of their window is over."""

    def is_half_over(span: TimeSpan, block: Block, horizon: Horizon) -> bool:
        return block.most_time + span.length // 2 <= horizon.time

    monkeypatch.setattr(TimeSpan, "is_over", is_half_over)


def too_many_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expiry removes two blocks, where there are two."""
    expires = HandshakeCore._expire

    def expire(core: HandshakeCore, stream: int) -> None:
        expires(core, stream)
        if core.windows[stream]:
            expires(core, stream)

    monkeypatch.setattr(HandshakeCore, "_expire", expire)


MUTANTS = [
    no_copy,
    copy_kept,
    ack_overtakes,
    ack_dawdles,
    r_kept,
    r_passes_without_meeting,
    expiry_overtakes,
    expired_before_the_tuples,
    expired_too_soon,
    too_many_expired,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_schedules_catch_a_broken_rule(
    mutant: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    mutant(monkeypatch)
    told = sum(not holds(seed) for seed in range(MUTATED))
    record_property(f"of {MUTATED} schedules that tell {mutant.__name__}", told)
    assert told >= FLOOR, f"only {told} of {MUTATED} schedules tell the broken chain from a right one"


def holds(seed: int) -> bool:
    """Whether a schedule finds what is right."""
    case = bursty_case(seed) if seed % 2 else scheduled_case(seed)
    try:
        return case.expected_at_close() == found_by(case, seed, cores=CORES[seed % len(CORES)])
    except Exception:  # noqa: BLE001 — what is broken may fail as it likes
        return False
